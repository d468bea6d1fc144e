// SPDX-License-Identifier: MIT
// Colours and texts: states told apart in both themes and without colours, threads with the same
// colour in each recording, nothing printed over anything from 360 to 1920 pixels.
import {done, is, ok, open, pageFile, quiet} from "./lib.mjs";
import {hog, simulate} from "./programs.mjs";

const file = pageFile({passes: [hog({states: true})]});

// Of the pens of a lane: pairs of states that are less than 3:1 apart, or hatched alike.
const alike = page =>
	page.evaluate(() => {
		const part = v => (v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4));
		const light = v =>
			0.2126 * part((v & 255) / 255) +
			0.7152 * part(((v >> 8) & 255) / 255) +
			0.0722 * part(((v >> 16) & 255) / 255);
		const ratio = (a, b) => {
			const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
			return (x + 0.05) / (y + 0.05);
		};
		const none = parseInt(gt.palette().none.slice(1), 16),
			ground = ((none & 255) << 16) | (none & 0xff00) | (none >> 16);
		const out = [];
		const colors = pen => (!pen ? [ground] : pen[2] ? [pen[0], pen[1]] : [pen[0]]);
		const some = (a, b) => colors(a).some(x => colors(b).every(y => ratio(x, y) >= 3));
		const look = (name, pens) =>
			pens.forEach((a, i) =>
				pens.slice(0, i).forEach((b, j) => {
					const both = a && b && a[2] && b[2];
					const same = both && a.slice(2).join() === b.slice(2).join();
					if (both ? same || !(ratio(a[0], a[1]) >= 3) : !some(a, b) && !some(b, a))
						out.push(name + " " + j + " and " + i);
				}),
			);
		gt.pass().threads.forEach((t, i) => look("thread " + i, gt.pens(i)[0]));
		look("cpu", gt.pens(0)[1]);
		return out;
	});

// Texts of the canvas and of the histogram that touch one another, or leave their column.
const overprints = page =>
	page.evaluate(async () => {
		const proto = CanvasRenderingContext2D.prototype,
			draw = proto.fillText,
			boxes = [],
			bad = [];
		proto.fillText = function (text, x, y) {
			const w = this.measureText(text).width,
				left = x - {left: 0, start: 0, center: w / 2, right: w, end: w}[this.textAlign];
			if (text && this.canvas.id === "tl")
				boxes.push({text, left, right: left + w, top: y - 4, bottom: y + 4});
			return draw.call(this, text, x, y);
		};
		gt.setView(gt.view.from, gt.view.to);
		await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
		proto.fillText = draw;
		for (const b of boxes)
			if (b.left < gt.GUTTER - 4 && b.right > gt.GUTTER) bad.push("too long: " + b.text);
		for (const t of document.querySelectorAll("#histogram-body text")) {
			const r = t.getBoundingClientRect();
			boxes.push({
				text: t.textContent,
				left: r.left,
				right: r.right,
				top: r.top + 1e5 + 3,
				bottom: r.bottom + 1e5 - 3,
			});
		}
		boxes.forEach((a, i) =>
			boxes.slice(0, i).forEach(b => {
				if (
					Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
					Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1
				)
					bad.push(b.text + " / " + a.text);
			}),
		);
		if (document.documentElement.scrollWidth > innerWidth) bad.push("the page is too wide");
		return {n: boxes.length, bad};
	});

for (const dark of [false, true])
	for (const width of dark ? [1280] : [360, 768, 1280, 1920]) {
		const page = await open(file, {width, dark, height: 900});
		const name = width + " px, " + (dark ? "dark" : "light");
		if (width === 1280) is(await alike(page), [], "states of lanes differ: " + name);
		for (const [from, to] of [
			[0, 2.5e9],
			[4e8, 5e8],
		]) {
			await page.evaluate(([a, b]) => gt.setView(a, b), [from, to]);
			await quiet(page);
			const got = await overprints(page);
			ok(got.n > 10 && !got.bad.length, "no text over another, " + name, got.bad);
		}
		is(page.troubles, [], "in peace: " + name);
		await page.context().close();
	}

// Forty requests, which nobody sees one by one, and three more threads; in the second recording
// there are more requests, in another order.
const server = (requests, seed) => {
	const dur = 1e9,
		names = ["accept", "logger", "loop", ...Array(requests).keys()];
	const lanes = simulate({
		threads: names.length + 1,
		dur,
		work: (t, n) => ({
			off: 1e6 + ((t * 7919 + n * 104729 + seed) % 9) * 1e5,
			hold: t < 4 ? 1e5 : 2e5 + (((t + seed) * 31) % 7) * 1e4,
		}),
	});
	return {
		name: "gil",
		dur,
		threads: [
			{tid: 100, name: "MainThread", main: true},
			...names.map((n, i) => ({
				tid: 101 + i,
				name: typeof n === "number" ? "Thread-" + (n + seed) + " (request)" : n,
			})),
		],
		lanes: lanes.map(gil => ({gil})),
	};
};
const colors = async page =>
	page.evaluate(() => {
		const out = {};
		gt.pass().threads.forEach((t, i) => {
			out[t.name.replace(/\d+/g, "*")] = gt.threadColor(i);
		});
		return {out, grey: gt.palette().other, victim: gt.threadColor(10)};
	});
const one = await open(pageFile({passes: [server(40, 1)]})),
	two = await open(pageFile({passes: [server(55, 100)]}));
const first = await colors(one);
is((await colors(two)).out, first.out, "threads have the same colours in another recording");
ok(first.victim !== first.grey, "forty requests that wait are not grey");
is(
	new Set(Object.values(first.out)).size,
	Object.keys(first.out).length,
	"each name has a colour of its own",
);
await done();

// SPDX-License-Identifier: MIT
// The page for those who use the keyboard, a screen reader, large type, or strong contrast.
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {done, is, ok, open, pageFile, quiet} from "./lib.mjs";
import {hog} from "./programs.mjs";

const verdict = `<h1 class="headline" data-kind="gil-bound">The GIL limits this program.</h1><p class="context">Mostly because of <a href="#v=1,2">this</a>.</p><aside class="quality" data-level="poor"><h2>Data quality</h2><p>x</p><details><summary>1 note</summary><ul><li>x</li></ul></details></aside>`;
const file = pageFile({
	passes: [hog({states: true}), {...hog({seed: 5}), name: "stacks"}],
	verdict,
});

const luminance = ([r, g, b]) =>
	[r, g, b]
		.map(x => (x / 255 <= 0.03928 ? x / 255 / 12.92 : Math.pow((x / 255 + 0.055) / 1.055, 2.4)))
		.reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
const contrast = (a, b) =>
	(Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05);

for (const dark of [false, true]) {
	const page = await open(file, {dark, width: 1280});
	// Every text on the colour behind it, as the browser has them; half transparent ones are
	// mixed by it.
	const texts = await page.evaluate(() => {
		const paint = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
		const over = colors => {
			paint.clearRect(0, 0, 1, 1);
			for (const c of colors) {
				paint.fillStyle = c;
				paint.fillRect(0, 0, 1, 1);
			}
			return [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3);
		};
		const out = new Map();
		for (const el of document.querySelectorAll("header *, main *")) {
			if (
				!el.offsetParent ||
				![...el.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())
			)
				continue;
			const grounds = [];
			for (let e = el; e; e = e.parentElement)
				grounds.unshift(getComputedStyle(e).backgroundColor);
			const ink = getComputedStyle(el).color,
				key = ink + grounds;
			if (!out.has(key))
				out.set(key, {
					ink: over([...grounds, ink]),
					ground: over(grounds),
					where: el.outerHTML.slice(0, 120),
				});
		}
		return [...out.values()];
	});
	ok(texts.length > 10, "texts were looked at");
	is(
		texts
			.filter(t => contrast(t.ink, t.ground) < 4.5)
			.map(t => contrast(t.ink, t.ground).toFixed(2) + " " + t.where),
		[],
		(dark ? "dark" : "light") + ": every text has a contrast of 4.5 and more",
	);
	await page.close();
}

const page = await open(file, {width: 1280});
is(
	await page.evaluate(() =>
		[...document.querySelectorAll("button, a, input, canvas, summary")]
			.filter(
				e =>
					e.offsetParent &&
					!(e.getAttribute("aria-label") || e.textContent.trim() || e.title),
			)
			.map(e => e.outerHTML.slice(0, 100)),
	),
	[],
	"all that can be used has a name",
);
is(
	await page.evaluate(() =>
		[...document.querySelectorAll("main > section, main > div > section")]
			.filter(
				s =>
					s.offsetParent &&
					!s.getAttribute("aria-label") &&
					!(
						document.getElementById(s.getAttribute("aria-labelledby")) || {
							textContent: "",
						}
					).textContent,
			)
			.map(s => s.id),
	),
	[],
	"and so have the sections",
);
is(
	await page.evaluate(() => [
		document.querySelectorAll("h1").length,
		document.documentElement.lang,
	]),
	[1, "en"],
	"one heading of all, and a language",
);

// By Tab through everything: in order, visible, and out again at the end.
const stops = [];
for (;;) {
	await page.keyboard.press("Tab");
	const stop = await page.evaluate(() => {
		const e = document.activeElement,
			box = e.getBoundingClientRect(),
			style = getComputedStyle(e);
		return e === document.body
			? null
			: {
					section: (e.closest("section, header") || {}).id || "bar",
					seen: box.width > 0 && box.bottom > 0 && box.top < innerHeight,
					ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1,
					what: e.outerHTML.slice(0, 100),
				};
	});
	if (!stop || stops.length > 500) break;
	stops.push(stop);
}
is(
	stops.filter(s => !s.seen || !s.ring).map(s => s.what),
	[],
	"the focus is always in sight, with a ring",
);
const before = stops.findIndex(s => s.section === "timeline");
ok(
	before <= 40 && stops.length <= 80,
	"few stops: " + before + " before the timeline, " + stops.length,
);
const order = stops.map(s => s.section).filter((s, i, all) => s !== all[i - 1]);
is(
	order.slice(0, 6),
	["bar", "verdict", "findings", "timeline", "threads", "blame"],
	"in the order of reading",
);
is(order.length, new Set(order).size, "once through each section");

// From the keyboard alone: to the first finding, its details, the next wait, and back.
await page.focus("#findings-body .title");
await page.keyboard.press("Enter");
await quiet(page);
ok(await page.isVisible("#details"), "Enter on a finding shows its details");
await page.focus("#tl");
await page.keyboard.press("BracketRight");
await quiet(page);
ok(
	/wait/.test(await page.textContent("#live")),
	"what ] found is said",
	await page.textContent("#live"),
);
await page.keyboard.press("Escape");
await quiet(page);
ok(!(await page.isVisible("#details")), "Escape closes them");
await page.keyboard.press("?");
ok(
	await page.evaluate(
		() =>
			document.getElementById("help").open &&
			document.getElementById("help").contains(document.activeElement),
	),
	"? opens the help, which has the focus",
);
await page.keyboard.press("Escape");
is(await page.evaluate(() => document.getElementById("help").open), false, "and Escape closes it");

// 1280 pixels at 200 %.
const large = await open(file, {width: 640, height: 450, scale: 2});
is(
	await large.evaluate(() => document.documentElement.scrollWidth),
	640,
	"at 200 % nothing has to be scrolled sideways",
);
is(large.troubles, [], "in peace");

// A phone: most of the width is for time.
const phone = await open(file, {width: 390, height: 800});
is(
	await phone.evaluate(() => [
		document.documentElement.scrollWidth,
		Math.round(
			document.getElementById("strip").getBoundingClientRect().left -
				document.getElementById("tl").getBoundingClientRect().left,
		),
	]),
	[390, await phone.evaluate(() => gt.GUTTER)],
	"a phone need not be scrolled sideways, and strip and timeline have one scale",
);
await phone.click("#findings-body .title");
await quiet(phone);
const above = await phone.evaluate(() => {
	const row = gt.tl.rows.find(x => x.kind === "gil" && x.thread === 1),
		top = document.getElementById("tl").getBoundingClientRect().top;
	return {
		top: top + row.y - document.getElementById("tl-box").scrollTop,
		bottom: top + row.y + row.h - document.getElementById("tl-box").scrollTop,
		dock: document.getElementById("details").getBoundingClientRect().top,
	};
});
ok(above.top > 0 && above.bottom <= above.dock, "a moment's span is above its details", above);
ok((await phone.evaluate(() => gt.tl.width - gt.GUTTER)) > 230, "and there is room for time");
is(phone.troubles, [], "in peace");

// A small laptop: what a click tells is in sight beside the span that it tells about.
const laptop = await open(file, {width: 1024, height: 700});
await laptop.click("#findings-body .title");
await quiet(laptop);
const seen = await laptop.evaluate(() => {
	const d = document.getElementById("details").getBoundingClientRect(),
		t = document.getElementById("tl").getBoundingClientRect(),
		row = gt.tl.rows.find(x => x.kind === "gil" && x.thread === 1);
	return {
		right: d.right,
		left: t.left,
		bottom: d.bottom,
		row: t.top + row.y + row.h - document.getElementById("tl-box").scrollTop,
	};
});
ok(
	seen.right <= seen.left && seen.bottom <= 700 && seen.row > 0 && seen.row < 700,
	"details and their span are in sight, side by side",
	seen,
);
await laptop.focus("#tl");
for (let i = 0; i < 12; i++) await laptop.keyboard.press("ArrowDown");
await quiet(laptop);
const below = await laptop.evaluate(() => {
	const m = /s=(gil|cpu|py)\.(\d+)\.\d+\.?(\d*)/.exec(location.hash),
		row = gt.tl.rows.find(
			x => x.kind === m[1] && x.thread === +m[2] && (m[1] !== "py" || x.depth === +m[3]),
		);
	return {
		thread: row.thread,
		bottom:
			document.getElementById("tl").getBoundingClientRect().top +
			row.y +
			row.h -
			document.getElementById("tl-box").scrollTop,
		dock: document.getElementById("tl-box").getBoundingClientRect().bottom,
	};
});
ok(
	below.bottom <= below.dock && below.dock <= 700 && below.bottom > 40,
	"so they are wherever one goes by keys",
	below,
);
is(laptop.troubles, [], "in peace");
// What axe-core finds, with details and a selection shown: of this page, and of real reports.
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
async function barriers(path, name, options, prepare = async _page => {}) {
	const checked = await open(path, options);
	await checked.evaluate(() => {
		document.querySelector("#findings-body .title, #waits-body button.link")?.click();
		gt.setRange(1e8, 3e8);
	});
	await prepare(checked);
	await quiet(checked);
	await checked.evaluate(axe);
	const found = await checked.evaluate(() =>
		window.axe
			.run(document)
			.then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.target.join(" "))])),
	);
	is(found, [], "axe-core finds no barrier: " + name);
	is(checked.troubles, [], "in peace: " + name);
	await checked.context().close();
}
await barriers(file, "light");
for (const dark of [false, true])
	await barriers(file, "zoomed in, details at the right, dark: " + dark, {dark}, async page => {
		await page.click("#details-dock");
		await page.evaluate(() => gt.setView(1e8, 2e8));
		await page.waitForSelector("#crumbs button");
		await page.click("#export-menu summary");
	});
await barriers(file, "help", {}, page => page.click("#help-open"));
await barriers(file, "a meaning, replay and search", {width: 390}, async page => {
	await page.fill("#search", "py");
	await page.click("#replay button");
	await page.focus("#timeline-legend .key");
});
for (const [i, path] of process.argv.slice(2).entries())
	await barriers(path, path.replace(/.*\//, ""), {dark: i % 2 === 0, width: [1280, 360][i % 2]});

await done();

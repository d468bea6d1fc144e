// SPDX-License-Identifier: MIT
// Many threads: rows of those that live in the part in view, slots for the short-lived, the
// lane of holders always in sight, the holder beside the wait, headings of processes.
import {done, is, ok, open, pageFile, quiet} from "./lib.mjs";

const dur = 1e9;
// The main thread of each of two processes, and 60 threads that live for 40 ms, 15 ms apart.
const short = Array.from({length: 60}, (_, i) => ({from: 15e6 * i, to: 15e6 * i + 40e6}));
const lane = ({from, to}, i) => [
	{from, to: from + 5e6, state: 1},
	{from: from + 5e6, to: from + 20e6, state: 3},
	{from: from + 20e6, to: from + 20e6 + (i % 5) * 1e5 + 1e5, state: 2},
	{from: from + 20e6 + (i % 5) * 1e5 + 1e5, to, state: 1},
];
const mains = [0, 1].map(() => [
	{from: 0, to: 19e6, state: 2},
	{from: 19e6, to: dur, state: 1},
]);
const program = {
	name: "gil",
	dur,
	threads: [
		{tid: 1, pid: 1, name: "MainThread", main: true},
		{tid: 2, pid: 2, name: "MainThread", main: true},
		...short.map((_, i) => ({tid: 10 + i, pid: i % 2 ? 1 : 2, name: "request-" + i})),
	],
	lanes: [...mains.map(gil => ({gil})), ...short.map((s, i) => ({gil: lane(s, i)}))],
};
const page = await open(pageFile({passes: [program]}));
const rows = f => page.evaluate(f);
const shown = () =>
	rows(() =>
		[...new Set(gt.tl.rows.filter(r => r.head).map(r => r.thread))].sort((a, b) => a - b),
	);
const view = async (from, to) => {
	await page.evaluate(([a, b]) => gt.setView(a, b), [from, to]);
	await quiet(page);
};

is((await shown()).length, 40, "of many threads only some have rows");
await view(300e6, 310e6);
const alive = short.map((s, i) => (s.from < 310e6 && s.to > 300e6 ? i + 2 : -1)).filter(i => i > 0);
is(await shown(), [0, 1, ...alive], "in a part in view those that live in it");
is(
	await rows(() => gt.tl.rows.filter(r => r.kind === "process").map(r => r.pid)),
	await rows(() => [
		...new Set(gt.tl.rows.filter(r => r.head).map(r => gt.pass().threads[r.thread].pid)),
	]),
	"under a heading for each process",
);

await view(0, dur);
await page.click("#slots");
await quiet(page);
const slots = await rows(() => gt.tl.rows.filter(r => r.kind === "slot").map(r => r.threads));
is(
	slots.flat().sort((a, b) => a - b),
	short.map((_, i) => i + 2),
	"slots have each short-lived thread once",
);
ok(
	slots.every(of => of.every((t, k) => !k || short[of[k - 1] - 2].to <= short[t - 2].from)),
	"none overlaps another one in its slot",
);
// Of each process every 30 ms one of 40 ms: two at once.
is(slots.length, 4, "as few as live at once");
const at = await rows(() => {
	const box = document.getElementById("tl").getBoundingClientRect(),
		row = gt.tl.rows.find(r => r.kind === "slot");
	const x = gt.GUTTER + (330e6 / 1e9) * (box.width - gt.GUTTER);
	return {x: box.left + x, y: box.top + row.y + row.h / 2, threads: row.threads};
});
await page.mouse.click(at.x, at.y);
await quiet(page);
const pinned = await rows(() => +/s=gil\.(\d+)/.exec(location.hash)?.[1]);
ok(
	at.threads.includes(pinned) && short[pinned - 2].from <= 330e6 && short[pinned - 2].to > 330e6,
	"a click pins the span of the thread that lives there",
);
await page.keyboard.press("Escape");
await page.click("#slots");

// The longest wait during a hold: the holder's lane is shown next to it.
await view(0, 60e6);
await page.evaluate(() => {
	const lane = gt.store().gil[2];
	gt.setPin({kind: "gil", thread: 2, at: lane.find(6e6), from: 5e6, to: 20e6, state: 3, gil: 0});
});
await quiet(page);
is(
	await rows(() => {
		const k = gt.tl.rows.findIndex(r => r.kind === "held");
		return k < 0 ? null : [gt.tl.rows[k - 1].thread, gt.tl.rows[k].thread];
	}),
	[2, 0],
	"the holder's lane is beside the followed wait",
);

await page.click("#all-threads", {timeout: 1000}).catch(() => {});
await view(0, dur);
await page.evaluate(() => {
	document.getElementById("tl-box").scrollTop = 500;
});
await quiet(page);
is(
	await rows(() => {
		const owner = gt.tl.rows.find(r => r.kind === "owner"),
			canvas = document.getElementById("tl");
		const d = canvas.getContext("2d").getImageData(gt.GUTTER + 2, owner.y + 6, 4, 4).data;
		const hex = "#" + [d[0], d[1], d[2]].map(x => x.toString(16).padStart(2, "0")).join("");
		return [hex === gt.threadColor(0) || hex === gt.threadColor(1), owner.fixed];
	}),
	[true, true],
	"the lane of holders stays when the rows scroll",
);
// All pairs of 40 threads that hold the GIL in turn while the others wait: 1,560, with equal ones
// among them. The table has the largest 1,000.
const crew = 40,
	turn = k => 1e6 * (1 + (k % 7)),
	starts = [0];
for (let k = 0; k < 3 * crew; k++) starts.push(starts[k] + turn(k));
const crowded = await open(
	pageFile({
		passes: [
			{
				name: "gil",
				dur: starts.at(-1),
				threads: Array.from({length: crew}, (_, i) => ({tid: i + 1, name: "w" + i})),
				lanes: Array.from({length: crew}, (_, i) => ({
					gil: Array.from({length: 3 * crew}, (__, k) => ({
						from: starts[k],
						to: starts[k + 1],
						state: k % crew === i ? 2 : 3,
					})),
				})),
			},
		],
	}),
);
await crowded.evaluate(() => gt.setRange(0, gt.pass().dur_ns));
const body = crowded.locator("#range-body .table").nth(1);
await body.locator(".more").first().click();
const pairs = (
	await body
		.locator("tbody tr")
		.evaluateAll(list =>
			list.map(tr => [...tr.cells].map(c => c.textContent.replace(/\u00a0/g, " "))),
		)
).map(([holder, waiter, time]) => [holder, waiter, parseFloat(time)]);
const heldBy = new Array(crew).fill(0);
for (let k = 0; k < 3 * crew; k++) heldBy[k % crew] += turn(k) / 1e6;
is(
	pairs.map(p => p[2]),
	heldBy
		.flatMap(ms => new Array(crew - 1).fill(ms))
		.sort((a, b) => b - a)
		.slice(0, 1000),
	"a range shows the 1,000 largest of all pairs",
);
ok(
	new Set(pairs.map(p => p[0] + p[1])).size === 1000 &&
		pairs.every(([holder, waiter, ms]) => holder !== waiter && heldBy[holder.slice(1)] === ms),
	"each pair once, with the holder's time",
);
ok(
	/: the 1,000 largest of 1,560/.test(await body.locator("caption").textContent()),
	"and how many there are",
);

// Crowds: a thin row for each thread, below one that counts them.
const compact = await open(pageFile({passes: [program]}));
await compact.click("#compact");
await quiet(compact);
const kinds = () =>
	compact.evaluate(() =>
		["crowd", "thin"].map(kind =>
			gt.tl.rows
				.filter(r => r.kind === kind)
				.flatMap(r => r.threads || [r.thread])
				.sort((a, b) => a - b),
		),
	);
const all = short.map((_, i) => i + 2);
is(await kinds(), [all, all], "each thread of a crowd has a thin row and is counted");
// At this moment, of the threads of the first process that live then.
const counted = await compact.evaluate(async () => {
	const row = gt.tl.rows.find(r => r.kind === "crowd"),
		canvas = document.getElementById("tl"),
		box = canvas.getBoundingClientRect(),
		x = gt.GUTTER + (gt.tl.width - gt.GUTTER) / 2;
	canvas.dispatchEvent(
		new PointerEvent("pointermove", {
			clientX: box.left + x,
			clientY: box.top + row.y + row.h / 2 - document.getElementById("tl-box").scrollTop,
		}),
	);
	const t =
		gt.view.from + ((x - gt.GUTTER) / (gt.tl.width - gt.GUTTER)) * (gt.view.to - gt.view.from);
	return {
		tip: [...document.querySelectorAll("#tip span")].map(s => parseInt(s.textContent, 10)),
		live: row.threads.filter(i => gt.store().gil[i].find(t)).length,
	};
});
ok(counted.live > 0, "some live in the middle");
is(
	counted.tip.reduce((n, k) => n + k, 0),
	counted.live,
	"the pointer on the count tells how many are in which state",
);
const opened = await compact.evaluate(() => {
	const thread = gt.tl.rows.find(r => r.kind === "thin").thread;
	location.hash = "#o=m&s=gil." + thread + "." + gt.pass().threads[thread].from_ns;
	return thread;
});
await quiet(compact);
is((await kinds())[1].includes(opened), false, "a thread that is pinned leaves the thin rows");
ok(
	await compact.evaluate(i => gt.tl.rows.some(r => r.head && r.thread === i), opened),
	"and has all of its own",
);
is(page.troubles.concat(crowded.troubles, compact.troubles), [], "in peace");
await done();

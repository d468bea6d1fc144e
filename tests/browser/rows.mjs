// SPDX-License-Identifier: MIT
// Rows in the reader's order: sorted, kept at the top, aligned by start; arrows along the GIL and
// from waker to woken; the offset from the pinned slice.
import {done, is, ok, open, pageFile, quiet} from "./lib.mjs";
import {hog} from "./programs.mjs";

const program = hog({states: true}),
	file = pageFile({passes: [program]}),
	page = await open(file);
const heads = p =>
	p.evaluate(() => gt.tl.rows.filter(r => r.head).map(r => gt.pass().threads[r.thread].name));
const usual = await heads(page);
is(
	await page.evaluate(() => document.getElementById("order").selectedOptions[0]?.text),
	"By wait",
	"rows are sorted by wait",
);

await page.selectOption("#order", "name");
await quiet(page);
const names = ["io", "MainThread", "Matcher", "worker-1", "worker-2"];
is(await heads(page), names, "rows by name");
await page.evaluate(() => document.getElementById("timeline").scrollIntoView());
const name = await page.evaluate(() => {
	const row = gt.tl.rows.find(r => r.head && r.thread === 3),
		box = document.getElementById("tl").getBoundingClientRect();
	return {x: box.x + 40, y: box.y + row.y + 10 - document.getElementById("tl-box").scrollTop};
});
await page.mouse.click(name.x, name.y);
await quiet(page);
is((await heads(page))[0], "worker-2", "a click on a name keeps the thread at the top");
const other = await open(file, {hash: await page.evaluate(() => location.hash)});
is(
	[await heads(other), await other.inputValue("#order")],
	[["worker-2", ...names.slice(0, 4)], "name"],
	"and a link does",
);
await page.selectOption("#order", "");
await page.evaluate(() => gt.setPin({kind: "gil", thread: 3, at: null, from: 0, to: 1, state: 1}));
await page.keyboard.press("k");
await quiet(page);
is(await heads(page), usual, "K, and the usual order, undo it");

// Tables keep their order, and moments their notes.
const sorted = p =>
	p.evaluate(() => [
		document.querySelector("#threads-body [aria-sort=ascending]")?.textContent,
		document.querySelector("#details .note")?.value,
	]);
await page.click("#threads-body th:first-child button.sort");
await quiet(page);
await page.evaluate(() => {
	location.hash += "&s=gil.1.1000";
});
await quiet(page);
const note = 'Why? <b>&"é,.';
await page.fill("#details .note", note);
await page.keyboard.press("Enter");
await quiet(page);
const noted = await open(file, {hash: await page.evaluate(() => location.hash)});
is(await sorted(noted), ["Thread", note], "a link carries the order of tables, and notes");
ok((await noted.evaluate(() => gt.cardMarkdown())).includes("- Note: Why?"), "so does a card");
await page.fill("#details .note", "");
await page.keyboard.press("Escape");

// A hold of worker-1 between holds of other threads.
const lanes = program.lanes.map(l => l.gil),
	hold = lanes[2].filter(s => s.state === 2)[20],
	all = lanes.flatMap((gil, thread) =>
		gil.filter(s => s.state === 2 && thread !== 2).map(s => ({...s, thread})),
	),
	before = all.filter(s => s.to <= hold.from).reduce((a, b) => (b.to > a.to ? b : a)),
	after = all.filter(s => s.from >= hold.to).reduce((a, b) => (b.from < a.from ? b : a));
const pin = async text => {
	await page.evaluate(s => {
		location.hash = "#s=" + s;
	}, text);
	await quiet(page);
	return page.evaluate(() => gt.arrowsOf());
};
is(
	await pin("gil.2." + (hold.from + 1)),
	[
		{from: before.thread, to: 2, t0: before.to, t1: hold.from},
		{from: 2, to: after.thread, t0: hold.to, t1: after.from},
	],
	"arrows from the releaser to the next holder",
);
const woken = program.lanes[2].cpu.find(s => s.state === 1 && s.waker !== undefined);
is(
	await pin("cpu.2." + woken.from),
	[{from: woken.waker, to: 2, t0: woken.from, t1: woken.from}],
	"and from the waker to the woken",
);

// The tip of a later span says how much later.
await pin("gil.2." + (hold.from + 1));
await page.evaluate(([t]) => gt.setView(t - 1e6, t + 300e6), [hold.from]);
await quiet(page);
await page.evaluate(() => document.getElementById("timeline").scrollIntoView());
const at = await page.evaluate(() => {
	const row = gt.tl.rows.find(r => r.kind === "gil" && r.thread === 2),
		box = document.getElementById("tl").getBoundingClientRect();
	return {x: box.right - 60, y: box.y + row.y + 10 - document.getElementById("tl-box").scrollTop};
});
await page.mouse.move(at.x, at.y);
ok(
	/ms after the start of the pinned slice/.test(await page.textContent("#tip")),
	"the offset from the pinned slice: " + (await page.textContent("#tip")),
);
is(page.troubles, [], "in peace");

// Twenty requests of 20 to 210 ms, each later than the one before.
const dur = 2e9,
	life = i => ({from: i * 80e6, to: i * 80e6 + 20e6 + ((i * 7) % 20) * 10e6});
const server = {
	name: "gil",
	dur,
	threads: [
		{tid: 1, name: "MainThread", main: true},
		...Array.from({length: 20}, (_, i) => ({tid: 2 + i, name: "request-" + i})),
	],
	lanes: [
		{gil: [{from: 0, to: dur, state: 1}]},
		...Array.from({length: 20}, (_, i) => ({
			gil: [
				{from: life(i).from, to: life(i).from + 5e6, state: 3},
				{from: life(i).from + 5e6, to: life(i).to, state: 1},
			],
		})),
	],
};
const requests = await open(pageFile({passes: [server]}));
await requests.click("#slots");
await requests.click("#aligned");
await quiet(requests);
const lives = await requests.evaluate(() =>
	gt.tl.rows
		.filter(r => r.kind === "slot")
		.map(r => r.threads.map(t => gt.pass().threads[t].to_ns - gt.pass().threads[t].from_ns)),
);
is(
	lives,
	Array.from({length: 20}, (_, i) => [210e6 - i * 10e6]),
	"each request has a row, the slowest first",
);
const starts = await requests.evaluate(() => {
	const c = document.getElementById("tl").getContext("2d"),
		hex = d => "#" + [d[0], d[1], d[2]].map(x => x.toString(16).padStart(2, "0")).join(""),
		waits = [gt.palette().wait, gt.palette().waitAlt];
	return gt.tl.rows
		.filter(r => r.kind === "slot" && r.y + r.h < gt.tl.viewHeight)
		.map(r => waits.includes(hex(c.getImageData(gt.GUTTER + 6, r.y + 8, 1, 1).data)));
});
ok(starts.length > 5 && starts.every(x => x), "all begin at the left, with their waits", starts);
is(requests.troubles, [], "in peace");
await done();

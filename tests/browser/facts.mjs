// SPDX-License-Identifier: MIT
// The numbers of the page are those of the JSON in it, and the first screen has the main result.
import {done, is, near, ok, open, pageFile, quiet} from "./lib.mjs";
import {hog} from "./programs.mjs";

const program = hog();
const page = await open(pageFile({passes: [program]}));
const report = await page.evaluate(() =>
	JSON.parse(document.getElementById("gt-report").textContent),
);

const rows = await page.evaluate(() =>
	[...document.querySelectorAll("#threads-body tbody tr")].map(tr => ({
		...tr.dataset,
		cells: [...tr.children].map(c => c.textContent.replace(/\u00a0/g, " ")),
	})),
);
is(
	rows
		.map(r => [+r.tid, +r.hold, +r.wait, +r.free, +r.none, +r.unknown, +r.total])
		.sort((a, b) => a[0] - b[0]),
	report.threads.map(t => [
		t.tid,
		t.hold_ns,
		t.wait_ns,
		t.free_wait_ns,
		t.no_gil_ns,
		t.unknown_ns,
		t.total_ns,
	]),
	"the table of threads is that of the document",
);
const pct = (a, b) =>
	a === 0 ? "0 %" : a / b < 0.0005 ? "<0.1 %" : ((a / b) * 100).toFixed(1) + " %";
is(
	rows.map(r => r.cells.slice(2, 5)),
	rows.map(r => {
		const t = report.threads.find(x => x.tid === +r.tid);
		return [t.no_gil_ns, t.hold_ns, t.wait_ns].map(ns => pct(ns, t.total_ns));
	}),
	"with its shares",
);
is(
	rows.map(r => +r.wait),
	rows.map(r => +r.wait).sort((a, b) => b - a),
	"most wait first",
);
ok(
	report.threads.every(
		t => t.hold_ns + t.wait_ns + t.free_wait_ns + t.no_gil_ns + t.unknown_ns === t.total_ns,
	),
	"and they add up",
);

const drawn = await page.evaluate(() =>
	gt.pass().threads.map((t, i) => [...gt.laneTotals(gt.store().gil[i], 0, gt.pass().dur_ns)]),
);
is(
	drawn.map(s => [s[2], s[3] + s[4], s[5], s[1], s[0]]),
	report.threads.map(t => [t.hold_ns, t.wait_ns, t.free_wait_ns, t.no_gil_ns, t.unknown_ns]),
	"the lanes have the same totals to the nanosecond",
);

const cells = await page.evaluate(() =>
	[...document.querySelectorAll("#blame-body button[data-ns]")]
		.map(b => +b.dataset.ns)
		.sort((a, b) => a - b),
);
is(
	cells,
	report.blame
		.map(b => b.wait_ns)
		.filter(Boolean)
		.sort((a, b) => a - b),
	"the blame matrix is the document's blame",
);

// The longest wait of all, from the spans themselves.
const waits = program.lanes
	.flatMap((l, t) => l.gil.filter(s => s.state === 3).map(s => s.to - s.from))
	.sort((a, b) => b - a);
const listed = await page.evaluate(() =>
	[...document.querySelectorAll("#waits-body tbody tr")].map(tr =>
		tr.cells[0].textContent.replace(/\u00a0/g, " "),
	),
);
is(listed[0], Math.round(waits[0] / 1e6) + " ms", "the longest wait leads its table");
is(listed.length, 10, "of ten, with a button for the rest");
await page.click("#waits-body .more");
is(
	await page.locator("#waits-body tbody tr").count(),
	Math.min(100, waits.length),
	"which shows them",
);

// The first screen has the findings, and the timeline beside them.
const first = await page.evaluate(() => {
	const li = document.querySelector("#findings-body li"),
		box = e => document.querySelector(e).getBoundingClientRect();
	return {
		text: li.textContent.replace(/\u00a0/g, " "),
		bottom: li.getBoundingClientRect().bottom,
		strip: box("#strip").bottom,
		timeline: box("#tl-box").bottom,
		beside: box("#findings").right <= box("#timeline").left,
	};
});
const long = program.lanes[1].gil
	.filter(s => s.state === 2)
	.sort((a, b) => b.to - b.from - (a.to - a.from))[0];
ok(
	first.text.includes("Matcher") &&
		first.text.includes("Worst of 1 place") &&
		first.text.includes((long.from / 1e9).toFixed(3) + " s"),
	"the hog and the worst place are named",
	first.text,
);
ok(
	first.bottom < 900 && first.strip < 900 && first.timeline <= 900 && first.beside,
	"on the first screen, beside the timeline, which ends there",
	first,
);

// A click leads to the moment.
await page.click("#findings-body .title");
await quiet(page);
is(
	await page.evaluate(
		() =>
			gt.tl.rows.length > 0 &&
			document.getElementById("details-h").textContent.replace(/\u00a0/g, " "),
	),
	"Matcher holds the GIL · 812 ms",
	"a click pins the hold",
);
const view = await page.evaluate(() => ({...gt.view}));
ok(
	view.from < long.from && view.to > long.to && view.to - view.from < 5 * (long.to - long.from),
	"and shows it",
);
ok(
	/812\.345.*ms/.test((await page.textContent("#details-body")).replace(/[\u00a0\u2009]/g, "")) ||
		/812\.345/.test(await page.textContent("#details-body")),
	"to the nanosecond",
);

// The tables are accessible.
const bad = await page.evaluate(() =>
	[...document.querySelectorAll("main table")]
		.filter(t => t.closest("#static") === null)
		.filter(
			t =>
				!t.caption ||
				[...t.querySelectorAll("th")].some(th => !th.scope) ||
				(t.closest(".table") &&
					!t.querySelector("[aria-sort='descending'],[aria-sort='ascending']")),
		)
		.map(t => t.outerHTML.slice(0, 200)),
);
is(bad, [], "each table has a caption, scopes and its order");
const order = () =>
	page.evaluate(() =>
		[...document.querySelectorAll("#threads-body tbody tr")].map(tr => tr.dataset.tid),
	);
const head = page.locator("#threads-body thead button", {hasText: "Has GIL"});
await head.click();
const byHold = await order();
is(
	byHold.map(tid => report.threads.find(t => t.tid === +tid).hold_ns),
	report.threads.map(t => t.hold_ns).sort((a, b) => b - a),
	"a head sorts",
);
is(
	await page.evaluate(() =>
		[...document.querySelectorAll("#threads-body th[aria-sort='descending']")].map(
			th => th.textContent,
		),
	),
	["Has GIL"],
	"and says so",
);
await page.locator("#threads-body thead button", {hasText: "Has GIL"}).click();
is(await order(), byHold.slice().reverse(), "and turns round");

// The matrix filters.
await page.locator("#blame-body tbody tr").first().locator("button[data-ns]").first().click();
await quiet(page);
is(
	await page.evaluate(
		() => [...new Set(gt.tl.rows.map(r => r.thread).filter(t => t !== undefined))].length,
	),
	2,
	"a cell of the matrix shows those two threads",
);
await page.click("#filter-clear");
await quiet(page);
is(
	await page.evaluate(
		() => [...new Set(gt.tl.rows.map(r => r.thread).filter(t => t !== undefined))].length,
	),
	5,
	"until all are wanted again",
);

// Quantiles are read from the buckets.
const all = waits.slice().sort((a, b) => a - b),
	p50 = all[Math.floor(all.length * 0.5)];
const said = /half are shorter than ([\d.]+)\u00a0(\S+),/.exec(
	await page.textContent("#histogram-body"),
);
near(
	+said[1] * {ms: 1e6, µs: 1e3, s: 1e9}[said[2]],
	p50,
	p50 * 0.03,
	"the median wait of the histogram",
);
const half = /waits longer than ([\d.]+)\u00a0(\S+)\. /.exec(
	await page.textContent("#histogram-body"),
);
const time = all.reduce((a, b) => a + b, 0);
let sum = 0;
const middle = all.find(ns => (sum += ns) >= time / 2);
near(
	+half[1] * {ms: 1e6, µs: 1e3, s: 1e9}[half[2]],
	middle,
	middle * 0.03,
	"above which half of the time was waited",
);
is(page.troubles, [], "in peace");
await done();

// SPDX-License-Identifier: MIT
// The page, the JSON document and the terminal's table of one recording agree.
import {readFileSync} from "node:fs";
import {done, is, ok, open, quiet} from "./lib.mjs";
import {agreeStatic, agreeTables} from "./tables.mjs";

const [html, json, table] = process.argv.slice(2);
const page = await open(html);
is(page.troubles, [], "a recorded page opens in peace");
is(await page.evaluate(() => gt.loading.errors), [], "every block was read");
const report = JSON.parse(readFileSync(json, "utf8"));
is(
	JSON.parse(await page.evaluate(() => document.getElementById("gt-report").textContent)),
	report,
	"the document in the page is that of --json",
);

const rows = await page.evaluate(() =>
	[...document.querySelectorAll("#threads-body tbody tr")].map(tr => ({
		...tr.dataset,
		cells: [...tr.cells].map(c => c.textContent.replace(/\u00a0/g, " ")),
	})),
);
const by = new Map(report.threads.map(t => [t.tid, t]));
is(rows.length, report.threads.length, "every thread has its row");
is(
	rows.map(r => [+r.hold, +r.wait, +r.free, +r.none, +r.unknown, +r.total]),
	rows.map(r => {
		const t = by.get(+r.tid);
		return [t.hold_ns, t.wait_ns, t.free_wait_ns, t.no_gil_ns, t.unknown_ns, t.total_ns];
	}),
	"with the document's numbers",
);

const lanes = await page.evaluate(() =>
	gt
		.pass()
		.threads.map((t, i) => [
			t.tid,
			gt.store().gil[i] ? [...gt.laneTotals(gt.store().gil[i], 0, gt.pass().dur_ns)] : null,
		]),
);
is(
	lanes.filter(([, s]) => s).map(([tid, s]) => [tid, s[2], s[3] + s[4], s[5], s[1], s[0]]),
	lanes
		.filter(([, s]) => s)
		.map(([tid]) => {
			const t = by.get(tid);
			return [tid, t.hold_ns, t.wait_ns, t.free_wait_ns, t.no_gil_ns, t.unknown_ns];
		}),
	"and so have the lanes",
);

// thread  total ms  no gil%  has gil%  gil wait%  free wait%  unknown%  longest wait ms  longest hold ms
// and lock wait% after no gil%, probes% and calls% at the end, if some thread has much of it.
const text = readFileSync(table, "utf8").split("running%")[0],
	locks = text.includes("lock wait%"),
	columns = 8 + ["lock wait%", "probes%", "calls%"].filter(c => text.includes(c)).length;
const printed = text
	.split("\n")
	.map(l => l.trim().split(/\s+/))
	.filter(
		words =>
			words.length > columns && words.slice(-columns).every(w => /^[\d,]+\.\d+$/.test(w)),
	)
	.map(words => {
		const numbers = words.slice(-columns);
		if (locks) numbers.splice(2, 1);
		return [words.join(" "), words.slice(0, -columns).join(" "), ...numbers];
	});
is(printed.length, report.threads.length, "the terminal's table has them too");
const share = text => (text.startsWith("<") ? 0 : parseFloat(text));
const differ = printed.filter(([, name, , none, hold, wait, free]) => {
	const tid = +/(\d+)\*?$/.exec(name)[1],
		r = rows.find(x => +x.tid === tid),
		cells = r && r.cells.filter((_, i) => !locks || i !== 3);
	const near = (a, b) => Math.abs(a - b) <= 0.1001;
	return (
		!r ||
		!near(share(cells[2]), +none) ||
		!near(share(cells[3]), +hold) ||
		!near(share(cells[4]), +wait) ||
		!near(share(cells[5]), +free)
	);
});
is(
	differ.map(m => m[0]),
	[],
	"with the same shares",
);

await agreeTables(page, report, "hog");
await agreeStatic(page, report, "hog");

// The first screen shows the hog, the time and the duration. On a busy host, another thread may be one, too:
// that was preempted while it held the GIL.
const caused = new Map();
for (const b of report.blame) caused.set(b.holder_tid, (caused.get(b.holder_tid) || 0) + b.wait_ns);
const costs = t => caused.get(t.tid) || 0;
const hogs = [
	...report.threads.filter(t => t.name === "hog"),
	report.threads.reduce((a, b) => (costs(b) > costs(a) ? b : a)),
	report.threads.reduce((a, b) => (b.longest_hold_ns > a.longest_hold_ns ? b : a)),
];
const first = await page.evaluate(() => {
	const li = document.querySelector("#findings-body li");
	return {text: li.textContent, bottom: li.getBoundingClientRect().bottom};
});
ok(first.bottom < 900, "the first finding is on the first screen");
await page.click("#findings-body .title");
await quiet(page);
ok(
	new RegExp("tid (" + hogs.map(t => t.tid).join("|") + ")(?!\\d)").test(
		await page.textContent("#details-body"),
	),
	"and it is the hog's",
	await page.textContent("#details-body"),
	hogs,
);
is(page.troubles, [], "in peace");
await done();

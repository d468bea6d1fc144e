// SPDX-License-Identifier: MIT
// The page of an interpreter without a GIL shows what blocks instead, with the numbers of the
// JSON document.
import {readFileSync} from "node:fs";
import {done, is, ok, open, quiet} from "./lib.mjs";
import {agreeTables} from "./tables.mjs";

const [html, json] = process.argv.slice(2);
const page = await open(html);
is(page.troubles, [], "the page opens in peace");
is(await page.evaluate(() => gt.loading.errors), [], "every block was read");
const report = JSON.parse(readFileSync(json, "utf8"));
const by = new Map(report.threads.map(t => [t.tid, t]));
const blocked = t => t.lock_wait_ns + t.stopped_ns;

const rows = await page.evaluate(() =>
	[...document.querySelectorAll("#threads-body tbody tr")].map(tr => ({...tr.dataset})),
);
is(
	rows.map(r => [+r.hold, +r.wait, +r.none]),
	rows.map(r => {
		const t = by.get(+r.tid);
		return [t.stopping_ns, blocked(t), t.no_gil_ns - t.stopping_ns - blocked(t)];
	}),
	"threads: stops the others, is blocked, is free",
);
const heads = await page.evaluate(() =>
	[...document.querySelectorAll("#threads-body th[scope=col]")].map(th => th.textContent),
);
ok(
	heads.includes("Blocked") && heads.includes("Free"),
	"and the columns say so",
	heads,
	"Blocked, Free",
);
ok(
	!/(holds|waits for|held) the GIL/.test(
		await page.evaluate(() => document.querySelector("main").innerText),
	),
	"nothing is said of a GIL",
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
	lanes.filter(([, s]) => s).map(([, s]) => [s[2], s[3], s[4]]),
	lanes
		.filter(([, s]) => s)
		.map(([tid]) => {
			const t = by.get(tid);
			return [t.stopping_ns, t.lock_wait_ns, t.stopped_ns];
		}),
	"so do the lanes",
);

const cells = await page.evaluate(() =>
	[...document.querySelectorAll("#blame-body [data-ns]")]
		.map(b => +b.dataset.ns)
		.sort((a, b) => a - b),
);
const sum = new Map();
for (const b of report.lock_blame) {
	const key = [b.waiter_tid, b.released_by_tid].join();
	sum.set(key, (sum.get(key) || 0) + b.wait_ns);
}
is(
	cells,
	[...sum.values()].sort((a, b) => a - b),
	"the matrix is who was blocked until who let go",
);

await agreeTables(page, report, "locks");

// That of the second to come: first the holder let go, then the first to come.
await page.evaluate(() =>
	[...document.querySelectorAll("#waits-body tbody tr")]
		.find(tr => tr.cells[1].textContent === "second")
		.querySelector("button.link")
		.click(),
);
await quiet(page);
const details = await page.textContent("#details");
ok(
	/second waits for a lock/.test(details),
	"a wait can be looked at",
	details,
	"second waits for a lock",
);
ok(
	/Released by.*MainThread.*first/.test(details),
	"with those who let go",
	details,
	"MainThread, then first",
);
ok(/wait .*nogil\.py/.test(details), "and the function that waits", details, "wait");
ok(
	/wait.*waits for a _thread\.lock/.test(await page.textContent("#hogs-body")),
	"functions are listed",
	await page.textContent("#hogs-body"),
	"wait",
);
is(page.troubles, [], "in peace");
await done();

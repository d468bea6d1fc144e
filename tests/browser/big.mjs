// SPDX-License-Identifier: MIT
// A million events through the real writer: small enough, all read, and right to the nanosecond.
import {readFileSync, statSync} from "node:fs";
import {done, is, ok, open, quiet} from "./lib.mjs";

const [html, json] = process.argv.slice(2);
ok(statSync(html).size <= 8e6, "a million events take at most 8 MB: " + statSync(html).size);
const report = JSON.parse(readFileSync(json, "utf8"));
const page = await open(html);
is(page.troubles, [], "they open in peace");
is(await page.evaluate(() => gt.loading.errors), [], "every block was read");
ok((await page.evaluate(() => gt.loading.events)) >= 1e6, "all of them");
const want = new Map(
	report.threads.map(t => [
		t.tid,
		[t.hold_ns, t.wait_ns, t.free_wait_ns, t.no_gil_ns, t.unknown_ns],
	]),
);
const got = await page.evaluate(() =>
	gt
		.pass()
		.threads.map((t, i) => [t.tid, [...gt.laneTotals(gt.store().gil[i], 0, gt.pass().dur_ns)]]),
);
is(
	got.map(([tid, s]) => [tid, [s[2], s[3] + s[4], s[5], s[1], s[0]]]),
	got.map(([tid]) => [tid, want.get(tid)]),
	"GIL lanes have the document's totals",
);
const states = new Map(report.threads.map(t => [t.tid, t.states]));
const cpu = await page.evaluate(() =>
	gt
		.pass()
		.threads.map((t, i) => [t.tid, [...gt.laneTotals(gt.store().cpu[i], 0, gt.pass().dur_ns)]]),
);
is(
	cpu.map(([, s]) => s),
	cpu.map(([tid]) =>
		[
			"unknown_ns",
			"running_ns",
			"runnable_ns",
			"sleeping_ns",
			"uninterruptible_ns",
			"gil_sleep_ns",
		].map(k => states.get(tid)[k]),
	),
	"and so have CPU lanes",
);

// Any part of a lane is the sum of its spans.
const parts = await page.evaluate(() => {
	const dur = gt.pass().dur_ns,
		bad = [];
	let seed = 1;
	for (let k = 0; k < 300; k++) {
		seed = (seed * 48271) % 2147483647;
		const thread = k % gt.pass().threads.length,
			lane = gt.store().gil[thread],
			from = Math.floor((seed / 2147483647) * dur * 0.9),
			to = from + Math.floor(dur * Math.pow(10, -(k % 7)) * 0.1);
		const sum = [0, 0, 0, 0, 0, 0];
		lane.each(from, to, (a, b, state) => {
			sum[state] += Math.min(b, to) - Math.max(a, from);
		});
		const fast = [...gt.laneTotals(lane, from, to)];
		if (sum.some((x, i) => x !== fast[i])) bad.push([thread, from, to, sum, fast]);
	}
	return bad;
});
is(parts, [], "prefix sums are the sums of the spans");

is(
	await page.evaluate(() => gt.flameBuild("on-gil").root.ns),
	report.threads.reduce((n, t) => n + t.hold_ns, 0),
	"the flame graph has all the time that threads held the GIL",
);
await page.fill("#search", "nothing has such a name");
await quiet(page);
is(await page.textContent("#found"), "nothing found", "and it can be searched");
await done();

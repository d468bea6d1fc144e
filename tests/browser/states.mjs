// SPDX-License-Identifier: MIT
// States, counters and losses of real recordings: the page has what the document has.
import {readFileSync} from "node:fs";
import {done, is, ok, open} from "./lib.mjs";

const [whole, lossy] = process.argv.slice(2);
const STATES = ["unknown_ns", "running_ns", "runnable_ns", "sleeping_ns", "uninterruptible_ns", "gil_sleep_ns"];

async function agrees(name, path) {
	const page = await open(path + ".html");
	const report = JSON.parse(readFileSync(path + ".json", "utf8"));
	is(await page.evaluate(() => gt.loading.errors), [], name + ": every block was read");
	const lanes = await page.evaluate(() => gt.pass().threads.map((t, i) => [t.tid, gt.store().cpu[i] ? [...gt.laneTotals(gt.store().cpu[i], 0, gt.pass().dur_ns)].slice(0, 6) : null]));
	is(lanes.filter(([, sums]) => sums).length, report.threads.length, name + ": every thread has its states");
	const by = new Map(report.threads.map(t => [t.tid, STATES.map(s => t.states[s])]));
	is(lanes.map(([tid, sums]) => [tid, sums]), lanes.map(([tid]) => [tid, by.get(tid)]), name + ": which are the document's");
	const sums = await page.evaluate(() => {
		const all = [];
		gt.store().counters.forEach((counters, thread) => counters.forEach((sections, counter) => all.push({name: gt.pass().counters[counter], tid: gt.pass().threads[thread].tid, samples: sections.reduce((n, s) => n + s.n, 0)})));
		return all;
	});
	const sorted = list => list.map(c => [c.name, c.tid, c.samples].join(" ")).sort();
	is(sorted(sums), sorted(report.counters), name + ": and so are the counters");
	is(page.troubles, [], name + ": in peace");
	return page;
}

const page = await agrees("whole", whole);
ok(await page.evaluate(() => gt.tl.rows.some(r => r.kind === "counter")), "whole: counters have rows");
is(await page.evaluate(() => gt.store().lost.length), 0, "whole: nothing is lost");
const less = await agrees("lossy", lossy);
ok(await less.evaluate(() => gt.store().lost.length) > 0, "lossy: where records were lost is there");
await done();

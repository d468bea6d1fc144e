// SPDX-License-Identifier: MIT
// States, counters and losses of real recordings: the page agrees with the document.
import {readFileSync} from "node:fs";
import {done, is, ok, open} from "./lib.mjs";
import {agreeTables} from "./tables.mjs";

const [whole, lossy] = process.argv.slice(2);
const STATES = [
	"unknown_ns",
	"running_ns",
	"runnable_ns",
	"sleeping_ns",
	"uninterruptible_ns",
	"gil_sleep_ns",
];

async function agrees(name, path) {
	const page = await open(path + ".html");
	const report = JSON.parse(readFileSync(path + ".json", "utf8"));
	is(await page.evaluate(() => gt.loading.errors), [], name + ": every block was read");
	const lanes = await page.evaluate(() =>
		gt
			.pass()
			.threads.map((t, i) => [
				t.tid,
				gt.store().cpu[i]
					? [...gt.laneTotals(gt.store().cpu[i], 0, gt.pass().dur_ns)].slice(0, 6)
					: null,
			]),
	);
	is(
		lanes.filter(([, sums]) => sums).length,
		report.threads.length,
		name + ": every thread has its states",
	);
	const by = new Map(report.threads.map(t => [t.tid, STATES.map(s => t.states[s])]));
	is(
		lanes.map(([tid, sums]) => [tid, sums]),
		lanes.map(([tid]) => [tid, by.get(tid)]),
		name + ": which are the document's",
	);
	const sums = await page.evaluate(() => {
		const all = [];
		gt.store().counters.forEach((counters, thread) =>
			counters.forEach((sections, counter) =>
				all.push({
					name: gt.pass().counters[counter],
					tid: gt.pass().threads[thread].tid,
					samples: sections.reduce((n, s) => n + s.n, 0),
				}),
			),
		);
		return all;
	});
	const sorted = list => list.map(c => [c.name, c.tid, c.samples].join(" ")).sort();
	is(sorted(sums), sorted(report.counters), name + ": and so are the counters");
	const another = await open(path + ".html"); // in which every row is asked for
	await agreeTables(another, report, name);
	await another.close();
	is(page.troubles, [], name + ": in peace");
	return page;
}

const page = await agrees("whole", whole);
ok(
	await page.evaluate(() => gt.tl.rows.some(r => r.kind === "counter")),
	"whole: counters have rows",
);
is(await page.evaluate(() => gt.store().lost.length), 0, "whole: nothing is lost");

// Each runnable span of 0.1 ms and more, and the rows of the CPU's owners meanwhile.
const queued = await page.evaluate(() => {
	const all = {spans: 0, without: 0, more: 0, less: 0, cpus: 0, pin: null};
	let longest = 0;
	gt.store().cpu.forEach((lane, thread) =>
		lane.each(0, gt.pass().dur_ns, (from, to, state) => {
			if (state !== 2 || to - from < 100000) return;
			const rows = (gt.store().queued[thread] || []).flatMap(s =>
				[...s.time.keys()]
					.filter(i => s.time[i] === from)
					.map(i => ({ns: s.dur[i], cpu: s.cpu[i]})),
			);
			const sum = rows.reduce((n, r) => n + r.ns, 0);
			all.spans++;
			all.without += !rows.length;
			all.more += sum > to - from;
			all.less += sum < to - from && rows.length < 6;
			all.cpus += rows.some(r => r.cpu > 0);
			if (to - from > longest) {
				longest = to - from;
				all.pin = {thread, from, ns: to - from};
			}
		}),
	);
	return all;
});
ok(queued.spans > 0, "whole: there are times in line");
is(
	[queued.without, queued.more, queued.less, queued.spans - queued.cpus],
	[0, 0, 0, 0],
	"whole: all of each is had by somebody, and for which CPU is known",
);
await page.evaluate(pin => {
	location.hash = "s=cpu." + pin.thread + "." + pin.from;
}, queued.pin);
await page.waitForFunction(() =>
	/CPU used meanwhile by/.test(document.getElementById("details").textContent),
);
ok(
	/Queued on\s*CPU \d/.test(await page.textContent("#details")),
	"whole: the details of the longest say for which CPU, and who had it",
);
const inLine = JSON.parse(readFileSync(whole + ".json", "utf8")).starvation.filter(
	r => r.runnable_ns > 0,
);
const rows = await page.evaluate(() => document.querySelectorAll("#starved-body tbody tr").length);
is(rows, Math.min(10, inLine.length), "whole: the table has the document's rows");

// The flame graphs are the folded stacks.
for (const mode of ["on-gil", "off-gil", "off-cpu"]) {
	const drawn = await page.evaluate(mode => {
		for (let i = 0; gt.pass().name !== (mode === "off-cpu" ? "stacks" : "gil"); i++)
			gt.setPass(i);
		gt.setView(0, gt.pass().dur_ns);
		const lines = {};
		const walk = (node, path) => {
			let own = node.ns;
			for (const kid of node.kids.values()) {
				walk(kid, [...path, kid.key]);
				own -= kid.ns;
			}
			if (own > 0 && path.length) lines[path.join(";")] = own;
		};
		for (const [key, top] of gt.flameBuild(mode).root.kids)
			walk(top, [String(gt.pass().threads[key.split("\0")[1]].tid)]);
		return lines;
	}, mode);
	const folded = {};
	for (const line of readFileSync(whole + "." + mode, "utf8")
		.trimEnd()
		.split("\n")) {
		const m = /^(.*) (\d+)$/.exec(line),
			path = m[1].split(";");
		path[0] = path[0].replace(/.* /, "");
		if (path[1] === "[no Python frame]") path.pop();
		folded[path.join(";")] = +m[2];
	}
	ok(Object.keys(folded).length > 5, "whole: there are stacks " + mode, Object.keys(folded));
	is(
		Object.entries(drawn).sort(),
		Object.entries(folded).sort(),
		"whole: the flame graph " + mode + " is what --export writes",
	);
}
const less = await agrees("lossy", lossy);
ok(
	(await less.evaluate(() => gt.store().lost.length)) > 0,
	"lossy: where records were lost is there",
);
await done();

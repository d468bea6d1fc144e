// SPDX-License-Identifier: MIT
// What the page says of one thing in several places agrees, and what it leaves out is counted.
import {done, is, ok, open, pageFile, quiet} from "./lib.mjs";

const ms = 1e6,
	dur = 200 * ms;
const text = async (page, selector) =>
	((await page.textContent(selector)) || "").replace(/\u00a0/g, " ");

// A thread waits for 100 ms, in which ten others hold the GIL for 10 ms each, of which none has a
// name in common with another one. Then one of them holds it for 3 ms while it waits.
const holders = "abcdefghij".split("");
const waiter = [
	{from: 0, to: 100 * ms, state: 3},
	{from: 100 * ms, to: 110 * ms, state: 2},
	{from: 110 * ms, to: 113 * ms, state: 3},
	{from: 113 * ms, to: 114 * ms, state: 2},
	{from: 114 * ms, to: dur, state: 1},
];
const lanes = holders.map((_, i) => ({
	gil: [
		i && {from: 0, to: i * 10 * ms, state: 1},
		{from: i * 10 * ms, to: (i + 1) * 10 * ms, state: 2},
		...(i === 9
			? [
					{from: 100 * ms, to: 110 * ms, state: 1},
					{from: 110 * ms, to: 113 * ms, state: 2},
					{from: 113 * ms, to: dur, state: 1},
				]
			: [{from: (i + 1) * 10 * ms, to: dur, state: 1}]),
	].filter(Boolean),
}));
const names = holders.map(c => "holder " + c);
const program = (threads = names) => ({
	name: "gil",
	dur,
	threads: [
		{tid: 1, name: "MainThread", main: true},
		...threads.map((name, i) => ({tid: 10 + i, name})),
	],
	lanes: [{gil: waiter}, ...lanes],
});
const page = await open(pageFile({passes: [program()]}), {hash: "#s=gil.0.1000000"});
const details = await text(page, "#details-body");
ok(!/Mostly|Mainly/i.test(details), "no tenth of a wait is called most of it", details);
ok(
	/GIL holders meanwhile · 8 of 10 threads/.test(details) &&
		details.includes("2 other threads: 20.0 ms in all"),
	"a list that is cut says how many there are, and how much the others have",
	details,
);
const longest = await text(page, "#waits-body tbody tr");
ok(longest.includes("10 threads"), "nor in the table of the longest waits", longest);

// In a crowd, the crowd held it.
const crowd = await open(
	pageFile({
		passes: [program(holders.map((_, i) => "pool-" + i)), program(names)]
			.slice(0, 1)
			.map(p => ({
				...p,
				threads: [...p.threads, ...["x", "y", "z"].map((name, i) => ({tid: 30 + i, name}))],
				lanes: [
					...p.lanes,
					...[0, 1, 2].map(() => ({gil: [{from: 0, to: dur, state: 1}]})),
				],
			})),
	}),
	{hash: "#s=gil.0.1000000"},
);
ok(
	(await text(crowd, "#details-body")).includes("Mostly forpool-*"),
	"of a crowd that held it throughout, the crowd is named",
	await text(crowd, "#details-body"),
);
ok((await text(crowd, "#waits-body tbody tr")).includes("pool-*"), "in the table, too");

is(
	[page, crowd].flatMap(p => p.troubles),
	[],
	"in peace",
);

let locked = 0; // threads that waited for locks
let waits = 0; // pairs of a thread that waited and one that held the GIL meanwhile
let some = false; // any table of the critical path or of locks
// On real recordings: a finding leads to a place, of which the lanes say the same.
for (const path of process.argv.slice(2)) {
	const name = path.replace(/.*\//, ""),
		real = await open(path);
	const findings = await real.evaluate(
		() => JSON.parse(document.getElementById("gt-report").textContent).findings,
	);
	is(
		await real.locator("#findings-body li").count(),
		findings.length,
		name + ": " + findings.length + " findings are listed",
	);
	for (const [i, f] of findings.entries()) {
		const [place] = f.places;
		if (!place || !("tid" in place)) continue;
		await real.evaluate(at => {
			document.querySelectorAll("#findings-body .title")[at].click();
		}, i);
		await quiet(real);
		const [from, waits] = await real.evaluate(({from_ns, to_ns}) => {
			const at = /s=(gil|cpu)\.(\d+)\.(\d+)/.exec(location.hash),
				{threads} = gt.pass(),
				others = gt
					.store()
					.gil.filter(
						(_, t) => t !== +at?.[2] && threads[t].pid === threads[at?.[2]]?.pid,
					);
			return [
				+at?.[3],
				others.reduce((sum, lane) => sum + gt.laneTotals(lane, from_ns, to_ns)[3], 0),
			];
		}, place);
		// A hand-off is a part of a wait, and the CPU's lanes may not have been recorded.
		if (["call", "function", "thread", "lock"].includes(f.kind))
			is(from, place.from_ns, name + ": finding " + (i + 1) + " leads to its worst place");
		// Of a function, as its calls tell, the cost is only of the part of the hold in which it ran.
		if (f.kind === "function" && f.title.endsWith(" runs while others wait for the GIL"))
			ok(
				place.cost_ns > 0 && place.cost_ns <= waits,
				name + ": the lanes wait at least as long for it as finding " + (i + 1) + " says",
			);
		else if (["call", "function", "thread"].includes(f.kind))
			is(
				waits,
				place.cost_ns,
				name + ": the lanes wait as long for it as finding " + (i + 1) + " says",
			);
	}
	// The tables of locks and of the critical path are the document's.
	const own = await real.evaluate(() => ({
		report: JSON.parse(document.getElementById("gt-report").textContent),
		tables: [...document.querySelectorAll("#own .own")]
			.filter(e => e.offsetParent)
			.map(e => ({
				rows: [...e.querySelectorAll("tbody tr")].map(
					tr => +[...tr.cells].at(-2).textContent,
				),
				left: e.querySelector("p")?.textContent ?? "",
			})),
	}));
	const lists = [
		(own.report.critical_path ?? []).map(r => r.ns),
		(own.report.lock_chains ?? []).map(r => r.wait_ns),
	].filter(list => list.length);
	is(
		own.tables.map(t => t.rows),
		lists.map(list => list.slice(0, 20).map(ns => +(ns / 1e6).toFixed(1))),
		name + ": " + lists.map(list => list.length) + " rows of the critical path and of locks",
	);
	lists.forEach((list, i) => {
		const left = /\d+/.exec(own.tables[i]?.left)?.[0] ?? 0;
		is(+left, Math.max(0, list.length - 20), name + ": those left out are counted");
	});
	some ||= lists.length > 0;
	// What the page finds for each wait, in all, is what the document charges to each holder.
	const charged = await real.evaluate(() => {
		const found = {},
			told = {},
			add = (sums, waiter, holder, ns) =>
				ns && (sums[waiter + " " + holder] = (sums[waiter + " " + holder] ?? 0) + ns);
		gt.store().gil.forEach((lane, waiter) => {
			lane.each(0, gt.pass().dur_ns, (from, to, state, s, i) => {
				if (state !== 3) return;
				const who = gt.holdersOf(from, to, s, i, waiter);
				for (const {thread, ns} of who.list) add(found, waiter, thread, ns);
				add(found, waiter, null, who.nobody);
			});
		});
		for (const b of gt.pass().blame) add(told, b.waiter, b.holder, b.wait_ns);
		const sorted = sums => Object.entries(sums).sort(([a], [b]) => (a < b ? -1 : 1));
		return {found: sorted(found), told: sorted(told)};
	});
	is(charged.found, charged.told, name + ": the holders during all waits are the document's");
	waits += charged.told.length;
	// A bar has the share of waits for locks.
	const bars = await real.evaluate(() =>
		[...document.querySelectorAll("#threads-body tbody tr")].map(tr => {
			const words = tr.querySelector(".sharebar").getAttribute("aria-label");
			return [+tr.dataset.tid, /waits for a lock of the program ([<\d.]+)/.exec(words)?.[1]];
		}),
	);
	const share = t => (100 * t.lock_wait_ns) / (t.total_ns - (t.suspended_ns || 0));
	const of = tid => own.report.threads.find(t => t.tid === tid);
	const waiting = bars.filter(([tid]) => of(tid)?.lock_wait_ns > 0);
	is(
		bars.filter(b => b[1]).map(b => b[0]),
		waiting.map(b => b[0]),
		name + ": the bars of " + waiting.length + " threads have lock waits",
	);
	is(
		waiting.filter(([tid, s]) => !s.startsWith("<") && Math.abs(+s - share(of(tid))) > 0.051),
		[],
		name + ": with their shares",
	);
	locked += waiting.length;
	// An A4 sheet has 718 px between its margins.
	await real.emulateMedia({media: "print"});
	await real.setViewportSize({width: 718, height: 1000});
	await quiet(real);
	const cut = await real.evaluate(() =>
		[...document.querySelectorAll("main table, main dd, main li")]
			.filter(e => e.offsetParent)
			.filter(e => e.getBoundingClientRect().right > document.body.clientWidth)
			.map(e => e.caption?.textContent ?? e.textContent),
	);
	is(cut, [], name + ": print loses no column");
	is(real.troubles, [], name + ": in peace");
}
if (process.argv.length > 2) ok(waits > 0, "there are waits for the GIL");
if (process.argv.length > 2) ok(locked > 0, "there are threads that waited for locks");
if (process.argv.length > 2) ok(some, "there are recordings with a critical path or lock waits");
await done();

// SPDX-License-Identifier: MIT
// Data that only some recordings have: states, wakers, stacks, counters, lost records, two GILs,
// hogs.
import {done, is, near, ok, open, pageFile, quiet} from "./lib.mjs";
import {hog} from "./programs.mjs";

const plain = await open(pageFile({passes: [hog()]}));
is(
	await plain.evaluate(() => [
		document.getElementById("hogs").hidden,
		gt.tl.rows.some(r => r.kind === "cpu" || r.kind === "counter"),
	]),
	[true, false],
	"what was not recorded is not shown",
);

const program = hog({states: true});
program.counters = ["cache-misses"];
program.lanes[1].counters = [
	Array.from({length: 500}, (_, i) => ({at: 1000 + i * 4e6, value: i * 7})),
];
program.lost = [
	{from: 1.5e9, to: 1.6e9, count: 1234, cpu: 1},
	{from: 2e9, to: 2.0001e9, count: 3, cpu: -1},
];
program.stackNames = [
	"",
	"main",
	"hog.py",
	"match",
	"re.py",
	"sre_ucs1_match",
	"libpython3.12.so",
	"futex_wait",
	"[kernel]",
];
program.stacks = [
	{parent: 0, name: 1, module: 2, line: 40, flags: 2},
	{parent: 1, name: 3, module: 4, line: 7, flags: 2},
	{parent: 2, name: 5, module: 6, flags: 0},
	{parent: 3, name: 7, module: 8, flags: 1},
];
program.lanes[1].gil.forEach(s => {
	if (s.state === 2) s.stack = 3;
});
program.lanes[1].cpu.forEach(s => {
	if (s.state === 3) s.stack = 4;
});
program.lanes[1].calls = [];
const hogs = [
	{
		function: "match",
		file: "/usr/lib/re.py",
		line: 7,
		native: "sre_ucs1_match",
		tid: 101,
		holds: 12,
		hold_ns: 9e8,
		longest_hold_ns: 812345678,
		wait_caused_ns: 31e8,
		held_off_cpu_ns: 0,
	},
	{
		function: "step",
		file: "/app/hog.py",
		line: 24,
		native: null,
		tid: 102,
		holds: 5,
		hold_ns: 9e6,
		longest_hold_ns: 5e6,
		wait_caused_ns: 1e6,
		held_off_cpu_ns: 2e6,
	},
];
const page = await open(
	pageFile({
		passes: [program],
		report: {hogs},
	}),
);
is(page.troubles, [], "all kinds of data open in peace");
is(
	await page.evaluate(() =>
		["cpu", "counter", "owner", "py"].map(k => gt.tl.rows.some(r => r.kind === k)),
	),
	[true, true, true, true],
	"each has its rows",
);
is(
	await page.evaluate(() =>
		[...document.querySelectorAll("#hogs-body tbody tr")].map(tr => tr.cells[0].textContent),
	),
	["match re.py:7 in sre_ucs1_match", "step hog.py:24"],
	"calls that keep the GIL, most wait caused first",
);
const totals = await page.evaluate(() =>
	gt.pass().threads.map((t, i) => [...gt.laneTotals(gt.store().cpu[i], 0, gt.pass().dur_ns)]),
);
is(
	totals,
	await page.evaluate(() =>
		gt
			.pass()
			.threads.map(t =>
				[
					"unknown_ns",
					"running_ns",
					"runnable_ns",
					"sleeping_ns",
					"uninterruptible_ns",
					"gil_sleep_ns",
				].map(k => t.states[k]),
			),
	),
	"CPU states have the document's totals",
);

// Details: both stacks, the CPU, the waker, who waited.
await page.click("#findings-body .title");
await quiet(page);
const panels = () =>
	page.evaluate(() =>
		Object.fromEntries(
			[...document.querySelectorAll("#details-body .panel")].map(p => [
				(p.querySelector("h3") || {textContent: "facts"}).textContent,
				p.textContent.replace(/\u00a0/g, " "),
			]),
		),
	);
let p = await panels();
ok(
	p["Python stack"].includes("match re.py:7") && p["Python stack"].includes("main hog.py:40"),
	"the Python stack",
	p,
);
ok(p["Native stack"].includes("sre_ucs1_match libpython3.12.so"), "the native one beside it", p);
ok(/worker-1/.test(p["Threads that waited"]), "who waited", p);
await page.evaluate(() => {
	const s = gt.store().cpu[1];
	const at = s.sections[0].state.findIndex((x, i) => x === 1 && s.sections[0].waker[i]);
	location.hash = "#s=cpu.1." + s.sections[0].start[at];
});
await quiet(page);
p = await panels();
ok(
	/Woken by.*MainThread/.test(p.facts) && /CPU ?1/.test(p.facts),
	"a running span knows its CPU and who woke it",
	p,
);

// A search without such calls goes to holds that have the name in their stack.
await page.fill("#search", "ucs1_ma");
await quiet(page);
const longHolds = program.lanes
	.flatMap((l, thread) => l.gil.filter(s => s.stack && s.state === 2).map(s => ({...s, thread})))
	.sort((a, b) => a.from - b.from);
const said = (await page.textContent("#found")).replace(/\u00a0/g, " ");
ok(
	longHolds.length > 1 && said.startsWith(longHolds.length + " holds · "),
	"holds are found by their stacks: " + said,
	longHolds.length,
);
const pinnedAt = () =>
	page.evaluate(() => /s=gil\.(\d+)\.(\d+)/.exec(location.hash).slice(1).map(Number));
await page.evaluate(() => gt.setPin(null));
await page.click("#found-next");
await quiet(page);
is(await pinnedAt(), [longHolds[0].thread, longHolds[0].from], "the first of them");
await page.click("#found-prev");
await quiet(page);
is(await pinnedAt(), [longHolds.at(-1).thread, longHolds.at(-1).from], "and round to the last");
await page.fill("#search", "");
await quiet(page);

// Flame graph: widths are times.
await page.evaluate(() => {
	gt.setView(0, gt.pass().dur_ns);
	document.getElementById("flame").scrollIntoView();
});
await quiet(page);
await page.locator("#flame-modes button", {hasText: "Holding"}).click();
const frames = await page.evaluate(() =>
	[...document.querySelectorAll("#flame-body button")].map(b => [
		b.textContent,
		parseFloat(b.style.width),
	]),
);
const held = program.lanes.map(l =>
	l.gil.filter(s => s.state === 2).reduce((n, s) => n + s.to - s.from, 0),
);
const all = held.reduce((a, b) => a + b);
near(
	frames.find(f => f[0] === "sre_ucs1_match")[1],
	(held[1] / all) * 100,
	0.1,
	"a frame is as wide as its time",
);
is(
	frames.filter(f => ["main", "match", "sre_ucs1_match"].includes(f[0])).length >= 3,
	true,
	"with its callers above it",
);
const shape = name => page.locator("#flame-modes button", {hasText: name}).click();
const widths = async () =>
	new Map(
		await page.evaluate(() =>
			[...document.querySelectorAll("#flame-body button")].map(b => [
				b.textContent,
				parseFloat(b.style.width),
			]),
		),
	);
const share = (held[1] / all) * 100;
await shape("Python only");
const python = await widths();
near(python.get("match"), share, 0.1, "Python only: a call has the time of its native frames");
is(python.has("sre_ucs1_match"), false, "which are not shown");
await shape("Python only");
await shape("Inverted");
near((await widths()).get("sre_ucs1_match"), share, 0.1, "inverted: what ran has its time");
is(
	await page.evaluate(
		() =>
			[...document.querySelectorAll("#flame-body button")].find(
				b => b.textContent === "sre_ucs1_match",
			).style.top,
	),
	"19px",
	"and stands first",
);
is(
	await page.evaluate(
		() => [...document.querySelectorAll("#flame-body button")].filter(b => !b.tabIndex).length,
	),
	1,
	"the graph is one stop of the Tab key",
);
await shape("Inverted");
await page.locator("#flame-modes button", {hasText: "Off the CPU"}).click();
ok((await page.textContent("#flame-body")).includes("futex_wait"), "why a thread slept");

// Lost records are seen.
const red = await page.evaluate(() => {
	const c = document.getElementById("tl"),
		x = gt.GUTTER + Math.round((1.55 / 2.5) * (c.width - gt.GUTTER)),
		d = c.getContext("2d").getImageData(x, gt.AXIS, 1, 2).data;
	return [d[0], d[1], d[2]];
});
const hit = await page.evaluate(() => gt.palette().hit);
is(
	"#" + red.map(v => v.toString(16).padStart(2, "0")).join(""),
	hit,
	"lost records are marked in time",
);

// Two GILs: each strip has its own holders.
const two = {
	name: "gil",
	dur: 1e6,
	threads: [
		{tid: 1, name: "a", main: true},
		{tid: 2, name: "b"},
	],
	lanes: [
		{
			gil: [
				{from: 0, to: 400000, state: 2, gil: 0},
				{from: 400000, to: 500000, state: 1},
				{from: 500000, to: 1e6, state: 2, gil: 1},
			],
		},
		{
			gil: [
				{from: 0, to: 250000, state: 1},
				{from: 250000, to: 750000, state: 2, gil: 1},
				{from: 750000, to: 1e6, state: 3, gil: 1},
			],
		},
	],
	gils: [0, 1].map(i => ({
		pid: 1,
		address: "0x" + i,
		from_ns: 0,
		to_ns: 1e6,
		held_ns: i ? 1e6 : 4e5,
		wanted_ns: 0,
		handover_ns: 0,
	})),
};
two.gils[1].pid = 2;
const gils = await open(
	pageFile({
		passes: [two],
		report: {
			blocked: [
				{
					function: "get",
					file: "/a/q.py",
					line: 7,
					what: "lock",
					of: "_thread.lock",
					count: 3,
					total_ns: 5e6,
					longest_ns: 4e6,
				},
			],
		},
	}),
);
ok(
	/GIL 1 \(1\).*GIL 2 \(2\)/.test(await gils.textContent("#about-body")),
	"of two processes, each by its number",
	await gils.textContent("#about-body"),
);
ok(
	/get q\.py:7.*waits for a _thread\.lock.*5\.00.ms/.test(await gils.textContent("#hogs-body")),
	"what blocks besides a GIL is told, too",
	await gils.textContent("#hogs-body"),
);
is(
	await gils.evaluate(() => gt.tl.rows.filter(r => r.kind === "owner").length),
	2,
	"a strip for each GIL",
);
is(
	await gils.evaluate(() =>
		[0, 1].map(g => [0, 1].map(t => gt.laneTotals(gt.store().gil[t], 0, 1e6, g)[2])),
	),
	[
		[400000, 0],
		[500000, 500000],
	],
	"with the holds of that GIL alone",
);
is(gils.troubles, [], "in peace");

// A recording that did not watch the GIL: its CPU states are what there is.
const blind = hog({states: true});
blind.gilEvents = 0;
const states = await open(pageFile({passes: [hog({states: true}), {...blind, name: "stacks"}]}), {
	hash: "#p=1",
});
is(
	await states.evaluate(() => [
		gt.pass().name,
		gt.tl.rows.some(r => r.kind === "gil" || r.kind === "owner"),
		gt.tl.rows.some(r => r.kind === "cpu"),
		document.getElementById("blame").hidden,
		document.getElementById("hogs").hidden,
	]),
	["stacks", false, true, true, true],
	"where the GIL was not watched, nothing is said about it",
);
is(
	await states.evaluate(() =>
		[...document.querySelectorAll("#threads-body thead th")].map(th => th.textContent),
	),
	[
		"Thread",
		"Shares of its life",
		"On CPU",
		"Runnable",
		"Asleep",
		"Uninterr.",
		"GIL sleep",
		"Total",
	],
	"but about the CPU",
);
await states.click("#passes button:first-child");
await quiet(states);
is(
	await states.evaluate(() => [
		gt.tl.rows.some(r => r.kind === "gil"),
		document.getElementById("blame").hidden,
		document.getElementById("waits").hidden,
	]),
	[true, false, false],
	"and the other recording has it all",
);
is(states.troubles, [], "in peace");

// Nothing at all.
const none = await open(
	pageFile({passes: [{name: "gil", dur: 0, threads: [], lanes: [], gils: []}]}),
);
is(none.troubles, [], "an empty recording opens in peace");
const many = {name: "gil", dur: 1e9, threads: [], lanes: []};
for (let i = 0; i < 400; i++) {
	many.threads.push({tid: i + 1, name: "pool", main: !i});
	many.lanes.push({
		gil: [
			{from: i * 1000, to: i * 1000 + 500, state: 2},
			{from: i * 1000 + 500, to: 1e9, state: 1},
		],
	});
}
const crowd = await open(pageFile({passes: [many]}));
is(crowd.troubles, [], "so does one of 400 threads of one name");
const lanes = () =>
	crowd.evaluate(() => new Set(gt.tl.rows.filter(r => r.kind === "gil").map(r => r.thread)).size);
is(await lanes(), 40, "of which the first forty have rows");
await crowd.click("#all-threads");
await quiet(crowd);
is([await lanes(), await crowd.isVisible("#all-threads")], [400, false], "and all on demand");
is(
	await crowd.locator("#threads-body tbody tr").count(),
	2,
	"threads of like names are one row of the table, the main thread another",
);
await crowd.locator("#threads-body .more", {hasText: "each of the 400"}).click();
await crowd.locator("#threads-body .more", {hasText: "Show all"}).click();
is(await crowd.locator("#threads-body tbody tr").count(), 400, "on demand each has its own");

// Crowds in the matrix, and the sums that they have to keep.
const server = {
	name: "gil",
	dur: 1e9,
	threads: [{tid: 1, name: "MainThread", main: true}],
	lanes: [{gil: [{from: 0, to: 1e9, state: 3}]}],
	blame: [],
};
for (let i = 0; i < 20; i++) {
	server.threads.push({tid: 100 + i, name: "Thread-" + i + " (serve)"});
	server.lanes.push({
		gil: [
			{from: i * 1e7, to: i * 1e7 + 9e6, state: 2},
			{from: i * 1e7 + 9e6, to: 1e9, state: 1},
		],
	});
}
const hall = await open(pageFile({passes: [server]}));
is(hall.troubles, [], "a server's threads open in peace");
const charged = await hall.evaluate(() => gt.pass().blame.reduce((sum, b) => sum + b.wait_ns, 0));
is(
	await hall.evaluate(() =>
		[...document.querySelectorAll("#blame-body button[data-ns]")].reduce(
			(sum, b) => sum + +b.dataset.ns,
			0,
		),
	),
	charged,
	"the matrix of crowds has all the waiting",
);
ok(
	(await hall.textContent("#blame-body tbody tr")).includes("Thread-* (serve)"),
	"under what their names have in common",
	await hall.textContent("#blame-body"),
);
is(
	await hall.evaluate(() =>
		[...gt.flameBuild("on-gil").root.kids.values()].map(k => [k.name, k.ns]),
	),
	[["Thread-* (serve)", 20 * 9e6]],
	"the flame graph has the crowd as one",
);
await hall.locator("#blame-body button[data-ns]").first().click();
await quiet(hall);
is(
	await hall.evaluate(
		() => new Set(gt.tl.rows.map(r => r.thread).filter(t => t !== undefined)).size,
	),
	2,
	"a click shows the two of the longest wait",
);

// A quantile is read off a bucket, the longest wait is known.
const once = await open(
	pageFile({
		passes: [
			{
				name: "gil",
				dur: 1e7,
				threads: [{tid: 1, name: "a", main: true}],
				lanes: [
					{
						gil: [
							{from: 0, to: 7235237, state: 3},
							{from: 7235237, to: 1e7, state: 2},
						],
					},
				],
			},
		],
	}),
);
ok(
	/99.% shorter than 7\.24.ms\./.test(await once.textContent("#histogram-body")),
	"no quantile is longer than the longest wait",
	await once.textContent("#histogram-body"),
);

// Pairs too many to be listed one by one: the sums are right, and what is left out is said.
const pairs = {
	name: "gil",
	dur: 1e9,
	threads: server.threads.slice(),
	lanes: server.lanes,
	caused: server.threads.map((t, i) => (i === 17 ? 9e8 : 0)),
	crowdBlame: [
		{waiter: 4, holder: 5, wait_ns: 600e6, longest_ns: 2e6, longest_at_ns: 3e6, pairs: 380},
		{waiter: 7, holder: null, wait_ns: 100e6, longest_ns: 1e6, longest_at_ns: 9e6, pairs: 20},
		{waiter: 7, holder: -2, wait_ns: 200e6, longest_ns: 0, longest_at_ns: 0, pairs: 3000},
		{waiter: 0, holder: -2, wait_ns: 50e6, longest_ns: 0, longest_at_ns: 0, pairs: 400},
	],
};
const short = await open(
	pageFile({
		passes: [pairs],
		report: {
			starvation: [
				{tid: 105, by_tid: null, by_name: "cc1", runnable_ns: 60e6},
				{tid: null, by_tid: null, by_name: null, runnable_ns: 40e6},
			],
		},
	}),
);
is(short.troubles, [], "rows of crowds open in peace");
const matrix = await short.evaluate(() =>
	[...document.querySelectorAll("#blame-body tbody tr")].map(tr =>
		[...tr.cells].map(c => c.textContent.replace(/\u00a0/g, " ")),
	),
);
is(
	matrix.map(cells => cells.slice(0, 2)),
	[
		["Thread-* (serve) × 20", "600 ms"],
		["nobody", "100 ms"],
		["3,400 pairs", "250 ms"],
	],
	"the matrix has all the waiting, and a row for what is left out",
);
is(await short.locator("#blame-body button[data-ns]").count(), 2, "which leads nowhere");
await short.evaluate(() =>
	Object.defineProperty(navigator, "clipboard", {
		configurable: true,
		value: {
			writeText: async text => {
				window.copied = text;
			},
		},
	}),
);
await short.locator("#blame-body button", {hasText: "Copy as CSV"}).click();
is(
	(await short.evaluate(() => window.copied)).trim().split(/\r?\n/),
	[
		"holder,waiter,wait_ns,longest_ns,pairs",
		"Thread-* (serve) × 20,Thread-* (serve) × 20,600000000,2000000,380",
		"nobody,Thread-* (serve) × 20,100000000,1000000,20",
		"others,Thread-* (serve) × 20,200000000,0,3000",
		"others,MainThread,50000000,0,400",
	],
	"what is copied says of whom the rows are, and of how many pairs",
);
is(
	(await short.evaluate(() => gt.tl.rows.filter(r => r.kind === "gil").map(r => r.thread)))[0],
	0,
	"the main thread waited most",
);
is(
	(await short.evaluate(() => gt.tl.rows.filter(r => r.kind === "gil").map(r => r.thread)))[1],
	17,
	"and the one that caused most is next",
);
await short.locator("#blame-body button[data-ns]").first().click();
await quiet(short);
is(
	await short.evaluate(() =>
		[...new Set(gt.tl.rows.map(r => r.thread).filter(t => t !== undefined))].sort(
			(a, b) => a - b,
		),
	),
	[4, 5],
	"a click shows the two of the longest wait",
);
is(
	await short.evaluate(() =>
		[...document.querySelectorAll("#starved-body tbody tr")].map(tr =>
			[...tr.cells].map(c => c.textContent.replace(/\u00a0/g, " ")),
		),
	),
	[
		["Thread-* (serve) × 20", "cc1", "60.0 ms", "60.0 %"],
		["others", "others", "40.0 ms", "40.0 %"],
	],
	"so is what is left out of the time in line",
);

// Seven threads with long names: every column of table and matrix is in sight on a laptop's screen.
const wide = {name: "gil", dur: 1e9, threads: [], lanes: []};
for (let i = 0; i < 5; i++) {
	wide.threads.push({tid: 1 + i, name: "downloader-for-europe-west-" + i, main: !i});
	wide.lanes.push({
		gil: Array.from({length: 100}, (_, k) => ({
			from: k * 1e7,
			to: (k + 1) * 1e7,
			state: k % 5 === i ? 2 : 3,
		})),
	});
}
const narrow = await open(pageFile({passes: [wide]}), {width: 1280});
is(
	await narrow.evaluate(() =>
		["threads-body", "blame-body", "waits-body", "holds-body"].filter(
			id => document.getElementById(id).scrollWidth > document.getElementById(id).clientWidth,
		),
	),
	[],
	"nothing is cut off at 1280 pixels",
);
is(
	await narrow.evaluate(() =>
		[...document.querySelectorAll("#threads-body .thread")]
			.map(b => b.textContent.slice(-2))
			.sort(),
	),
	["-0", "-1", "-2", "-3", "-4"],
	"and the names can be told apart",
);
await done();

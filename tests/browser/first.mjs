// SPDX-License-Identifier: MIT
// What the first screen says: findings, which lead to their places; where a program sleeps that does
// not wait for the GIL.
import {done, is, ok, open, pageFile, quiet} from "./lib.mjs";
import {hog} from "./programs.mjs";

const program = hog();
const longest = program.lanes[2].gil
	.filter(s => s.state === 3)
	.reduce((a, b) => (b.to - b.from > a.to - a.from ? b : a));
const place = (tid, {from, to}) => ({tid, from_ns: from, to_ns: to, cost_ns: to - from});
const holds = program.lanes[1].gil.filter(s => s.state === 2);
const page = await open(
	pageFile({
		passes: [program],
		report: {
			findings: [
				{
					kind: "pattern",
					title: "The event loop starves",
					cost_ns: 3e8,
					percent: 40,
					text: "16 times.",
					advice: "Move that work.",
					places: [place(102, longest)],
				},
				{
					kind: "call",
					title: "match keeps the GIL",
					cost_ns: 2e8,
					percent: 30,
					text: "Run by thread Matcher.",
					places: holds.slice(0, 3).map(s => place(101, s)),
				},
				{
					kind: "few-cpus",
					title: "Too few CPUs",
					cost_ns: 1e8,
					percent: 20,
					text: "x",
					places: [],
				},
			],
		},
	}),
);
const opened = () =>
	page.evaluate(() =>
		[...document.querySelectorAll("#findings-body li")].map(li =>
			li.classList.contains("open"),
		),
	);
is(await opened(), [true, false, false], "the first finding is open");
is(
	await page.evaluate(() => document.querySelectorAll("#verdict .findings").length),
	0,
	"the list is beside the timeline only",
);

// Colours of the strip's marks and of a row in which the finding has no place.
const look = () =>
	page.evaluate(() => {
		const row = gt.tl.rows.find(r => r.kind === "gil" && r.thread === 2),
			tl = document.getElementById("tl"),
			scale = tl.width / tl.clientWidth,
			line = tl
				.getContext("2d")
				.getImageData(gt.GUTTER * scale, (row.y + row.h / 2) * scale, 400 * scale, 1).data,
			strip = document.getElementById("strip"),
			marks = strip.getContext("2d").getImageData(0, 10, strip.width, 1).data,
			colors = (d, hex) => {
				const v = parseInt(hex.slice(1), 16);
				let n = 0;
				for (let i = 0; i < d.length; i += 4)
					n += ((d[i] << 16) | (d[i + 1] << 8) | d[i + 2]) === v;
				return n > 0;
			};
		return [colors(line, gt.palette().wait), colors(marks, gt.palette().accent)];
	});
is(await look(), [true, false], "no finding is lit up at first");
await page.hover("#findings-body li:nth-child(2)");
await quiet(page);
is(await look(), [false, true], "the pointer on one marks its places and covers all else");
await page.hover("#timeline-h");
await quiet(page);
is(await look(), [true, false], "until it leaves");

await page.click("#findings-body li:nth-child(1) .title");
await quiet(page);
const pinned = () => page.evaluate(() => /s=gil\.(\d+\.\d+)/.exec(location.hash)?.[1]);
is(await pinned(), "2." + longest.from, "a click leads to the worst place");
await page.keyboard.press("Escape");
await page.click("#findings-body li:nth-child(2) .title");
await quiet(page);
is(await opened(), [false, true, false], "and opens the finding");
await page.keyboard.press("Escape");
for (const at of [0, 1, 2, 0]) {
	await page.click("#findings-body .open .where button");
	await quiet(page);
	is(await pinned(), "1." + holds[at].from, "its button leads to place " + (at + 1));
	await page.keyboard.press("Escape");
}
is(
	await page.evaluate(() => document.querySelectorAll("#findings-body .where").length),
	2,
	"a finding without places has no such button",
);

// The source with its bars: the text of lines, those around them, and a line without text.
const line = (file, at, times) => ({
	function: "f",
	file,
	line: at,
	held_ns: 0,
	caused_ns: 0,
	waited_ns: 0,
	lock_wait_ns: 0,
	lock_caused_ns: 0,
	tid: 101,
	from_ns: holds[0].from,
	to_ns: holds[0].to,
	...times,
});
const sources = await open(
	pageFile({
		passes: [program],
		report: {
			lines: [
				line("/app/a.py", 7, {held_ns: 4e8, caused_ns: 9e8}),
				line("/app/a.py", 12, {waited_ns: 5e8}),
				line("/app/b.py", 3, {caused_ns: 1e6}),
			],
		},
		source: [
			{file: "/app/a.py", line: 6, indent: 0, text: "def f():"},
			{file: "/app/a.py", line: 7, indent: 4, text: "<b>pow</b>(7, 400000)"},
		],
	}),
);
is(
	await sources.evaluate(() =>
		[...document.querySelectorAll("#lines-body details")].map(d => [
			d.open,
			...[...d.querySelectorAll("tr")].map(tr =>
				[...tr.cells].map(c => c.textContent.replace(/\u00a0/g, " ")).join("|"),
			),
		]),
	),
	[
		[
			true,
			"Line|Caused|Held|Waited|Source",
			"6||||def f():",
			"7|900 ms|400 ms||    <b>pow</b>(7, 400000)",
			"⋮",
			"12|||500 ms|f (its source was not recorded)",
		],
		[false],
	],
	"the source has its lines with their times, the file that costs most first",
);
await sources.click("#lines-body details:nth-child(2) summary");
is(
	await sources.locator("#lines-body details:nth-child(2) tbody").textContent(),
	"31.00 msf (its source was not recorded)".replace(" ms", "\u00a0ms"),
	"the others are shown when they are opened",
);
await sources.click("#lines-body tbody button");
await quiet(sources);
is(
	await sources.evaluate(() => /s=gil\.(\d+\.\d+)/.exec(location.hash)?.[1]),
	"1." + holds[0].from,
	"a line leads to the hold or wait that cost most",
);
is(sources.troubles, [], "in peace");

// Two threads that sleep, and hold the GIL for a millisecond in all.
const dur = 1e9;
const calm = {
	name: "gil",
	dur,
	threads: [
		{tid: 1, name: "MainThread", main: true},
		{tid: 2, name: "sleeper"},
	],
	lanes: [0, 1].map(() => ({
		gil: [
			{from: 0, to: 1e6, state: 2},
			{from: 1e6, to: dur, state: 1},
		],
	})),
};
const stacks = {
	...calm,
	name: "stacks",
	gilEvents: 0,
	stackNames: [
		"",
		"main",
		"/app/io.py",
		"nap",
		"clock_nanosleep",
		"libc.so.6",
		"PyObject_Vectorcall",
		"time_sleep",
		"Py_RunMain",
		"trace_call_function",
		"call_function.constprop.0",
	],
	stacks: [
		{parent: 0, name: 8, module: 5, line: 0, flags: 0},
		{parent: 1, name: 1, module: 2, line: 9, flags: 2},
		{parent: 2, name: 3, module: 2, line: 3, flags: 2},
		{parent: 3, name: 10, module: 5, line: 0, flags: 0},
		{parent: 4, name: 9, module: 5, line: 0, flags: 0},
		{parent: 5, name: 6, module: 5, line: 0, flags: 0},
		{parent: 6, name: 7, module: 5, line: 0, flags: 0},
		{parent: 7, name: 4, module: 5, line: 0, flags: 0},
	],
	lanes: [0, 1].map(t => ({
		cpu: [
			{from: 0, to: 1e6, state: 1, cpu: 0},
			{from: 1e6, to: t ? 301e6 : 501e6, state: 3, stack: 8},
			{from: t ? 301e6 : 501e6, to: dur, state: 3, stack: t ? 2 : 8},
		],
	})),
};
const rows = p =>
	p.evaluate(() =>
		[...document.querySelectorAll("#blame-body tbody tr")].map(tr =>
			[...tr.cells].map(c => c.textContent.replace(/\u00a0/g, " ")),
		),
	);
const idle = await open(pageFile({passes: [calm, stacks]}));
is(
	await rows(idle),
	[
		["nap io.py:3 in time_sleep", "1.30 s", "2", "3", "500 ms"],
		["main io.py:9", "699 ms", "1", "1", "699 ms"],
	],
	"instead of a matrix of nothing: the lines that threads sleep in",
);
// Frames of the interpreter are one, or none below a Python frame.
is(
	await idle.evaluate(() => {
		gt.setPass(1);
		const path = n => [n.name, ...[...n.kids.values()].slice(0, 1).flatMap(path)];
		const {root} = gt.flameBuild("off-cpu"),
			paths = [{}, {python: true}].map(how => path(gt.reshape(root, how)).slice(2));
		gt.setPass(0);
		return paths;
	}),
	[
		["Python", "main", "nap", "time_sleep", "clock_nanosleep"],
		["main", "nap"],
	],
	"the flame graph folds what the interpreter runs itself with",
);
await idle.click("#blame-body tbody tr button");
await quiet(idle);
is(
	await idle.evaluate(() => /p=(\d)/.exec(location.hash)?.[1]),
	"1",
	"the longest sleep is shown in the recording that has it",
);
const blind = await open(pageFile({passes: [calm]}));
ok(
	/--state-detect/.test(await blind.textContent("#blame-body")),
	"without stacks, how to get them",
);

// A verdict that the GIL is no problem, and nothing that would cost much.
const mild = await open(
	pageFile({passes: [program], report: {verdict: {kind: "io-bound"}, findings: []}}),
);
is(
	await mild.textContent("#blame-h"),
	"Where the threads sleep",
	"no matrix where the verdict is that the GIL does not limit",
);
is(
	await mild.evaluate(() => [
		document.getElementById("findings").hidden,
		document.getElementById("timeline").getBoundingClientRect().left,
	]),
	[true, 20],
	"without findings, the timeline has all the width",
);
is(page.troubles.concat(idle.troubles, blind.troubles, mild.troubles), [], "in peace");
await done();

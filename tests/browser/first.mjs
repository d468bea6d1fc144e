// SPDX-License-Identifier: MIT
// What the first screen says: patterns with their longest moment; where a program sleeps that does
// not wait for the GIL.
import {done, is, ok, open, pageFile, quiet} from "./lib.mjs";
import {hog} from "./programs.mjs";

const program = hog();
const longest = program.lanes[2].gil
	.filter(s => s.state === 3)
	.reduce((a, b) => (b.to - b.from > a.to - a.from ? b : a));
const page = await open(
	pageFile({
		passes: [program],
		report: {
			patterns: [
				{
					code: "loop-starvation",
					title: "The event loop starves",
					tid: 102,
					longest_ns: longest.to - longest.from,
					text: "16 times.",
				},
			],
		},
	}),
);
ok(
	await page.evaluate(
		() =>
			document.getElementById("patterns").getBoundingClientRect().top <
			document.getElementById("moments").getBoundingClientRect().top,
	),
	"patterns stand under the verdict",
);
await page.click("#patterns button");
await quiet(page);
is(
	await page.evaluate(() => /s=gil\.2\.(\d+)/.exec(location.hash)?.[1]),
	String(longest.from),
	"and lead to their longest moment",
);

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

// A verdict that the GIL is no problem; a pattern without a longest case; nothing knows what ran.
const mild = await open(
	pageFile({
		passes: [{...program, slicesNote: "the trace was cut off"}],
		report: {
			verdict: {kind: "io-bound"},
			patterns: [{code: "ping-pong", title: "Ping-pong", tid: 102, longest_ns: 7, text: "x"}],
		},
	}),
);
is(
	await mild.textContent("#blame-h"),
	"Where the threads sleep",
	"no matrix where the verdict is that the GIL does not limit",
);
ok(
	/Ping-pong: x See the longest wait, at/.test(await mild.textContent("#patterns")),
	"a pattern without a longest case leads to the longest wait",
	await mild.textContent("#patterns"),
);
is(await mild.evaluate(() => document.querySelectorAll("#patterns button").length), 1, "by a link");
is(page.troubles.concat(idle.troubles, blind.troubles, mild.troubles), [], "in peace");
await done();

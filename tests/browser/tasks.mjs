// SPDX-License-Identifier: MIT
// Tasks of event loops on the page: lanes and table have the numbers of the JSON document.
import {readFileSync} from "node:fs";
import {done, is, ok, open, pageFile, quiet} from "./lib.mjs";

const [html, json, requestsHtml, requestsJson] = process.argv.slice(2);
const KINDS = ["running", "late", "waiting", "unknown"];

// The position of a group's lane at a time on the screen; within: whether it is visible.
const laneAt = (page, group, time) =>
	page.evaluate(
		([i, t]) => {
			const row = gt.tl.rows.find(r => r.kind === "tasks" && r.group === i);
			const box = document.getElementById("tl-box");
			box.scrollTop = row.y;
			const at = document.getElementById("tl").getBoundingClientRect();
			const share = (t - gt.view.from) / (gt.view.to - gt.view.from);
			return {
				x: at.left + gt.GUTTER + share * (at.width - gt.GUTTER),
				y: at.top + row.y - box.scrollTop + row.h / 2,
			};
		},
		[group, time],
	);
const tip = page => page.evaluate(() => document.getElementById("tip").innerText);
const view = page => page.evaluate(() => [gt.view.from, gt.view.to]);
const shows = ([from, to], d) => from <= d.at_ns && to >= d.at_ns + d.ns && to - from < 4 * d.ns;

async function hover(page, group, time) {
	await page.evaluate(() => document.getElementById("timeline").scrollIntoView());
	await quiet(page);
	const at = await laneAt(page, group, time);
	await page.mouse.move(at.x, at.y);
	await quiet(page);
	return at;
}

const page = await open(html);
const {groups, count, steps} = JSON.parse(readFileSync(json, "utf8")).tasks;
is(await page.evaluate(() => gt.loading.errors), [], "every block was read");
const lanes = await page
	.evaluate(() => JSON.parse(document.getElementById("gt-meta").textContent))
	.then(meta => {
		is(
			meta.tasks.lanes.map(l => l.dur.reduce((a, b) => a + b)),
			groups.map(() => meta.passes[meta.tasks.pass].dur_ns),
			"there is a lane of each group, as long as the recording",
		);
		return meta.tasks.lanes;
	});
is(
	lanes.map(l => KINDS.map(kind => l[kind].reduce((a, b) => a + b))),
	groups.map(g => KINDS.map(kind => g[kind + "_ns"])),
	"in which tasks ran, were late and waited for as long as in the document",
);

// Its timer was due in the middle of rebuild_index, whatever other threads did.
const late = groups.findIndex(g => g.name.startsWith("serve ")),
	d = groups[late].longest_late;
ok(d.ns > 1e8 && /^rebuild_index /.test(d.function), "a task was late because of a function", d);
await page.locator("#findings-body li[data-kind=task] .title").first().click();
await quiet(page);
const worst = groups.reduce((a, b) => (a.longest_late.ns >= b.longest_late.ns ? a : b));
ok(shows(await view(page), worst.longest_late), "the finding leads there", await view(page));

await page.click("#zoom-fit");
const at = await hover(page, late, d.at_ns + d.ns / 2);
const lines = (await tip(page)).split("\n");
is(lines[0], "serve (late_queue.py:50)", "the lane's text names the group");
ok(
	/^0 running, 1 late, 0 waiting$/.test(lines[1]) || !lanes[late].exact,
	"how many are late",
	lines,
);
ok(
	/ spent \d.* in rebuild_index \(late_queue.py:17\)$/.test(lines.pop()),
	"and because of what",
	lines,
);
const color = await page.evaluate(({x, y}) => {
	const canvas = document.getElementById("tl"),
		box = canvas.getBoundingClientRect();
	const seen = new Set();
	const {data} = canvas.getContext("2d").getImageData(x - box.left - 20, y - box.top, 16, 1);
	for (let i = 0; i < data.length; i += 4)
		seen.add(
			"#" + [...data.slice(i, i + 3)].map(b => b.toString(16).padStart(2, "0")).join(""),
		);
	const {gilsleep, gilsleepAlt} = gt.palette();
	return [[...seen].sort(), [gilsleep, gilsleepAlt].sort()];
}, at);
is(color[0], color[1], "it is hatched there");
await page.mouse.click(at.x, at.y);
await quiet(page);
ok(shows(await view(page), d), "a click zooms to the group's longest delay", await view(page));
ok(!(await page.isVisible("#tip")), "and takes the text away");

// By keyboard: down to the last row, which is a lane of tasks, and to its longest delay.
await page.click("#zoom-fit");
await page.focus("#tl");
for (const row of await page.evaluate(() => gt.tl.rows.map(r => r.kind)))
	if (row !== "process") await page.keyboard.press("ArrowDown");
const last = groups.at(-1).name.replace(/\(.*\//, "(");
is((await tip(page)).split("\n")[0], last, "arrows reach the lanes of tasks");
await page.waitForFunction(
	name => document.getElementById("live").textContent.includes(name),
	last,
);
for (let i = groups.length - 1; i > late; i--) await page.keyboard.press("ArrowUp");
is((await tip(page)).split("\n")[0], "serve (late_queue.py:50)", "each of them");
await page.keyboard.press("Enter");
await quiet(page);
ok(shows(await view(page), d), "and Enter zooms", await view(page));

// What is hidden is in the address.
await page.locator("#toggles button", {hasText: "Tasks"}).click();
await page.waitForFunction(() => /[#&]o=t/.test(location.hash));
const link2 = await open(html, {hash: await page.evaluate(() => location.hash)});
is(
	await link2.evaluate(() => gt.tl.rows.filter(r => r.kind === "tasks").length),
	0,
	"a link carries that tasks are hidden",
);
await link2.close();
await page.locator("#toggles button", {hasText: "Tasks"}).click();

// The table.
const cells = () =>
	page.evaluate(() =>
		[...document.querySelectorAll("#tasks-body tbody tr")].map(tr =>
			[...tr.cells].map(c => c.innerText),
		),
	);
const short = g => g.name.replace(/\(.*\//, "(");
const order = (a, b) => b.steps - a.steps;
is(
	(await cells()).map(c => [c[0], c[1], c[3], c[4]]),
	groups.map(g => [short(g), "asyncio", String(g.tasks), String(g.steps)]),
	"the table has the groups, most late first",
);
await page.click("#tasks-body th:nth-child(5) button");
is(
	(await cells()).map(c => c[0]),
	[...groups].sort(order).map(short),
	"sorted by steps, once asked",
);
ok(
	(await page.textContent("#tasks-note"))
		.replace(/\u00a0/g, " ")
		.startsWith(count + " tasks, " + steps + " steps"),
	"and how many there were of each is said",
);
ok(await page.evaluate(() => document.getElementById("static").offsetHeight === 0), "once only");
is(page.troubles, [], "all in peace");
await page.close();

// A synthetic recording: many groups, of which one was never late, and names that look like code.
const group = (i, more) => ({
	name: "</script><b>task-*" + i,
	named: true,
	loop: "uvloop",
	tasks: 3,
	steps: 9,
	running_ns: 100,
	waiting_ns: 2000,
	late_ns: 400,
	unknown_ns: 500,
	late_inferred_ns: 0,
	late_gil_wait_ns: 300,
	longest_late: {
		task: 1,
		at_ns: 500,
		ns: 300,
		inferred: true,
		loop_tid: 101,
		function: null,
		function_ns: 0,
		slept_ns: 0,
		other_steps: 1,
		gil_wait_ns: 250,
		holder_tid: 102,
		holder_function: "<i>",
	},
	waits: [],
	...more,
});
const made = Array.from({length: 17}, (_, i) =>
	group(i, i === 1 ? {late_ns: 0, longest_late: null} : {}),
);
const lane = {
	exact: false,
	dur: [500, 500],
	running: [50, 50],
	late: [100, 300],
	waiting: [1100, 900],
	unknown: [250, 250],
};
const span = (from, to, state) => ({from, to, state});
const fake = await open(
	pageFile({
		passes: [
			{
				dur: 1000,
				threads: [
					{tid: 101, name: "loop"},
					{tid: 102, name: "other"},
				],
				lanes: [{gil: [span(0, 1000, 2)]}, {gil: [span(0, 1000, 1)]}],
			},
		],
		report: {tasks: {count: 51, steps: 153, groups: made, list: []}},
		tasks: {pass: 0, groups: 17, lanes: made.slice(1).map(() => lane)},
	}),
	{width: 360, dark: true},
);
await hover(fake, 0, 750);
is(
	(await tip(fake)).replace(/\u00a0/g, " ").split("\n"),
	[
		"</script><b>task-*0",
		"on uvloop",
		"0.10 running, 0.60 late, 1.80 waiting, 0.50 unknown",
		"on average over 500 ns",
		"longest late: 300 ns (inferred) at 0.000 s",
		"loop waited for the GIL for 250 ns, mostly while other held it in <i>",
	],
	"of a lane of sums, numbers are averages",
);
const before = await view(fake);
const never = await hover(fake, 1, 750);
await fake.mouse.click(never.x, never.y);
await quiet(fake);
is(await view(fake), before, "of a group that never was late there is nothing to zoom to");
ok(
	(await fake.textContent("#tasks-note")).includes("shows the 16 groups"),
	"what the timeline leaves out is said",
);
ok(
	(await fake.textContent("#tasks-note"))
		.replace(/\u00a0/g, " ")
		.includes(
			"For 8.50 µs it is unknown whether tasks on uvloop, or greenlets, waited or were late",
		),
	"and what is not known of them",
);
is(
	await fake.evaluate(() => [document.documentElement.scrollWidth, innerWidth]),
	[360, 360],
	"nothing is wider than a small screen",
);
is(fake.troubles, [], "in peace, too");

// Tasks as requests: the page has the numbers of the document, in which they are tested.
const of = JSON.parse(readFileSync(requestsJson, "utf8")).tasks.groups.find(
		g => g.name === "request-*",
	).requests,
	slow = await open(requestsHtml);
is([of.count, of.fast, of.slow], [40, 20, 2], "all forty tasks, in halves and a twentieth");
is(
	of.causes.reduce((n, c) => n + (/^query /.test(c.function) ? c.slow_ns : 0), 0) > 0.19e9,
	true,
	"the slow ones slept for 0.1 s in query",
);
await slow.evaluate(() => document.getElementById("requests").scrollIntoView());
await slow.waitForSelector("#requests-body table");
const option = await slow.locator("#requests-of option", {hasText: "request-*"});
is((await option.textContent()).replace(/\u00a0/g, " "), "tasks request-*, 40 tasks", "to choose");
await slow.selectOption("#requests-of", await option.getAttribute("value"));
await slow.waitForFunction(() =>
	/40.tasks of/.test(document.getElementById("requests-body").innerText),
);
const NS = {ns: 1, µs: 1e3, ms: 1e6, s: 1e9};
const shown = await slow.evaluate(() =>
	[...document.querySelectorAll("#requests-body tbody tr")].map(tr =>
		[...tr.cells].slice(1, 3).map(c => c.textContent.replace(/\u00a0/g, " ").split(" ")),
	),
);
is(shown.length, of.causes.length, "each cause has a row");
is(
	of.causes.filter((c, i) =>
		[c.fast_ns / of.fast, c.slow_ns / of.slow].some(
			(ns, k) => Math.abs(+shown[i][k][0] * NS[shown[i][k][1]] - ns) > 0.01 * ns + 0.1,
		),
	),
	[],
	"with its means",
);
ok(
	/waits in query \(requests\.py:2\)/.test(await slow.textContent("#requests-body tbody")),
	"with its place",
);
const said = (await slow.textContent(".req-answer")).replace(/\u00a0/g, " "),
	longer = of.causes.reduce(
		(n, c) => n + Math.max(0, c.slow_ns / of.slow - c.fast_ns / of.fast),
		0,
	),
	[, sum, unit] = /Of the (\S+) (\S+) more, /.exec(said);
ok(Math.abs(sum * NS[unit] - longer) < 0.01 * longer, "shares are of what takes longer", said);
ok(
	[...said.matchAll(/\(([\d.]+) ?%\)/g)].reduce((n, [, percent]) => n + +percent, 0) < 100.2,
	"and are not above 100 % in all",
	said,
);
ok(/more, others \S+ \S+ less\. /.test(said), "what takes less is said apart", said);
await slow.locator(".req-list button").first().click();
await quiet(slow);
const [first] = of.slowest;
ok(shows(await view(slow), {at_ns: first.from_ns, ns: first.ns}), "the slowest is shown");
const job = await slow.locator("#requests-of option", {hasText: "job-*"}).getAttribute("value");
await slow.selectOption("#requests-of", job);
await slow.waitForFunction(() =>
	/15.tasks of/.test(document.getElementById("requests-body").innerText),
);
ok(
	/^The slowest of 15 tasks of job-\* takes \S+ \S+, those of the fast half \S+ \S+ on average\. /.test(
		(await slow.textContent(".req-answer")).replace(/\u00a0/g, " "),
	),
	"a twentieth of few tasks is one",
	await slow.textContent(".req-answer"),
);

// Of the 201 slowest calls, the causes of 200 are looked up, but their mean is that of all.
const pause = await slow.evaluate(
	() =>
		[...document.querySelectorAll("#requests-of option")].find(o => /^pause /.test(o.text))
			.value,
);
await slow.selectOption("#requests-of", pause);
await slow.waitForFunction(() =>
	/4.020.calls of/.test(document.getElementById("requests-body").innerText),
);
const [, mean, meanUnit] = /take (\S+) (\S+) on average/.exec(
	(await slow.textContent(".req-answer")).replace(/\u00a0/g, " "),
);
ok(mean * NS[meanUnit] > 0.49e9 / 201, "the longest call is part of the mean", mean + meanUnit);
is(slow.troubles, [], "in peace as well");
await done();

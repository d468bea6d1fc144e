// SPDX-License-Identifier: MIT
// The graph of stacks that waited and held, and the page of two recordings.
import {readFileSync} from "node:fs";
import {done, is, near, ok, open, quiet} from "./lib.mjs";

const [before, change, json] = process.argv.slice(2);
const text = async (page, selector) =>
	((await page.textContent(selector)) || "").replace(/\u00a0/g, " ");

const page = await open(before);
const see = () => page.evaluate(() => document.getElementById("flame").scrollIntoView());
await see();
await quiet(page);
// Sums of the pairs, by the outermost frame of the holder.
const sums = await page.evaluate(() => {
	const meta = JSON.parse(document.getElementById("gt-meta").textContent),
		{gil, locks} = meta.meeting,
		outermost = id => {
			while (gil.nodes[2 * id - 2]) id = gil.nodes[2 * id - 2];
			return gil.names[gil.nodes[2 * id - 1]];
		},
		by = {};
	for (let i = 0; i < gil.pairs.length; i += 3) {
		const key = outermost(gil.pairs[i]) + " < " + outermost(gil.pairs[i + 1]);
		by[key] = (by[key] || 0) + gil.pairs[i + 2];
	}
	const blame = {},
		{threads, blame: rows} = gt.pass(),
		label = i => {
			const {name, tid} = threads[i];
			return name + (threads.filter(t => t.name === name).length > 1 ? ` (${tid})` : "");
		};
	for (const b of rows) {
		const key =
			label(b.waiter) + " < " + (b.holder === null ? "nobody (hand-off)" : label(b.holder));
		blame[key] = (blame[key] || 0) + b.wait_ns;
	}
	const sorted = o => Object.entries(o).sort(([a], [b]) => (a < b ? -1 : 1));
	return {
		gil: sorted(by),
		blame: sorted(blame),
		ns: gil.ns,
		cut: gil.cut_ns,
		locks: locks?.ns,
		lock_wait: threads.reduce((n, t) => n + t.lock_wait_ns, 0),
	};
});
is(
	sums.gil,
	sums.blame,
	"each pair of threads has the waiting that is blamed, in " + sums.gil.length + " pairs",
);
ok(sums.gil.length >= 4 && sums.ns > 0, "there is some", sums);
is(sums.cut, 0, "all of it with stacks");
is(sums.locks, sums.lock_wait, "the locks have all waits for locks");
ok(sums.locks > 0, "of which there are some");

// What the buttons are about: the time in each one's label.
const frames = () =>
	page.evaluate(() => {
		const bar = document.querySelector(".meet-bar"),
			box = bar.getBoundingClientRect();
		return {
			bar: bar.textContent.replace(/\u00a0/g, " "),
			list: [...document.querySelectorAll("#flame-body .frame")].map(b => {
				const at = b.getBoundingClientRect();
				return {
					label: b.getAttribute("aria-label").replace(/\u00a0/g, " "),
					above: at.bottom <= box.top + 1,
					next:
						Math.min(Math.abs(at.bottom - box.top), Math.abs(at.top - box.bottom)) < 4,
					width: at.width / box.width,
				};
			}),
		};
	});
const all = await frames();
ok(/^waited [\d.]+ m?s$/.test(all.bar), "the bar says how long", all.bar);
const side = (list, above) => list.filter(f => f.above === above && f.next);
for (const above of [true, false])
	near(
		side(all.list, above).reduce((n, f) => n + f.width, 0),
		1,
		0.03,
		"the frames " + (above ? "above" : "below") + " the bar are as wide as it",
	);
const keeps = all.list.find(f => !f.above && /^keep /.test(f.label));
ok(keeps, "below it, the function that kept the GIL", all.list);
await page.locator("#flame-body .frame").nth(all.list.indexOf(keeps)).click();
await quiet(page);
const chosen = await frames();
ok(
	chosen.bar.includes("for keep") && chosen.bar.includes("show all"),
	"chosen, the bar names it",
	chosen.bar,
);
const nsOf = label => /, ([\d.,]+) (ns|µs|ms|s),/.exec(label).slice(1).join(" ");
ok(
	chosen.bar.includes(nsOf(keeps.label)),
	"and how long threads waited for it",
	chosen.bar,
	keeps.label,
);
ok(
	chosen.list.some(f => f.above && /^work\b/.test(f.label)),
	"above, who did",
	chosen.list,
);
await page.keyboard.press("Tab");
await page.click(".meet-bar");
await quiet(page);
is(await frames(), all, "the bar shows all again");
await page.focus(".meet-bar");
await page.keyboard.press("ArrowUp");
ok(
	await page.evaluate(() => document.activeElement.classList.contains("frame")),
	"arrow keys go from the bar to the frames",
);
const rows = await page.evaluate(() =>
	[...document.querySelectorAll("#sandwich tbody tr")].map(tr => tr.textContent),
);
ok(
	rows.some(r => r.includes("work") && r.includes("keep")),
	"a table has the same pairs",
	rows,
);
await page.locator("#flame-modes button", {hasText: "Waited for locks"}).click();
await quiet(page);
ok((await text(page, "#flame-body")).includes("lock"), "and those of locks");

// The page of two recordings.
const diff = JSON.parse(readFileSync(json, "utf8")),
	both = await open(change);
is(await text(both, "h1"), diff.text, "a page of two recordings says what changed");
is(
	await both.evaluate(() => document.querySelector("h1").dataset.kind),
	diff.verdict,
	"in which direction",
);
is(await both.locator("svg.strip-of").count(), 2, "with two strips");
const painted = await both.evaluate(() =>
	[...document.querySelectorAll("svg.strip-of g")].map(
		g => g.getBoundingClientRect().width / g.ownerSVGElement.getBoundingClientRect().width,
	),
);
const durations = await both.evaluate(() =>
	JSON.parse(document.getElementById("gt-meta").textContent).passes.map(p => p.dur_ns),
);
near(Math.min(...painted), Math.min(...durations) / Math.max(...durations), 0.02, "on one scale");
const findings = await both.evaluate(() =>
	[...document.querySelectorAll("#findings-body li")].map(li => ({
		gone: li.classList.contains("gone"),
		title: li.querySelector("h3").textContent,
		cost: li.querySelector(".cost")?.textContent ?? "",
	})),
);
ok(
	findings.every(f => !f.cost || /before: |, not listed before$/.test(f.cost)),
	"each finding has its costs before, or was not listed",
	findings,
);
ok(
	findings.some(f => /keep/.test(f.title) && /before: [\d.]+ /.test(f.cost)),
	"what was changed has them",
	findings,
);
const shares = await both.evaluate(() => {
	const {diff: d} = JSON.parse(document.getElementById("gt-meta").textContent),
		sum = list => list.reduce((a, b) => a + b, 0);
	return [sum(d.a), sum(d.b)];
});
const blamed = await both.evaluate(() =>
	JSON.parse(document.getElementById("gt-meta").textContent).passes.map(p =>
		p.blame.reduce((n, b) => n + b.wait_ns, 0),
	),
);
is(shares, [blamed[1], blamed[0]], "the graph of both has all waiting of both");
await both.evaluate(() => document.getElementById("flame").scrollIntoView());
await quiet(both);
ok(
	await both.locator("#flame-body .frame", {hasText: /keep −/}).count(),
	"in which less waits for what was changed",
	await text(both, "#flame-body"),
);
const programs = [];
for (const name of ["A", "B"]) {
	await both.locator("#passes button", {hasText: new RegExp("^" + name + "$")}).click();
	await quiet(both);
	programs.push(await both.evaluate(() => gt.pass().dur_ns));
}
is(programs, [durations[1], durations[0]], "the timeline shows either");
is(
	await both.locator("#passes button").allTextContents(),
	["A", "B"],
	"in the order of the command",
);
ok(
	(await both.locator("#own table").count()) >= 2 &&
		(await text(both, "#own")).includes("gil_wait %"),
	"with the tables of the comparison",
);
// For screen readers and small screens.
for (const [p, name] of [
	[page, "one recording"],
	[both, "two recordings"],
]) {
	const frames = await p.evaluate(() =>
		[...document.querySelectorAll("#flame-body .frame")].map(b => [
			b.getAttribute("aria-label"),
			b.textContent,
		]),
	);
	is(
		frames.filter(([label, shown]) => !label.includes(shown)),
		[],
		name + ": the name of each of " + frames.length + " frames has what is shown",
	);
	await p.setViewportSize({width: 390, height: 844});
	for (const id of ["lines", "requests", "nogil", "flame"]) {
		await p.evaluate(i => document.getElementById(i).scrollIntoView(), id);
		await quiet(p);
	}
	is(
		await p.evaluate(() => document.documentElement.scrollWidth),
		390,
		name + ": a small screen is wide enough",
	);
	is(
		await p.evaluate(
			() =>
				[...document.querySelectorAll("#lines .src code")].filter(
					e => e.getBoundingClientRect().right > innerWidth,
				).length,
		),
		0,
		name + ": also for the source",
	);
}
ok(await page.locator("#lines .src code").count(), "which is there");

is(
	[page, both].flatMap(p => p.troubles),
	[],
	"in peace",
);
await done();

// SPDX-License-Identifier: MIT
// One span explained: all of its time by cause, the hand-over step by step, and the card to share.
import {readFileSync} from "node:fs";
import {done, is, ok, open, pageFile, quiet} from "./lib.mjs";
import {hog} from "./programs.mjs";

const program = hog({states: true}),
	evil = 'worker|<b>"&\u0060',
	file = pageFile({passes: [program]});
program.threads[2].name = evil;
const page = await open(pageFile({passes: [program]}));
const overlap = (a, b) => Math.max(0, Math.min(a.to, b.to) - Math.max(a.from, b.from));

// The chain of a call against the lanes.
const worker = program.lanes[2],
	call = worker.calls[1].reduce((a, b) => (b.to - b.from > a.to - a.from ? b : a)),
	long = worker.calls[0][0];
for (const [c, name] of [
	[call, "the longest call"],
	[long, "a whole life"],
]) {
	const parts = await page.evaluate(
		([from, to]) => gt.chainOf(2, from, to).map(p => [p.kind, p.from, p.to, p.who]),
		[c.from, c.to],
	);
	ok(
		parts.length > 0 &&
			parts[0][1] === c.from &&
			parts.every((p, i) => p[2] === (parts[i + 1] ? parts[i + 1][1] : c.to)),
		"the parts of " + name + " have no gaps: " + parts.length,
	);
	const sum = test => parts.filter(test).reduce((n, p) => n + p[2] - p[1], 0);
	const spans = (lane, test) => lane.filter(test).reduce((n, s) => n + overlap(s, c), 0);
	is(
		sum(p => ["gil", "handoff"].includes(p[0])),
		spans(worker.gil, s => s.state === 3),
		"its waits for the GIL",
	);
	for (const holder of [0, 1, 3])
		is(
			sum(p => p[0] === "gil" && p[3] === holder),
			worker.gil
				.filter(s => s.state === 3)
				.reduce(
					(n, w) =>
						n +
						program.lanes[holder].gil
							.filter(s => s.state === 2)
							.reduce(
								(m, hold) =>
									m +
									overlap(hold, {
										from: Math.max(w.from, c.from),
										to: Math.min(w.to, c.to),
									}),
								0,
							),
					0,
				),
			"by holder " + holder,
		);
	const holds = worker.gil.filter(s => s.state === 2);
	is(
		sum(p => p[0] === "runnable"),
		worker.cpu
			.filter(s => s.state === 2)
			.reduce(
				(n, s) =>
					n +
					holds.reduce(
						(m, q) =>
							m +
							overlap(s, {from: Math.max(q.from, c.from), to: Math.min(q.to, c.to)}),
						0,
					),
				0,
			),
		"runnable without a CPU",
	);
}

// The hand-over: a wait in which the hog has the GIL.
const hold = program.lanes[1].gil.reduce((a, b) =>
		b.state === 2 && b.to - b.from > a.to - a.from ? b : a,
	),
	wait = worker.gil.find(s => s.state === 3 && overlap(s, hold) > 0);
await page.evaluate(([t]) => (location.hash = "#s=gil.2." + t), [wait.from]);
await quiet(page);
await page.click("#replay button");
const steps = await page.evaluate(
	([from, to]) => gt.stepsOf({kind: "gil", thread: 2, state: 3, gil: 0, from, to}),
	[wait.from, wait.to],
);
const others = program.lanes.flatMap((l, thread) =>
	thread === 2
		? []
		: l.gil.filter(s => s.state === 2 && overlap(s, wait) > 0).map(s => ({...s, thread})),
);
others.sort((a, b) => a.from - b.from);
const turns = steps.filter((s, i) => s.holder >= 0 && s.holder !== steps[i - 1]?.holder);
is(
	turns.map(s => s.holder),
	[...others.map(s => s.thread), 2],
	"the GIL goes from holder to holder, and then to who waited",
);
ok(
	steps.every((s, i) => !i || s.t >= steps[i - 1].t),
	"in the order of time",
	steps,
);
is(steps[steps.length - 1].t, wait.to, "until the wait ends");
ok(
	steps.some(s => s.t === wait.from + 5e6 && /not recorded/.test(s.text)),
	"when Python asks is not recorded, and said so",
);
const caption = () => page.textContent("#replay p");
const seen = [await caption()];
for (let i = 1; i < steps.length; i++) {
	await page.click("#replay button:nth-of-type(2)");
	seen.push(await caption());
}
is(
	seen.map((s, i) => s.endsWith(steps[i].text)),
	steps.map(() => true),
	"each step has its caption",
);
ok(await page.isDisabled("#replay button:nth-of-type(2)"), "and the last is the last");

// The card.
const markdown = await page.evaluate(() => gt.cardMarkdown());
const rows = markdown.split("\n").filter(l => l.startsWith("| ") && !l.includes("Where its"));
ok(
	markdown.includes("worker\\|\\<b\\>") && rows.every(r => r.split(/(?<!\\)\|/).length === 5),
	"hostile names stay in their cells",
	markdown,
);
const link = /<[^#>]*(#[^>]*)>/.exec(markdown)[1],
	other = await open(file, {hash: link});
is(
	await other.evaluate(() => /s=[\w.]+/.exec(location.hash)[0]),
	"s=gil.2." + wait.from,
	"its link leads to the span",
);
async function download(text) {
	const [d] = await Promise.all([
		page.waitForEvent("download"),
		page.click("#details-body button:text-is('" + text + "')"),
	]);
	return readFileSync(await d.path());
}
const drawing = (await download("SVG")).toString();
const xml = await page.evaluate(text => {
	const doc = new DOMParser().parseFromString(text, "image/svg+xml");
	return [
		doc.querySelectorAll("parsererror, script, b").length,
		[...doc.querySelectorAll("text")].map(t => t.textContent).join("\n"),
	];
}, drawing);
ok(xml[0] === 0 && xml[1].includes(evil), "the SVG is one, with the names as text", xml);
const png = await download("PNG");
is([png.readUInt32BE(0), png.readUInt32BE(16)], [0x89504e47, 1520], "the PNG is one");
is(page.troubles, [], "in peace");
await done();

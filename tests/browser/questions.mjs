// SPDX-License-Identifier: MIT
// Questions that the page answers, on a real recording.
import {done, is, near, ok, open, quiet} from "./lib.mjs";

const page = await open(process.argv[2]);
const plain = text => text.replace(/\u00a0/g, " ");
const buttons = await page.locator("#ask button").allTextContents();
is(
	buttons,
	[
		"Which line?",
		"Which lock?",
		"Why are some calls slow?",
		"Did a change help?",
		"Would it help without the GIL?",
	],
	"all questions can be asked",
);
for (const [question, section] of [
	["Which line?", "lines"],
	["Which lock?", "flame"],
	["Would it help without the GIL?", "nogil"],
	["Why are some calls slow?", "requests"],
]) {
	await page.evaluate(() => scrollTo(0, 0));
	ok(
		await page.evaluate(() => {
			const {top, bottom} = document.getElementById("ask").getBoundingClientRect();
			return top > 0 && bottom < innerHeight / 2;
		}),
		"on the first screen: " + question,
	);
	await page.click(`#ask button:text-is("${question}")`);
	await page.waitForFunction(id => {
		const {top} = document.getElementById(id).getBoundingClientRect();
		return top > -20 && top < innerHeight - 200;
	}, section);
	ok(true, question + " leads to its answer");
	await quiet(page);
}
await page.click('#ask button:text-is("Which lock?")');
await quiet(page);
ok(
	plain(await page.textContent("#flame-body")).includes("lock` in serve (program.py:7)"),
	"the lock has its name and line",
	await page.textContent("#flame-body"),
);
await page.click('#ask button:text-is("Did a change help?")');
ok((await page.textContent("#ask")).includes("giltracer diff -o"), "how to compare is said");

// The calls, by brute force.
await page.evaluate(() => document.getElementById("requests").scrollIntoView());
await page.waitForSelector("#requests-body table");
const options = await page.locator("#requests-of option").allTextContents();
ok(
	/^serve \(program\.py:\d+\), 90 calls$/.test(plain(options[0])),
	"the program's function comes first",
	options,
);
const calls = await page.evaluate(() => {
	const st = gt.store(),
		out = [];
	for (const rows of st.slices)
		for (const row of rows || [])
			for (const s of row.sections)
				for (let i = 0; i < s.n; i++)
					if (/^serve /.test(st.names.slices[s.name[i]])) out.push(s.end[i] - s.start[i]);
	return out.sort((a, b) => a - b);
});
is(calls.length, 90, "all calls are recorded");
const mean = list => list.reduce((a, b) => a + b, 0) / list.length;
const [fast, slow] = [calls.slice(0, 45), calls.slice(-5)].map(mean);
const NS = {ns: 1, µs: 1e3, ms: 1e6, s: 1e9};
const ns = text => {
	const [, sign, n, unit] = /(−?)([\d.]+) (\S+)/.exec(plain(text)) || [];
	return n ? (sign ? -1 : 1) * n * NS[unit] : NaN;
};
const columns = await page.evaluate(() =>
	[...document.querySelectorAll("#requests-body tbody tr")].map(tr =>
		[...tr.cells].map(c => c.textContent),
	),
);
for (const [i, want] of [
	[1, fast],
	[2, slow],
]) {
	const sum = columns.reduce((n, row) => n + ns(row[i]), 0);
	near(sum / want, 1, 0.03, "the causes add up to the duration: " + (i === 1 ? "fast" : "slow"));
}
const answer = plain(await page.textContent("#requests-body .req-answer"));
ok(/^The slowest 5 of 90 calls of serve take/.test(answer), "the answer is a sentence", answer);
near(
	ns(/take (\S+ \S+) on average/.exec(answer)[1]) / slow,
	1,
	0.01,
	"with the mean of the slowest",
);
is(await page.locator(".req-list li").count(), 20, "the twenty slowest are drawn");
const widths = await page.evaluate(() =>
	[...document.querySelectorAll(".req-list .req-bar")].map(
		bar =>
			[...bar.children].reduce((n, i) => n + i.getBoundingClientRect().width, 0) /
			bar.getBoundingClientRect().width,
	),
);
for (const i of [0, 10, 19])
	near(widths[i], calls[89 - i] / calls[89], 0.02, "as long as it took: call " + (i + 1));
await page.locator(".req-list button").first().click();
await quiet(page);
ok(/s=py\./.test(page.url()), "and lead to the timeline", page.url());
await page.evaluate(() => scrollTo(0, 0));
await page.selectOption("#requests-of", {index: 1});
await page.waitForFunction(
	name => document.querySelector(".req-answer code").textContent === name,
	options[1].replace(/ \(.*/, ""),
);
await quiet(page);
ok(/w=/.test(page.url()), "a link carries the function", page.url());

// Waits for locks are causes, too: all of them, to the nanosecond.
const locks = await page.evaluate(() => {
	const kinds = ["released", "unseen", "unlocked"];
	return gt.pass().threads.map((t, i) => {
		const ns = gt
			.chainOf(i, 0, gt.pass().dur_ns)
			.filter(p => kinds.includes(p.kind))
			.reduce((n, p) => n + p.to - p.from, 0);
		return [t.name, ns, t.lock_wait_ns];
	});
});
is(
	locks.map(l => l[1]),
	locks.map(l => l[2]),
	"a time by cause has its waits for locks",
);
ok(locks.filter(l => l[2] > 0).length >= 2, "of which there are some", locks);

// Without a GIL.
const doc = await page.evaluate(
	() => JSON.parse(document.getElementById("gt-meta").textContent).without_gil,
);
const rows = await page.evaluate(() =>
	[...document.querySelectorAll("#nogil tbody tr")].map(tr =>
		[...tr.cells].map(c => c.textContent),
	),
);
is(rows.length, 1 + doc.runs.length, "a row for each replay");
near(
	ns(rows.find(r => /^With the GIL/.test(r[0]))[1]) / doc.end_ns,
	1,
	0.01,
	"with the length of the run with the GIL",
);
const said = plain(await page.textContent("#nogil .req-answer"));
ok(
	doc.known ? /^(Little|With )/.test(said) : said.startsWith("Not known: replayed with the GIL"),
	"what cannot be replayed is not known",
	said,
	doc,
);
is(page.troubles, [], "in peace");
await done();

// SPDX-License-Identifier: MIT
// Samples on the page: the numbers of the JSON document, marked as estimates.
import {readFileSync} from "node:fs";
import {done, is, ok, open, quiet} from "./lib.mjs";

const [html, json] = process.argv.slice(2);
const page = await open(html);
is(page.troubles, [], "the page opens in peace");
is(await page.evaluate(() => gt.loading.errors), [], "every block was read");
const report = JSON.parse(readFileSync(json, "utf8"));

const counts = await page.evaluate(() =>
	gt.pass().threads.map((t, i) => {
		const sum = {tid: t.tid, samples: 0, holds: 0, waits: 0};
		gt.eachSample(i, -1, gt.pass().dur_ns + 1e9, (time, what) => {
			sum.samples++;
			if (what === 2) sum.holds++;
			if (what === 3) sum.waits++;
		});
		return sum;
	}),
);
const by = (a, b) => a.tid - b.tid;
is(
	counts.filter(t => t.samples).sort(by),
	report.samples.threads
		.map(({tid, samples, holds, waits}) => ({tid, samples, holds, waits}))
		.sort(by),
	"each thread has the samples of the document",
);
is(
	await page.evaluate(() => gt.store().sampled.times.length),
	report.samples.count,
	"and there are as many",
);

// On a busy host a thread may begin or end anywhere, so not each of them was sampled then.
const [rows, sampled, nearest] = await page.evaluate(() => {
	const middle = (gt.view.from + gt.view.to) / 2,
		nearest = gt
			.store()
			.sampled.times.reduce((a, b) => (Math.abs(b - middle) < Math.abs(a - middle) ? b : a));
	const found = [];
	gt.pass().threads.forEach((t, i) =>
		gt.eachSample(i, nearest, nearest + 1, () => found.push(i)),
	);
	return [document.querySelectorAll("#sampled-body tbody tr").length, found, nearest];
});
ok(
	rows === sampled.length && rows > 0,
	"a row for every thread that was sampled in the middle of the view",
	{rows, sampled},
);
ok(
	/estimates/.test(await page.evaluate(() => document.getElementById("sampled-note").innerText)),
	"which says that shares are estimates",
);

// A sample can be pointed at, and sent to somebody.
await page.evaluate(() => document.getElementById("timeline").scrollIntoView());
await quiet(page);
const spot = await page.evaluate(
	([found, time]) => {
		const row = gt.tl.rows.find(r => r.kind === "samples" && r.thread === found),
			box = document.getElementById("tl").getBoundingClientRect(),
			share = (time - gt.view.from) / (gt.view.to - gt.view.from);
		return {
			x: box.left + gt.GUTTER + share * (box.width - gt.GUTTER),
			y: box.top + row.y + row.h / 2,
		};
	},
	[sampled[0], nearest],
);
await page.mouse.move(spot.x, spot.y);
await page.waitForFunction(() => /sampled at/.test(document.getElementById("tip").innerText));
await page.mouse.click(spot.x, spot.y);
await page.waitForFunction(() => /s=samples/.test(location.hash));
const clicked = await page.evaluate(() => document.getElementById("details").innerText),
	[thread, time] = /s=samples\.(\d+)\.(\d+)/.exec(page.url()).slice(1).map(Number);
is(
	await page.evaluate(
		([i, t]) => {
			let n = 0;
			gt.eachSample(i, t, t + 1, () => n++);
			return n;
		},
		[thread, time],
	),
	1,
	"a click pins a sample",
);
ok(!/NaN|undefined|Infinity/.test(clicked), "whose details make sense", clicked);
ok(
	await page.evaluate(() => !/click/.test(document.getElementById("sampled-note").innerText)),
	"the stacks below are of that moment",
);
const linked = await open(html, {hash: new URL(page.url()).hash});
is(
	await linked.evaluate(() => document.getElementById("details").innerText),
	clicked,
	"and a link shows the same",
);
is(linked.troubles, [], "in peace");
await linked.close();
await page.keyboard.press("Escape");

await page.evaluate(() => document.getElementById("flame").scrollIntoView());
const holder = report.samples.places.find(p => p.what === "holds");
await quiet(page);
const flame = await page.evaluate(() => gt.flameBuild("s-holds"));
is(flame.samples, report.samples.held, "the flame graph of holders is made of their samples");
ok(holder && flame.root, "and there was a holder", holder, flame.root);
await done();

// SPDX-License-Identifier: MIT
// Two interpreters, each with its own GIL: facts about one GIL are not mixed with those of the other.
import {done, is, ok, open, pageFile, quiet} from "./lib.mjs";
import {random, simulate} from "./programs.mjs";

const dur = 1e9;
// Threads 0 and 1 use GIL 1, which nobody waits for; 2 to 4 use GIL 2, of which 2 is a hog.
function two() {
	const r = random(3);
	const calm = simulate({
		threads: 2,
		dur,
		work: (t, n) => ({off: t ? 40e6 : n ? 41e6 : 0, hold: t ? 30e3 : 39e6}),
	});
	const busy = simulate({
		threads: 3,
		dur,
		work: t => ({off: Math.floor(1e3 + r() * 1e6), hold: t ? 300e3 : 60e6}),
	});
	const of = (gil, lanes) => lanes.map(spans => ({gil: spans.map(s => ({...s, gil}))}));
	const lanes = [...of(0, calm), ...of(1, busy)];
	const sum = gil =>
		lanes
			.flatMap(l => l.gil)
			.filter(s => s.gil === gil && s.state === 2)
			.reduce((n, s) => n + s.to - s.from, 0);
	return {
		name: "gil",
		dur,
		threads: ["MainThread", "calm", "hog", "one", "two"].map((name, i) => ({
			tid: 100 + i,
			name,
			main: i === 0,
		})),
		lanes,
		gils: [0, 1].map(gil => ({
			pid: 100,
			address: "0x7f000000" + (gil + 1) + "000",
			from_ns: 0,
			to_ns: dur,
			held_ns: sum(gil),
			wanted_ns: gil,
			handover_ns: 0,
		})),
	};
}

const program = two();
const spans = (thread, state) => program.lanes[thread].gil.filter(s => s.state === state);
const overlap = (a, b) => Math.max(0, Math.min(a.to, b.to) - Math.max(a.from, b.from));
const waited = (hold, threads) =>
	threads.map(t => spans(t, 3).reduce((n, w) => n + overlap(hold, w), 0)).filter(ns => ns > 0);

const page = await open(pageFile({passes: [program]}), {width: 1600});

// The hold that the first finding leads to.
await page.click("#findings-body .title");
await quiet(page);
const pin = /s=gil\.2\.(\d+)/.exec(await page.evaluate(() => location.hash));
const hold = spans(2, 2).find(s => s.from === +pin?.[1]);
const caused = waited(hold, [3, 4]);
is(
	await page.evaluate(
		() =>
			[...document.querySelectorAll("#details-body .panel")]
				.find(p => /^Threads that waited/.test(p.querySelector("h3")?.textContent))
				.querySelectorAll("button.thread").length,
	),
	caused.length,
	"the details count who waited for its GIL",
);

// The longest wait, and the holder that the page names.
const rows = await page.evaluate(() =>
	[...document.querySelectorAll("#waits-body tbody tr")].map(tr =>
		[...tr.cells].slice(1, 3).map(c => c.textContent),
	),
);
is(
	rows.filter(([who, by]) => ["one", "two"].includes(who) && ["MainThread", "calm"].includes(by)),
	[],
	"no wait is blamed on the other GIL's threads",
);
const holdsRow = await page.evaluate(() => {
	const tr = [...document.querySelectorAll("#holds-body tbody tr")].find(
		r => r.cells[1].textContent === "MainThread",
	);
	return tr ? tr.cells[2].textContent : "none";
});
ok(/^(–|none)$/.test(holdsRow), "a hold of the calm GIL kept nobody waiting: " + holdsRow);

// Each GIL's lane has its own holders' colours.
await page.keyboard.press("Escape");
await page.keyboard.press("f");
await quiet(page);
const seen = await page.evaluate(() => {
	const canvas = document.getElementById("tl"),
		c = canvas.getContext("2d");
	const names = gt.pass().threads.map((t, i) => [gt.threadColor(i).toLowerCase(), t.name]);
	return gt.tl.rows
		.filter(r => r.kind === "owner")
		.map(row => {
			const d = c.getImageData(
				gt.GUTTER,
				row.y + 2,
				canvas.width - gt.GUTTER,
				row.h - 8,
			).data;
			const found = new Set();
			for (let i = 0; i < d.length; i += 4) {
				const hex =
					"#" +
					[d[i], d[i + 1], d[i + 2]].map(x => x.toString(16).padStart(2, "0")).join("");
				for (const [color, name] of names) if (color === hex) found.add(name);
			}
			return [...found].sort();
		});
});
is(seen.length, 2, "each GIL has a lane");
ok(
	seen[0].includes("MainThread") && !seen[0].includes("hog"),
	"GIL 1 was held by its threads: " + seen[0],
);
ok(
	seen[1].includes("hog") && !seen[1].includes("MainThread"),
	"GIL 2 was held by its threads: " + seen[1],
);

// The strip says which GIL it shows: the one held longest, or the one chosen.
const stripHolders = () =>
	page.evaluate(() => {
		const canvas = document.getElementById("strip"),
			d = canvas.getContext("2d").getImageData(0, 40, canvas.width, 20).data,
			found = new Set();
		const names = gt.pass().threads.map((t, i) => [gt.threadColor(i).toLowerCase(), t.name]);
		for (let i = 0; i < d.length; i += 4) {
			const hex =
				"#" + [d[i], d[i + 1], d[i + 2]].map(x => x.toString(16).padStart(2, "0")).join("");
			for (const [color, name] of names) if (color === hex) found.add(name);
		}
		return [...found].sort();
	});
const choice = page.locator("#strip-key select");
ok(
	/^GIL 2, held/.test(await choice.evaluate(e => e.selectedOptions[0].textContent)),
	"the strip says that it shows GIL 2, which was held longest",
);
ok((await stripHolders()).includes("hog"), "and does", await stripHolders());
await choice.selectOption("0");
const chosen = await stripHolders();
ok(chosen.includes("MainThread") && !chosen.includes("hog"), "GIL 1 if it is chosen", chosen);

// The matrix and the document.
const report = await page.evaluate(() =>
	JSON.parse(document.getElementById("gt-report").textContent),
);
const cells = await page.evaluate(() =>
	[...document.querySelectorAll("#blame-body button[data-ns]")].map(b => +b.dataset.ns),
);
is(
	cells.sort((a, b) => a - b),
	report.blame
		.map(b => b.wait_ns)
		.filter(Boolean)
		.sort((a, b) => a - b),
	"the matrix is the document's blame",
);
is(page.troubles, [], "in peace");
await done();

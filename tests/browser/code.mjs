// SPDX-License-Identifier: MIT
// Reading code: rows of library frames that only lead on are folded, a function stands between its
// callers and callees, and links carry what the flame graph shows.
import {done, is, ok, open, pageFile, quiet} from "./lib.mjs";

const dur = 1e9,
	lib = "/usr/lib/python3.12/";
const names = [
	"Thread._bootstrap (" + lib + "threading.py:1032)",
	"Thread.run (" + lib + "threading.py:1012)",
	"work (/app/run.py:3)",
	"_worker (" + lib + "concurrent/futures/thread.py:69)",
	"py (/app/run.py:9)",
	"dumps (" + lib + "json/__init__.py:183)",
	"time.sleep",
];
// Ten tasks of 80 ms by way of the library: 60 ms of py, of which dumps has 20, then a sleep.
const rows = names.map(() => []);
rows[0].push({from: 0, to: dur, name: 0});
rows[1].push({from: 1000, to: dur - 1000, name: 1});
rows[2].push({from: 2000, to: dur - 2000, name: 2});
const gil = [{from: 0, to: 10e6, state: 1}];
for (let at = 10e6, i = 0; i < 10; i++, at += 90e6) {
	rows[3].push({from: at, to: at + 80e6, name: 3});
	rows[4].push({from: at + 1e6, to: at + 79e6, name: 4});
	rows[5].push(
		{from: at + 2e6, to: at + 22e6, name: 5},
		{from: at + 62e6, to: at + 78e6, name: 6},
	);
	gil.push(
		{from: at, to: at + 10e6, state: 3},
		{from: at + 10e6, to: at + 62e6, state: 2},
		{from: at + 62e6, to: at + 90e6, state: 1},
	);
}
gil.push({from: 910e6, to: dur, state: 1});
const other = [{from: 0, to: 10e6, state: 2}];
for (let at = 10e6, i = 0; i < 10; i++, at += 90e6)
	other.push(
		{from: at, to: at + 10e6, state: 2},
		{from: at + 10e6, to: at + 62e6, state: 3},
		{from: at + 62e6, to: at + 90e6, state: 2},
	);
other.push({from: 910e6, to: dur, state: 1});
const program = {
	name: "gil",
	dur,
	names,
	threads: [
		{tid: 1, name: "MainThread", main: true},
		{tid: 2, name: "worker"},
	],
	lanes: [{gil: other}, {gil, calls: rows.slice(0, 6)}],
};
const file = pageFile({passes: [program]}),
	page = await open(file);
const depths = () =>
	page.evaluate(() => gt.tl.rows.filter(r => r.kind === "py").map(r => [r.depth, r.more ?? 0]));
is(
	await depths(),
	[
		[2, 0],
		[4, 0],
		[5, 3],
	],
	"library rows with one callee each are folded: py is in sight",
);
const at = await page.evaluate(() => {
	document.getElementById("timeline").scrollIntoView();
	const row = gt.tl.rows.findLast(r => r.kind === "py"),
		box = document.getElementById("tl").getBoundingClientRect();
	return {x: box.x + 40, y: box.y + row.y + 7};
});
await page.mouse.click(at.x, at.y);
await quiet(page);
is(
	(await depths()).map(d => d[0]),
	[0, 1, 2, 3, 4, 5],
	"a click shows all",
);
ok((await depths())[5][1] < 0, "and takes it back");
const folded = await open(file, {hash: "#s=py.1.20000000.3"});
ok(
	await folded.evaluate(() => gt.tl.rows.some(r => r.kind === "py" && r.depth === 3)),
	"a link to a call in such a row shows the row",
);

// py between its callers and callees.
const got = await page.evaluate(name => gt.sandwichOf(name, false), names[4]);
const mode = m => got.modes.find(x => x.mode === m);
is(
	[mode("on-gil"), mode("off-gil")].map(m => [m.total, m.self]),
	[
		[520e6, 10 * (52e6 - 12e6)],
		[10 * 9e6, 10 * 1e6],
	],
	"held and waited in it, in all and by itself",
);
is(
	got.callers.map(r => [r.name, r.ns["on-gil"]]),
	[["_worker", 520e6]],
	"its callers",
);
is(
	got.callees.map(r => [r.name, r.ns["on-gil"], r.ns["off-gil"]]),
	[["dumps", 120e6, 80e6]],
	"its callees",
);
await page.evaluate(name => {
	location.hash = "#f=on-gil,pm," + encodeURIComponent(name);
}, names[4]);
await page.evaluate(() => document.getElementById("flame").scrollIntoView());
await quiet(page);
await quiet(page);
const shown = await page.evaluate(() => [
	...[...document.querySelectorAll("#flame-modes [aria-pressed=true]")].map(b => b.textContent),
	document.querySelector("#sandwich h3")?.textContent,
]);
is(
	shown,
	[
		"Holding the GIL",
		"Python only",
		"Merge threads",
		"py between its callers and callees, in the part in view",
	],
	"a link carries what the flame graph shows",
);
// Of a range: py holds for 52 ms of it, in 12 of them in dumps; MainThread waits meanwhile.
await page.evaluate(() => gt.setRange(1e8, 2e8));
await page.waitForFunction(() =>
	/selected range(.|\n)*Waits caused/.test(document.getElementById("sandwich").innerText),
);
is(
	await page.evaluate(() => [
		document.getElementById("flame-note").textContent.replace(/:.*/, "").replace("\u00a0", " "),
		...[...document.querySelectorAll("#sandwich dd")].map(dd =>
			dd.textContent.replaceAll("\u00a0", " "),
		),
	]),
	[
		"Time in the selected range (100 ms)",
		"18.0 ms, by itself 2.00 ms",
		"52.0 ms, by itself 40.0 ms",
		"52.0 ms in holds that mostly ran it, and up to 20.0 ms in unknown functions",
	],
	"of the selected range: waited, held, by itself, and the waits that it caused",
);
await page.evaluate(() => gt.setRange(null));
await page.click("#flame-modes button:text-is('Inverted')");
await quiet(page);
ok(
	/f=on-gil,pmi,py/.test(await page.evaluate(() => location.hash)),
	"and is made of it: " + (await page.evaluate(() => location.hash)),
);
await page.emulateMedia({media: "print"});
ok(await page.locator("#flame-body .frame").first().isVisible(), "the flame graph is printed");
is(
	await page.evaluate(() =>
		[...document.querySelectorAll("#flame .line button")]
			.filter(b => b.offsetParent)
			.map(b => b.textContent),
	),
	["Holding the GIL", "Python only", "Merge threads", "Inverted"],
	"with what it shows",
);
is(
	await page.evaluate(() => getComputedStyle(document.querySelector(".frame")).printColorAdjust),
	"exact",
	"in colours",
);
is(page.troubles, [], "in peace");
await done();

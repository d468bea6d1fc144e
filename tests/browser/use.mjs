// SPDX-License-Identifier: MIT
// Keyboard, mouse, search, links, exports.
import {readFileSync, statSync} from "node:fs";
import {done, is, near, ok, open, pageFile, quiet} from "./lib.mjs";
import {churn, hog, spinners} from "./programs.mjs";
import {tables} from "./tables.mjs";

const program = hog({states: true}),
	dur = program.dur;
const file = pageFile({passes: [program, {...hog({seed: 9}), name: "stacks"}]});
const page = await open(file);
const view = () => page.evaluate(() => ({...gt.view}));
const width = async () => {
	const v = await view();
	return v.to - v.from;
};
const head = () =>
	page.evaluate(() =>
		document.getElementById("details").hidden
			? ""
			: document.getElementById("details-h").textContent.replace(/\u00a0/g, " "),
	);

// Keys work in any keyboard layout.
await page.focus("#tl");
await page.keyboard.press("w");
near(await width(), dur * 0.7, 10, "W zooms in");
await page.keyboard.press("s");
near(await width(), dur, 10, "S zooms out");
await page.keyboard.press("w");
const before = await view();
await page.keyboard.press("d");
ok((await view()).from > before.from, "D moves on");
await page.keyboard.press("a");
near((await view()).from, before.from, 10, "A moves back");
await page.keyboard.press("ArrowRight");
ok((await view()).from > before.from, "so do arrows");
await page.keyboard.press("f");
await quiet(page);
is(await view(), {from: 0, to: dur}, "F shows everything");
await page.keyboard.press("]");
await quiet(page);
const one = await head();
ok(one.includes("waits for the GIL · "), "] pins a wait: " + one);
await page.keyboard.press("]");
await quiet(page);
const two = await page.evaluate(() => location.hash);
await page.keyboard.press("[");
await quiet(page);
is(await head(), one, "[ goes back to the one before");
ok(/s=gil\.\d\.\d+/.test(two), "the hash holds the pinned span: " + two);
ok(
	(await page.textContent("#live")).length > 10,
	"the live region says what is shown: " + (await page.textContent("#live")),
);
await page.keyboard.press("ArrowDown");
await quiet(page);
ok(
	(await head()) !== one && (await head()) !== "",
	"an arrow goes to the next row: " + (await head()),
);
await page.keyboard.press("Escape");
await quiet(page);
is(await head(), "", "Escape unpins");
await page.keyboard.press("f");
await page.keyboard.press("?");
ok(await page.locator("#help").isVisible(), "? helps");
await page.keyboard.press("Escape");
await page.keyboard.press("/");
is(await page.evaluate(() => document.activeElement.id), "search", "/ searches");
is(
	await page.evaluate(() => [
		document.getElementById("tl").tabIndex,
		document.getElementById("strip").tabIndex,
	]),
	[0, 0],
	"the canvases take the focus",
);

// The search counts its hits.
const id = program.names.findIndex(n => n.startsWith("step "));
const calls = program.lanes.flatMap(l => l.calls.flat()).filter(c => c.name === id);
await page.keyboard.type("step");
await page.keyboard.press("Enter");
await quiet(page);
const found = (await page.textContent("#found")).replace(/\u00a0/g, " ");
is(found.split(" · ")[0], calls.length.toLocaleString("en-US") + " calls", "the search counts");
const total = calls.reduce((n, c) => n + c.to - c.from, 0),
	shown = /· ([\d.]+) (\S+)$/.exec(found);
near(+shown[1] * {s: 1e9, ms: 1e6}[shown[2]], total, total * 0.01, "and adds up");
const starts = calls.map(c => c.from).sort((a, b) => a - b);
const pin = () => page.evaluate(() => +/s=py\.\d+\.(\d+)\.2/.exec(location.hash)?.[1]);
is(await pin(), starts[0], "Enter goes to the first hit");
await page.focus("#tl");
await page.keyboard.press("n");
await quiet(page);
is(await pin(), starts[1], "n to the next");
await page.keyboard.press("Shift+N");
await page.keyboard.press("Shift+N");
await quiet(page);
is(await pin(), starts[starts.length - 1], "N back, and round to the last");
await page.keyboard.press("f");
await page.keyboard.press("Escape");
await quiet(page);
const lit = await page.evaluate(() => {
	const c = document.getElementById("tl"),
		data = c.getContext("2d").getImageData(0, 0, c.width, c.height).data,
		color = parseInt(gt.palette().hit.slice(1), 16);
	let n = 0;
	for (let i = 0; i < data.length; i += 4)
		n += ((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]) === color;
	return n;
});
ok(lit > 200, "hits are marked: " + lit + " pixels");
await page.fill("#search", "no such thing");
await quiet(page);
is(await page.textContent("#found"), "nothing found", "and nothing is nothing");
await page.fill("#search", "");
await quiet(page);

// Shift and drag: the totals of the range.
// Where the hog's lane is on the screen.
async function lane() {
	return page.evaluate(() => {
		document.getElementById("timeline").scrollIntoView();
		const box = document.getElementById("tl").getBoundingClientRect();
		return {
			x: box.x,
			y:
				box.y +
				gt.tl.rows.find(r => r.kind === "gil" && r.thread === 1).y +
				10 -
				document.getElementById("tl-box").scrollTop,
			width: box.width,
		};
	});
}
let box = await lane();
await page.keyboard.down("Shift");
await page.mouse.move(box.x + 500, box.y);
await page.mouse.down();
await page.mouse.move(box.x + 800, box.y, {steps: 4});
await page.mouse.up();
await page.keyboard.up("Shift");
await quiet(page);
const r = await page.evaluate(() => /r=(\d+),(\d+)/.exec(location.hash).slice(1).map(Number));
const held = program.lanes[1].gil
	.filter(s => s.state === 2)
	.reduce((n, s) => n + Math.max(0, Math.min(s.to, r[1]) - Math.max(s.from, r[0])), 0);
const row = await page.evaluate(() =>
	[...document.querySelectorAll("#range-body tbody tr")]
		.map(tr => [...tr.cells].map(c => c.textContent.replace(/\u00a0/g, " ")))
		.find(c => c[0] === "Matcher"),
);
ok(
	row &&
		row[1].startsWith(
			held >= 1e9
				? (held / 1e9).toFixed(2) + " s"
				: String(Number((held / 1e6).toPrecision(3))),
		),
	"the range's totals: held " + held,
	row,
);

// Waits, by holder in it, from the spans: waits of each, divided among the holds of the
// others.
const part = s => Math.max(0, Math.min(s.to, r[1]) - Math.max(s.from, r[0]));
const both = (a, b) => Math.max(0, Math.min(a.to, b.to, r[1]) - Math.max(a.from, b.from, r[0]));
const names = program.threads.map(t => t.name),
	pairs = [];
program.lanes.forEach((waiter, w) => {
	const waits = waiter.gil.filter(s => s.state === 3);
	let left = waits.reduce((n, s) => n + part(s), 0);
	program.lanes.forEach((holder, k) => {
		const ns =
			k === w
				? 0
				: holder.gil
						.filter(s => s.state === 2)
						.reduce(
							(n, hold) => n + waits.reduce((m, wait) => m + both(hold, wait), 0),
							0,
						);
		left -= ns;
		pairs.push([names[k], names[w], ns]);
	});
	pairs.push(["nobody", names[w], left]);
});
const selected = await tables(page, "range");
const sorted = list =>
	list
		.filter(p => p[2] > 0)
		.map(p => p.join(" "))
		.sort();
is(
	sorted(selected[1].rows.map(x => [x.holder, x.waiter, x.wait_ns])),
	sorted(pairs),
	"who kept whom waiting in the range",
);
const ran = selected[2].rows.find(x => x.function === "re.Pattern.match");
const caused = pairs.filter(p => p[0] === "Matcher").reduce((n, p) => n + p[2], 0);
ok(
	ran && ran.wait_caused_ns === caused && ran.hold_ns === held,
	"and in which function: " + JSON.stringify(ran),
	{caused, held},
);

// Exports of that range.
async function download(id) {
	await page.click("#export-menu summary");
	const [d] = await Promise.all([page.waitForEvent("download"), page.click(id)]);
	return {name: d.suggestedFilename(), data: readFileSync(await d.path())};
}
const json = await download("#export-json");
const trace = JSON.parse(json.data.toString());
ok(
	json.name.endsWith(".json") && trace.traceEvents.length > 20,
	"the Chrome trace parses: " + trace.traceEvents.length + " events",
);
const meet = (s, a, b) => s.from < b && s.to > a;
is(
	trace.traceEvents.filter(e => e.name === "hold").length,
	program.lanes.flatMap(l => l.gil).filter(s => s.state === 2 && meet(s, r[0], r[1])).length,
	"with the holds of the range",
);
is(
	trace.traceEvents.filter(e => e.cat === "py").length,
	program.lanes.flatMap(l => l.calls.flat()).filter(s => meet(s, r[0], r[1])).length,
	"and its calls",
);
const csv = await download("#export-csv");
const lines = csv.data.toString().trim().split("\n");
is(lines[0], "kind,pid,tid,thread,start_ns,end_ns,dur_ns,depth,what", "the CSV has a head");
is(
	lines.filter(l => /^gil,.*,wait$/.test(l)).length,
	program.lanes.flatMap(l => l.gil).filter(s => s.state === 3 && meet(s, r[0], r[1])).length,
	"and the waits",
);
ok(
	lines.slice(1).every(l => {
		const f = l.split(",");
		return +f[5] - +f[4] === +f[6];
	}),
	"whose times fit",
);
const folded = await download("#export-folded");
const stacks = folded.data.toString().trim().split("\n");
const within = (s, a, b) => Math.max(0, Math.min(s.to, b) - Math.max(s.from, a));
is(
	stacks.reduce((n, l) => n + +/^[^;]+(;[^;]+)* (\d+)$/.exec(l)[2], 0),
	program.lanes
		.flatMap(l => l.gil)
		.filter(s => s.state === 3 || s.state === 4)
		.reduce((n, s) => n + within(s, r[0], r[1]), 0),
	"the folded stacks have the time waited in the range",
);
ok(
	stacks.some(l => l.includes(";")),
	"with frames",
	stacks.slice(0, 3),
);
const png = await download("#export-png");
is(
	[png.data.readUInt32BE(0), png.data.readUInt32BE(16)],
	[0x89504e47, Math.round(box.width)],
	"the picture is a PNG of the timeline",
);

await page.click("#export-menu summary");
await page.keyboard.press("Escape");
is(await page.locator("#export-menu[open]").count(), 0, "Escape closes the menu");

// A large export asks first, with its size, and does not freeze the page.
const large = await open(pageFile({passes: [churn({n: 700000})]}));
const asked = [];
let consent = false;
large.on("dialog", d => {
	asked.push(d.message().replace(/\u00a0/g, " "));
	return consent ? d.accept() : d.dismiss();
});
await large.click("#export-menu summary");
await large.click("#export-json");
await large.waitForFunction(() => !document.getElementById("export-menu").open);
ok(/^The file will have about \d{3} MB\./.test(asked[0]), "it has its size", asked);
consent = true;
await large.evaluate(() => {
	globalThis.longest = 0;
	let last = performance.now();
	globalThis.timer = setInterval(() => {
		globalThis.longest = Math.max(globalThis.longest, performance.now() - last);
		last = performance.now();
	}, 5);
});
await large.click("#export-menu summary");
const [saved] = await Promise.all([large.waitForEvent("download"), large.click("#export-json")]);
const size = statSync(await saved.path()).size,
	said = +/\d+/.exec(asked[1])[0] * 1e6;
ok(Math.abs(size - said) < size / 10, "which is right to a tenth", size, said);
ok((await large.evaluate(() => globalThis.longest)) < 1000, "and meanwhile the page responds");
is(asked.length, 2, "it asks once");
await large.close();

// A link to the current view shows the same view in another browser.
await page.evaluate(() => gt.setView(4e8, 9e8));
await page.fill("#search", "parse");
await quiet(page);
box = await lane();
await page.mouse.click(box.x + 700, box.y);
await quiet(page);
const hash = await page.evaluate(() => location.hash),
	title = await head();
const other = await open(file, {hash});
await quiet(other);
is(await other.evaluate(() => ({...gt.view})), await view(), "a link restores the view");
is(
	await other.evaluate(() => [
		document.getElementById("details-h").textContent.replace(/\u00a0/g, " "),
		document.getElementById("search").value,
		document.getElementById("range").hidden,
		location.hash,
	]),
	[title, "parse", false, hash],
	"the pinned span, the search and the range",
);
await other.evaluate(() => {
	location.hash = "#p=1&v=100000000,200000000";
});
await quiet(other);
is(
	await other.evaluate(() => [gt.pass().name, gt.view.from, gt.view.to]),
	["stacks", 1e8, 2e8],
	"a link on the page leads to the other recording",
);
await other.click("#passes button:first-child");
await quiet(other);
is(
	await other.evaluate(() => [gt.pass().name, gt.view.from]),
	["gil", 4e8],
	"and back to where one was",
);
const rowsOf = p =>
	p.evaluate(() =>
		[...new Set(gt.tl.rows.map(x => x.thread).filter(t => t !== undefined))].sort(),
	);
await other.locator("#blame-body button[data-ns]").first().click();
await quiet(other);
const third = await open(file, {hash: await other.evaluate(() => location.hash)});
is(
	[await rowsOf(third), (await rowsOf(third)).length],
	[await rowsOf(other), 2],
	"a link restores which threads are shown",
);

// Mouse: drag moves, Ctrl+wheel zooms at the pointer.
await page.evaluate(() => gt.setView(1e9, 2e9));
box = await lane();
await page.mouse.move(box.x + 700, box.y);
await page.mouse.down();
await page.mouse.move(box.x + 600, box.y, {steps: 3});
await page.mouse.up();
ok((await view()).from > 1.05e9, "a drag moves");
await page.keyboard.down("Control");
await page.mouse.wheel(0, -200);
await page.keyboard.up("Control");
await quiet(page);
ok((await width()) < 0.7e9, "Ctrl+wheel zooms");

// The theme.
const shade = () =>
	page.evaluate(() => [
		document.documentElement.dataset.shade,
		getComputedStyle(document.documentElement).backgroundColor,
	]);
is((await shade())[0], "light", "light as asked for");
await page.click("#theme");
is((await shade())[0], "dark", "dark by the button");
// A function that calls itself, among files whose names have its name in them.
const inner = spinners();
inner.names = ["py (/app/run.py:1)", "loop (/app/py.py:3)", "C code"];
inner.lanes[0].calls = [
	[{from: 1e6, to: 401e6, name: 0}],
	[
		{from: 2e6, to: 102e6, name: 0},
		{from: 103e6, to: 203e6, name: 1},
	],
	[{from: 104e6, to: 105e6, name: 0}],
];
inner.lanes[1].calls = [[{from: 0, to: 50e6, name: 1}], [{from: 1e6, to: 11e6, name: 0}]];
const nested = await open(pageFile({passes: [inner]}));
const finds = async text => {
	await nested.fill("#search", text);
	await quiet(nested);
	return (await nested.textContent("#found")).replace(/\u00a0/g, " ");
};
is(await finds("py"), "4 calls · 410 ms", "a name is not found in paths, nor time counted twice");
is(await finds("run.py"), "4 calls · 410 ms", "where no function is called so, files are found");
is(await finds("loop"), "2 calls · 150 ms", "and other functions");
is(nested.troubles, [], "without a word on the console");
await nested.close();

// Single keys: where the timeline has the focus; elsewhere only where nothing was reached by keys.
const own = await open(file);
const zoomed = () => own.evaluate(d => gt.view.to - gt.view.from < d * 0.99, dur);
await own.keyboard.press("w");
ok(await zoomed(), "a single key acts where nothing has the focus");
await own.evaluate(() => gt.setView(0, gt.pass().dur_ns));
await own.focus("#threads-body button");
await own.keyboard.press("Tab"); // reached by keys
await own.keyboard.press("w");
ok(!(await zoomed()), "not on a table's button");
await own.focus("#tl");
await own.keyboard.press("w");
ok(await zoomed(), "but on the timeline");
await own.evaluate(() => gt.setView(0, gt.pass().dur_ns));
await own.click("#help-open");
await own.uncheck("#help-body input");
await own.click("#help button:text-is('Close')");
await own.evaluate(() => document.activeElement.blur());
await own.keyboard.press("w");
ok(!(await zoomed()), "nowhere else, once that is switched off");
await own.focus("#tl");
await own.keyboard.press("w");
ok(await zoomed(), "then only on the timeline");

// The way back from a zoom.
const crumbs = () =>
	own.evaluate(() =>
		[...document.querySelectorAll("#crumbs button")].map(b =>
			b.textContent.replace(/\u00a0/g, " "),
		),
	);
await own.evaluate(() => gt.setView(0, gt.pass().dur_ns));
await own.waitForFunction(() => document.getElementById("crumbs").hidden);
await own.evaluate(() => gt.setView(100e6, 300e6));
await own.waitForFunction(() => document.querySelectorAll("#crumbs button").length === 2);
await own.evaluate(() => gt.setView(120e6, 140e6));
await own.waitForFunction(() => document.querySelectorAll("#crumbs button").length === 3);
is(await crumbs(), ["All", "200 ms", "20.0 ms"], "a part within a part: the way back");
await own.click("#crumbs button:nth-child(2)");
await own.waitForFunction(() => document.querySelectorAll("#crumbs button").length === 2);
is(
	await own.evaluate(() => [gt.view.from, gt.view.to].map(Math.round)),
	[100e6, 300e6],
	"and back",
);

// The columns beside the timeline.
await own.evaluate(() => gt.setPin(null));
await own.focus("#findings .edge");
const wide = () =>
	own.evaluate(() => document.getElementById("findings").getBoundingClientRect().width);
const was = await wide();
for (let i = 0; i < 3; i++) await own.keyboard.press("ArrowRight");
near(await wide(), was + 72, 3, "arrow keys move the edge of the findings");
await own.click("#findings .title");
await quiet(own);
const places = () =>
	own.evaluate(() => {
		const at = id => document.getElementById(id).getBoundingClientRect();
		return [at("details").left > at("timeline").left, at("details").top === at("timeline").top];
	});
is(await places(), [false, true], "the details are at the left");
await own.click("#details-dock");
is(await places(), [true, true], "or at the right");
is(
	await own.evaluate(() =>
		[...document.querySelectorAll("#details h3")].map(x => x.textContent).shift(),
	),
	"Python stack",
	"the Python stack comes first",
);
await own.reload();
await own.waitForFunction(() => performance.getEntriesByName("gt-ready").length);
is(await own.getAttribute("#details-dock", "aria-pressed"), "true", "which is remembered");

// Words are explained where the focus is.
await own.focus("#timeline-legend button.key");
await own.keyboard.press("ArrowRight");
ok(await own.isVisible("#tip"), "the focus on a word shows its meaning");
is(
	await own.textContent("#tip"),
	await own.evaluate(() => /** @type {any} */ (document.activeElement).title),
	"as a tip",
);
await own.keyboard.press("Escape");
ok(!(await own.isVisible("#tip")), "until Escape");
is(own.troubles, [], "all of it in peace");
is(page.troubles.concat(other.troubles, third.troubles), [], "in peace");
await done();

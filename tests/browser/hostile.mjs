// SPDX-License-Identifier: MIT
// Names of threads and functions are hostile text: nothing executes, nothing breaks.
import {done, is, ok, open, pageFile, quiet} from "./lib.mjs";
import {html} from "./format.mjs";
import {hog} from "./programs.mjs";

const evil = [
	"</script><script>window.pwned=1</script>",
	'"><img src=x onerror="window.pwned=2">',
	"<!--<script>",
	// biome-ignore lint/suspicious/noTemplateCurlyInString: it must stay text
	"]]>'\"`${window.pwned=3}",
	"a\u2028b\u2029c\u0000d\u001b[31me\u0007",
	'=HYPERLINK("x")',
	"__proto__",
	"constructor",
	"x".repeat(20000),
	"\u202etxet",
	"<svg onload=window.pwned=4>",
	"javascript:window.pwned=5",
	"&lt;b&gt;",
	"😀\ud800",
];
const program = hog();
program.threads.forEach((t, i) => {
	t.name = evil[i];
});
program.names = evil.concat([Buffer.from([0xff, 0xfe, 0x80, 0x41])]);
program.lanes.forEach((l, i) =>
	(l.calls || []).forEach((row, d) =>
		row.forEach((c, k) => {
			c.name = (i * 5 + d * 3 + k) % program.names.length;
		}),
	),
);
const file = pageFile({
	passes: [program],
	title: evil[0],
	command: [evil[0], evil[1], evil[5]],
	verdict: `<p class="headline" data-kind="gil-bound">${html(evil[0])} hogs</p>`,
	report: {
		hogs: [
			{
				function: evil[1],
				file: evil[0],
				line: 3,
				native: evil[10],
				tid: 101,
				holds: 3,
				hold_ns: 5,
				longest_hold_ns: 3,
				wait_caused_ns: 9,
				held_off_cpu_ns: 1,
			},
		],
		findings: [
			{
				kind: "pattern",
				title: evil[0],
				cost_ns: 5,
				percent: 1,
				text: evil[1],
				advice: evil[10],
				places: [],
			},
		],
		caveats: [{code: "x", count: 2, text: evil[0]}],
	},
});
const page = await open(file);
const scripts = await page.evaluate(() => document.scripts.length);
is(page.troubles, [], "it opens in peace");
is(
	await page.evaluate(
		() => document.querySelectorAll("main img, main script, main svg:not(.hist)").length,
	),
	0,
	"no element came out of a name",
);
ok(
	(await page.textContent("#threads-body")).includes(evil[0].slice(0, 15)),
	"the name is shown as it is, as far as there is room",
);
ok(
	await page.evaluate(
		name =>
			[...document.querySelectorAll("#threads-body .thread")].some(b =>
				b.title.startsWith(name + ":"),
			),
		evil[0],
	),
	"and all of it on demand",
);
is(await page.title(), evil[0], "and so is the title");

// Everything that shows names: pins, tips, details, search, flame graph, filter, exports.
for (const thread of [0, 1, 2, 3, 4])
	for (const kind of ["gil", "py"]) {
		await page.evaluate(
			([thread, kind]) => {
				const row = gt.tl.rows.find(r => r.thread === thread && r.kind === kind),
					box = document.getElementById("tl").getBoundingClientRect();
				if (!row) return;
				const at = {
					clientX: box.left + 700,
					clientY: box.top + row.y - document.getElementById("tl-box").scrollTop + 5,
					bubbles: true,
					button: 0,
					pointerId: 1,
				};
				const canvas = document.getElementById("tl");
				canvas.setPointerCapture = () => {};
				for (const type of ["pointermove", "pointerdown", "pointerup"])
					canvas.dispatchEvent(new PointerEvent(type, at));
			},
			[thread, kind],
		);
		await quiet(page);
	}
for (const text of ["<script>", "onerror", "__proto__", "\\", "("]) {
	await page.fill("#search", text);
	await page.keyboard.press("Enter");
}
await page.evaluate(() => document.getElementById("flame").scrollIntoView());
await quiet(page);
for (const mode of await page.locator("#flame-modes button").all()) await mode.click();
await page.locator("#flame-body button").first().click();
await page.evaluate(() => document.getElementById("help-open").click());
await quiet(page);
is(await page.evaluate(() => window.pwned), undefined, "nothing was executed");
is(await page.evaluate(() => document.scripts.length), scripts, "no script was added");
is(page.troubles, [], "in peace");

// The hash is hostile as well.
for (const hash of [
	"#v=1e999,2&s=gil.99999.1&p=77&r=x&q=%E0%A4%A",
	"#v=NaN,NaN&s=py.0.0.99",
	"#s=__proto__.1.1&p=__proto__",
	"#q=%3Cimg%20src%3Dx%20onerror%3Dwindow.pwned%3D9%3E",
	"#v=-99999999999999999999,99999999999999999999",
	"#v=5,5&r=9,1",
]) {
	const p = await open(file, {hash});
	const v = await p.evaluate(() => [gt.view.from, gt.view.to, window.pwned]);
	ok(
		(Number.isFinite(v[0]) && v[1] > v[0] && v[2] === null) ||
			(v[2] === undefined && !p.troubles.length),
		"hash " + hash.slice(0, 30),
		v,
		p.troubles,
	);
	await p.context().close();
}
await done();

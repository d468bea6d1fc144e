// SPDX-License-Identifier: MIT
// The page opens offline, without errors, and makes no requests.
import {readFileSync, statSync} from "node:fs";
import {done, is, ok, open, pageFile, template} from "./lib.mjs";
import {makePage} from "./format.mjs";
import {hog} from "./programs.mjs";

const text = readFileSync(template, "utf8");
ok(
	statSync(template).size <= 225280,
	"the template has at most 220 KB: " + statSync(template).size,
);
is(text.match(/https?:/g), null, "nothing in it says http: or https:");
is(
	text.match(/<(link|img|iframe|object|embed)\b|(?<!\.)\bsrc=|@import|url\(/g),
	null,
	"nothing in it is loaded from elsewhere",
);
is(
	text.match(/<meta http-equiv="Content-Security-Policy" content="([^"]*)">/)[1],
	"default-src 'none'; script-src 'unsafe-inline' blob:; worker-src blob:; style-src 'unsafe-inline'; img-src data: blob:",
	"the policy is in place",
);
is(
	text.match(/<!--gt:\w+-->/g),
	["title", "verdict", "tables", "report", "meta", "overview", "blocks"].map(
		n => "<!--gt:" + n + "-->",
	),
	"the placeholders, each once, in their order",
);

const made = makePage(template, {
	passes: [hog({states: true}), {...hog({seed: 5}), name: "stacks"}],
});
const page = await open(pageFile(made));
is(page.troubles, [], "no error, no warning, no request");
is(await page.evaluate(() => gt.loading.errors), [], "every block was read");
is(
	await page.evaluate(() => document.querySelectorAll("script[type='text/plain']").length),
	1,
	"the blocks are gone from the document",
);
ok(
	await page.evaluate(() => !!performance.getEntriesByName("gt-overview").length),
	"there was a first picture",
);
is(
	await page.evaluate(() => {
		const frame = document.body.appendChild(document.createElement("iframe"));
		const known = new Set(Object.getOwnPropertyNames(frame.contentWindow));
		frame.remove();
		return Object.getOwnPropertyNames(window).filter(name => !known.has(name));
	}),
	["gt"],
	"its scripts share one name with the rest of the document",
);
// Run it later, since the browser suspends the policy while a test evaluates code.
is(
	await page.evaluate(
		() =>
			new Promise(done =>
				setTimeout(() => {
					try {
						done(new Function("return 'run'")());
					} catch (e) {
						done(e.name);
					}
				}),
			),
	),
	"EvalError",
	"the policy forbids eval",
);
is(
	await page.evaluate(() =>
		fetch("https://localhost/").then(
			() => "loaded",
			e => e.name,
		),
	),
	"TypeError",
	"and connections",
);
page.troubles.length = 0;

// A damaged page reports the damage and shows the rest.
const blocks = [...made.matchAll(/<script type="text\/plain">[A-Za-z0-9+/=]{100,}/g)].map(
	m => m.index,
);
const at = blocks[0] + '<script type="text/plain">'.length + 40;
const hurt = await open(pageFile(made.slice(0, at) + "AAAAAAAAAAAA" + made.slice(at + 12)));
ok(
	/cannot be read/.test(await hurt.textContent("#progress")),
	"a damaged block is told",
	await hurt.textContent("#progress"),
);
is(hurt.troubles, [], "and breaks nothing else");
const half = await open(pageFile(made.slice(0, made.lastIndexOf("<script>gt.push("))));
ok(
	/ends too early/.test(await half.textContent("#progress")),
	"so is a file that was cut off",
	await half.textContent("#progress"),
);
is(half.troubles, [], "of which the rest is shown");
const cut = await open(
	pageFile(
		made.replace(
			/gt\.push\(\[\{"kind":"gil"/,
			'gt.push([{"kind":"new-kind-of-a-later-version"',
		),
	),
);
is(cut.troubles, [], "sections of a later version are skipped");
await done();

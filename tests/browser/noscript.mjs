// SPDX-License-Identifier: MIT
// Without JavaScript, the page has verdict and tables; printed, it is not empty.
import {done, is, ok, open, pageFile} from "./lib.mjs";
import {hog} from "./programs.mjs";

const file = pageFile({passes: [hog()]});
const plain = await open(file, {javaScript: false});
ok(await plain.locator(".headline").isVisible(), "without JavaScript the verdict is there");
ok(await plain.locator("#static table").first().isVisible(), "and the tables");
ok((await plain.locator("#static").innerText()).includes("Matcher"), "with their names");
is(
	await plain.locator(".needs-js:visible, .searchbox:visible, .bar button:visible").count(),
	0,
	"and nothing that cannot work",
);
is(plain.troubles, [], "in peace");

const page = await open(file, {dark: true});
await page.emulateMedia({media: "print", colorScheme: "dark"});
ok(
	(await page.locator("#threads-body table").isVisible()) &&
		(await page.locator(".headline").isVisible()),
	"printed: the verdict and the table of threads",
);
is(
	await page.locator(".searchbox:visible, .menu:visible, #zoom-in:visible").count(),
	0,
	"and no buttons",
);
await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
is(
	await page.evaluate(() => [
		document.documentElement.dataset.shade,
		getComputedStyle(document.documentElement).backgroundColor,
	]),
	["light", "rgb(255, 255, 255)"],
	"on white paper",
);
const ink = await page.evaluate(() => {
	const c = document.getElementById("tl"),
		data = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
	let n = 0;
	for (let i = 0; i < data.length; i += 4)
		n += data[i] < 240 || data[i + 1] < 240 || data[i + 2] < 240;
	return n / (c.width * c.height);
});
ok(ink > 0.05, "the timeline is drawn: " + ink.toFixed(2));
await page.setViewportSize({width: 718, height: 1000}); // A4 without its margins
is(
	await page.evaluate(() =>
		[...document.querySelectorAll("main .scroll, main .table")]
			.filter(e => e.scrollWidth > e.clientWidth + 1)
			.map(e => e.id + e.className + " " + e.scrollWidth + " of " + e.clientWidth),
	),
	[],
	"no column of a table is cut off",
);
const pdf = await page.pdf({printBackground: true});
ok(
	pdf.length > 30000 && pdf.subarray(0, 5).toString() === "%PDF-",
	"as a PDF of " + pdf.length + " bytes",
);
await page.emulateMedia({media: "screen", colorScheme: "dark"});
await page.evaluate(() => dispatchEvent(new Event("afterprint")));
is(await page.evaluate(() => document.documentElement.dataset.shade), "dark", "and back to dark");
is(page.troubles, [], "in peace");
await done();

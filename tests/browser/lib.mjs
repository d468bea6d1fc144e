// SPDX-License-Identifier: MIT
// A real browser for tests: TAP, and pages with the network off and the console watched.
import {createRequire} from "node:module";
import {mkdtempSync, writeFileSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {makePage} from "./format.mjs";

const {chromium} = createRequire(import.meta.url)("playwright-core");

let count = 0,
	failed = 0;

export function ok(good, name, ...why) {
	console.log((good ? "ok " : "not ok ") + ++count + " - " + name.replace(/#/g, "no."));
	if (!good) {
		failed++;
		for (const w of why)
			console.log(
				"# " +
					(typeof w === "string" ? w : JSON.stringify(w))
						.replace(/\n/g, "\n# ")
						.slice(0, 2000),
			);
	}
	return good;
}

export function is(got, want, name) {
	return ok(
		JSON.stringify(got) === JSON.stringify(want),
		name,
		"got:  " + JSON.stringify(got),
		"want: " + JSON.stringify(want),
	);
}

export function near(got, want, by, name) {
	return ok(Math.abs(got - want) <= by, name, "got " + got + ", want " + want + " within " + by);
}

export const template = join(process.env.top_builddir || ".", "share/report/page.html");
const folder = mkdtempSync(join(process.env.TMPDIR || tmpdir(), "page-"));
let files = 0;

// A file with this page in it; see format.mjs.
export function pageFile(page) {
	const path = join(folder, "page" + ++files + ".html");
	writeFileSync(path, typeof page === "string" ? page : makePage(template, page));
	return path;
}

let browser = null;
const PATIENCE = 120000; // ms, on a busy host

/*
 * Open a file; options: hash, width, height, scale, dark, touch, javaScript, foreign (not our page). The page's troubles gather in
 * page.troubles: console errors and warnings, exceptions, requests that are not for this file.
 */
export async function open(path, options = {}) {
	browser ||= await chromium.launch({
		executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
		args: ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"],
		timeout: PATIENCE,
	});
	const context = await browser.newContext({
		viewport: {width: options.width || 1440, height: options.height || 900},
		deviceScaleFactor: options.scale || 1,
		colorScheme: options.dark ? "dark" : "light",
		javaScriptEnabled: options.javaScript !== false,
		hasTouch: !!options.touch,
		isMobile: !!options.touch,
		offline: true,
		acceptDownloads: true,
		reducedMotion: "reduce",
	});
	context.setDefaultTimeout(PATIENCE);
	const page = await context.newPage();
	page.troubles = [];
	page.on("console", m => {
		if (
			["error", "warning"].includes(m.type()) &&
			!/willReadFrequently/.test(m.text()) /* reading the canvas is the tests' doing */
		)
			page.troubles.push(m.type() + ": " + m.text());
	});
	page.on("pageerror", e => page.troubles.push("exception: " + e.message));
	page.on("request", r => {
		if (!/^(file|blob):/.test(r.url())) page.troubles.push("request: " + r.url().slice(0, 200));
	});
	await page.goto("file://" + path + (options.hash || ""));
	if (options.javaScript !== false && !options.foreign) await complete(page);
	return page;
}

export async function complete(page) {
	await page.waitForFunction(() => performance.getEntriesByName("gt-ready").length);
	await quiet(page);
}

// Everything that was asked for has been drawn and written.
export async function quiet(page) {
	await page.evaluate(
		() =>
			new Promise(done =>
				setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 450),
			),
	);
}

export async function done(code) {
	if (browser) await browser.close();
	rmSync(folder, {recursive: true, force: true});
	console.log("1.." + count);
	process.exit(failed || code ? 1 : 0);
}

process.on("unhandledRejection", async e => {
	ok(false, "the test ran to its end", (e && e.stack) || String(e));
	await done(1);
});

// SPDX-License-Identifier: MIT
// Measures how fast a page of events opens and moves in headless Chromium: page.mjs NAME FILE
// [POLYFILL] prints one row. Our page is measured by its own marks, VizTracer's viewer (catapult)
// by the moment at which it has drawn its model. POLYFILL is a file that this viewer would
// otherwise fetch from the network.
import {createRequire} from "node:module";
import {readFileSync, readdirSync, statSync} from "node:fs";

const {chromium} = createRequire(import.meta.url)("playwright-core");
const [name, file, polyfill] = process.argv.slice(2);

function rendererPeak() {
	let peak = 0;
	for (const pid of readdirSync("/proc").filter(p => /^\d+$/.test(p)))
		try {
			const cmd = readFileSync("/proc/" + pid + "/cmdline", "utf8"),
				status = readFileSync("/proc/" + pid + "/status", "utf8");
			if (cmd.includes("--type=renderer") && cmd.includes(marker))
				peak = Math.max(peak, /VmHWM:\s+(\d+)/.exec(status)[1] / 1024);
		} catch {
			/* it has ended */
		}
	return peak;
}

const p95 = list => list.slice().sort((a, b) => a - b)[Math.floor(list.length * 0.95)];
const s = ms => (ms / 1000).toFixed(2);

async function ours(page) {
	await page.waitForFunction(() => typeof gt !== "undefined" && gt.loading.complete, null, {
		timeout: 120000,
		polling: 50,
	});
	const t = await page.evaluate(() =>
		Object.fromEntries(
			[...performance.getEntriesByType("mark"), ...performance.getEntriesByType("paint")].map(
				m => [m.name, m.startTime],
			),
		),
	);
	await page.waitForTimeout(1000);
	const frames = await page.evaluate(async () => {
		const drawn = () =>
			new Promise(done => requestAnimationFrame(began => done(performance.now() - began)));
		const dur = gt.pass().dur_ns,
			out = [];
		for (let i = 0; i < 100; i++) {
			gt.setView(dur * i * 1e-5, dur * (1 - i * 1e-5));
			out.push(await drawn());
			await drawn();
		}
		return out;
	});
	return [
		Math.max(t["gt-overview"], t["first-contentful-paint"]),
		t["gt-complete"],
		p95(frames),
		await page.evaluate(() => gt.loading.events),
	];
}

// The time of a frame is from its start until all its callbacks have drawn, while the view moves a
// little.
async function catapult(page) {
	await page.waitForFunction(
		() => {
			const v = document.getElementById("trace-viewer");
			return v && v.model && v.trackView;
		},
		null,
		{timeout: 300000, polling: 50},
	);
	const ready = await page.evaluate(
		() =>
			new Promise(done =>
				requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))),
			),
	);
	const frames = await page.evaluate(async () => {
		const drawn = () =>
			new Promise(done => requestAnimationFrame(began => done(performance.now() - began)));
		const vp = document.getElementById("trace-viewer").trackView.viewport,
			out = [];
		for (let i = 0; i < 40; i++) {
			const t = vp.currentDisplayTransform.clone();
			t.panX += 1;
			vp.setDisplayTransformImmediately(t);
			out.push(await drawn());
			await drawn();
		}
		return out;
	});
	return [ready, ready, p95(frames), NaN];
}

const marker = "--bench-" + process.pid;
const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
	args: ["--no-sandbox", "--disable-gpu", "--user-agent=bench" + marker],
});
const page = await (await browser.newContext({viewport: {width: 1440, height: 900}})).newPage();
if (polyfill)
	await page.route(/^https?:/, route =>
		/webcomponents/.test(route.request().url())
			? route.fulfill({
					contentType: "text/javascript",
					body: readFileSync(polyfill),
					headers: {"access-control-allow-origin": "*"},
				})
			: route.abort(),
	);
page.on("pageerror", e => {
	console.log(name + ": " + e.message);
	process.exit(1);
});
await page.goto("file://" + file, {waitUntil: "commit"});
const [overview, complete, frame] = await (polyfill ? catapult : ours)(page);
console.log(
	[
		name.padEnd(26),
		(statSync(file).size / 1e6).toFixed(1).padStart(9),
		s(overview).padStart(11),
		s(complete).padStart(11),
		rendererPeak().toFixed(0).padStart(9),
		frame.toFixed(1).padStart(12),
	].join(" "),
);
await browser.close();

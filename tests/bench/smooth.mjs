// SPDX-License-Identifier: MIT
// Measures how the page of many threads responds in headless Chromium: smooth.mjs NAME FILE prints
// one row: the times of frames while it zooms in on a thread's waits, and the longest time for which
// the page does not respond while the whole recording is selected.
import {createRequire} from "node:module";

const {chromium} = createRequire(import.meta.url)("playwright-core");
const [name, file] = process.argv.slice(2);
const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
	args: ["--no-sandbox", "--disable-gpu"],
});
const page = await (await browser.newContext({viewport: {width: 1440, height: 900}})).newPage();
page.on("pageerror", e => {
	console.log(name + ": " + e.message);
	process.exit(1);
});
await page.goto("file://" + file);
await page.waitForFunction(() => gt.loading.complete, null, {timeout: 120000});
await page.waitForTimeout(1000);

const devtools = await page.context().newCDPSession(page);
await devtools.send("Performance.enable", {timeDomain: "threadTicks"});
async function cpuSeconds() {
	const {metrics} = await devtools.send("Performance.getMetrics");
	return metrics.find(m => m.name === "TaskDuration").value;
}

const FRAMES = 120;
async function zoom(button) {
	await page.evaluate(async id => {
		if (id) document.getElementById(id).click();
		document.getElementById("timeline").scrollIntoView();
		await new Promise(done => setTimeout(done, 1000));
	}, button);
	const before = await cpuSeconds();
	const frames = await page.evaluate(async n => {
		const drawn = () =>
			new Promise(done => requestAnimationFrame(began => done(performance.now() - began)));
		const dur = gt.pass().dur_ns,
			out = [];
		for (let i = 0; i < n; i++) {
			const part = Math.pow(0.95, i);
			gt.setView(dur * 0.4 * (1 - part), dur * (0.4 + 0.6 * part));
			out.push(await drawn());
			await drawn();
		}
		return out.sort((a, b) => a - b);
	}, FRAMES);
	const cpu = ((await cpuSeconds()) - before) / FRAMES;
	return [frames[FRAMES >> 1], frames[Math.floor(FRAMES * 0.95)], cpu * 1000];
}

async function select() {
	return page.evaluate(async () => {
		let longest = 0;
		new PerformanceObserver(list => {
			for (const task of list.getEntries()) longest = Math.max(longest, task.duration);
		}).observe({type: "longtask"});
		gt.setView(0, gt.pass().dur_ns);
		await new Promise(done => setTimeout(done, 1000));
		longest = 0;
		const began = performance.now(),
			body = document.getElementById("range-body");
		gt.setRange(0, gt.pass().dur_ns);
		while (body.querySelectorAll("table").length < 3)
			await new Promise(done => setTimeout(done, 20));
		const took = performance.now() - began;
		await new Promise(done => setTimeout(done, 1000));
		return [longest, took];
	});
}

const first = await zoom("");
const all = await zoom("all-threads");
const numbers = [...first, ...all, ...(await select())];
console.log(name.padEnd(26) + numbers.map(x => x.toFixed(1).padStart(10)).join(" "));
await browser.close();

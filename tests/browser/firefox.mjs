// SPDX-License-Identifier: MIT
// The page in Firefox, driven by Marionette: lines of [0, id, command, parameters], each after
// its length.
import {spawn} from "node:child_process";
import {existsSync, mkdtempSync, readFileSync, rmSync, watch, writeFileSync} from "node:fs";
import {createRequire} from "node:module";
import {createConnection} from "node:net";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {done, is, near, ok, pageFile} from "./lib.mjs";
import {hog} from "./programs.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const profile = mkdtempSync(join(process.env.TMPDIR || tmpdir(), "firefox-"));
const prefs = {
	"marionette.port": 0,
	"browser.shell.checkDefaultBrowser": false,
	"browser.startup.page": 0,
	"datareporting.policy.dataSubmissionEnabled": false,
	"app.update.enabled": false,
	"browser.aboutwelcome.enabled": false,
	"toolkit.telemetry.enabled": false,
	"network.captive-portal-service.enabled": false,
	"network.connectivity-service.enabled": false,
	"browser.safebrowsing.update.enabled": false,
	"ui.prefersReducedMotion": 1,
};
writeFileSync(
	join(profile, "user.js"),
	Object.entries(prefs)
		.map(([k, v]) => `user_pref(${JSON.stringify(k)}, ${v});\n`)
		.join(""),
);

const portFile = join(profile, "MarionetteActivePort");
const firefox = spawn(
	process.env.FIREFOX,
	[
		"--headless",
		"--no-remote",
		"--marionette",
		"--remote-allow-system-access",
		"--profile",
		profile,
	],
	{stdio: "ignore", env: {...process.env, HOME: profile, MOZ_CRASHREPORTER_DISABLE: "1"}},
);
const ended = new Promise(resolve => firefox.on("exit", resolve));
process.on("exit", () => firefox.kill());

async function finish(code) {
	firefox.kill();
	await ended;
	rmSync(profile, {recursive: true, force: true});
	await done(code);
}

// Firefox writes down its port once it listens.
const port = await new Promise((resolve, reject) => {
	const look = () => {
		const text = existsSync(portFile) ? readFileSync(portFile, "utf8") : "";
		if (/^\d+$/.test(text)) {
			watcher.close();
			resolve(+text);
		}
	};
	const watcher = watch(profile, look);
	ended.then(code => reject(new Error("Firefox ended with " + code)));
	look();
});

const socket = createConnection(port, "127.0.0.1");
let bytes = Buffer.alloc(0),
	lastId = 0;
const waiting = new Map();
socket.on("data", data => {
	bytes = Buffer.concat([bytes, data]);
	for (;;) {
		const colon = bytes.indexOf(":"),
			end = colon < 0 ? NaN : colon + 1 + +bytes.subarray(0, colon);
		if (!(end <= bytes.length)) return;
		const message = JSON.parse(bytes.subarray(colon + 1, end));
		bytes = bytes.subarray(end);
		if (Array.isArray(message)) waiting.get(message[1])(message);
	}
});

async function send(command, parameters = {}) {
	const text = Buffer.from(JSON.stringify([0, ++lastId, command, parameters]));
	const answer = new Promise(resolve => waiting.set(lastId, resolve));
	socket.write(text.length + ":");
	socket.write(text);
	const [, , error, result] = await answer;
	if (error) throw new Error(command + ": " + error.message);
	return result;
}

const run = async script => (await send("WebDriver:ExecuteScript", {script, args: []})).value;
const until = async script =>
	(
		await send("WebDriver:ExecuteAsyncScript", {
			script:
				"const done = arguments[0]; const look = () => { if (" +
				script +
				") done(true); else requestAnimationFrame(look); }; look();",
			args: [],
		})
	).value;

await send("WebDriver:NewSession", {capabilities: {alwaysMatch: {}}});
const path = pageFile({passes: [hog({states: true}), {...hog({seed: 5}), name: "stacks"}]});
await send("WebDriver:Navigate", {url: "file://" + path});
is(
	await until('performance.getEntriesByName("gt-ready").length'),
	true,
	"Firefox reads the page to its end",
);
is(await run('return document.getElementById("progress").textContent'), "", "every block of it");

const table = await run(
	'return [...document.querySelectorAll("#threads-body tbody tr")].map(tr => [+tr.dataset.tid, +tr.dataset.hold, +tr.dataset.wait]).sort((a, b) => a[0] - b[0])',
);
const wanted = await run(
	'return JSON.parse(document.getElementById("gt-report").textContent).threads.map(t => [t.tid, t.hold_ns, t.wait_ns]).sort((a, b) => a[0] - b[0])',
);
is(table, wanted, "the table of threads is that of the document");
is(
	await run('return document.querySelectorAll("#blame-body button[data-ns]").length > 0'),
	true,
	"there is a matrix",
);

const colors = () =>
	run(`const c = document.getElementById("tl"), d = c.getContext("2d").getImageData(Math.round(220 * devicePixelRatio), 0, c.width - Math.round(230 * devicePixelRatio), c.height).data;
	const seen = new Set();
	for (let i = 0; i < d.length; i += 4)
		seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
	const p = gt.palette();
	return [p.wait, p.waitAlt, gt.threadColor(1)].map(x => seen.has(parseInt(x.slice(1), 16)));`);
is(await colors(), [true, true, true], "waits are hatched, a holder has its colour");

await run('document.querySelector("#findings-body .title").click()');
is(
	await until('!document.getElementById("details").hidden'),
	true,
	"a finding shows the details of its worst place",
);
ok(
	/812/.test(await run('return document.getElementById("details-h").textContent')),
	"the longest hold",
);
await until("/[#&]v=-?[0-9]/.test(location.hash)");
const moment = await run("return location.hash");
await run(
	'document.getElementById("tl").dispatchEvent(new KeyboardEvent("keydown", {code: "KeyS", key: "s", bubbles: true}))',
);
is(
	await until("location.hash !== " + JSON.stringify(moment)),
	true,
	"keys zoom, and the address has the view",
);
const shade = "document.documentElement.dataset.shade";
const before = await run("return " + shade);
await run('document.getElementById("theme").click()');
is(
	await run("return [" + shade + ", getComputedStyle(document.documentElement).backgroundColor]"),
	before === "dark" ? ["light", "rgb(247, 248, 250)"] : ["dark", "rgb(13, 16, 21)"],
	"light and dark",
);

const zoomed = await run("return location.hash");
for (const [command, hash, what] of [
	["Back", moment, "Back shows what was shown before"],
	["Forward", zoomed, "and Forward what was left"],
]) {
	await send("WebDriver:" + command);
	const from = Number(/[#&]v=(-?[0-9]+)/.exec(hash)[1]);
	is(
		await until(
			`location.hash === ${JSON.stringify(hash)} && Math.abs(gt.view.from - ${from}) <= 1`,
		),
		true,
		what,
	);
}

// Fingers: at x from the timeline's left edge, after it has been brought into sight.
const edge = await run(`gt.setPin(null);
	gt.setView(0, gt.pass().dur_ns);
	document.getElementById("timeline").scrollIntoView();
	const box = document.getElementById("tl").getBoundingClientRect();
	return {x: box.left + gt.GUTTER, y: box.top + 60, width: box.width - gt.GUTTER};`);
const to = x => ({
	type: "pointerMove",
	x: Math.round(edge.x + x),
	y: Math.round(edge.y),
	origin: "viewport",
	duration: 0,
});
const down = {type: "pointerDown", button: 0},
	up = {type: "pointerUp", button: 0},
	rest = {type: "pause"};
const fingers = (...lists) =>
	send("WebDriver:PerformActions", {
		actions: lists.map((actions, i) => ({
			type: "pointer",
			id: "finger" + i,
			parameters: {pointerType: "touch"},
			actions,
		})),
	});
await fingers([to(100), down, rest, rest, rest, up], [to(200), down, to(250), to(300), rest, up]);
const whole = 2.5e9;
is(
	await until(`Math.abs(gt.view.to - gt.view.from - ${whole / 2}) < ${whole / 50}`),
	true,
	"two fingers twice as far apart zoom in twofold",
);
await run(`gt.setView(0, gt.pass().dur_ns);
	document.getElementById("tl").addEventListener("pointerdown",
		() => setTimeout(() => (document.body.id = "held"), 500), {once: true});`);
await fingers([to(100), down]);
await until('document.body.id === "held"');
await fingers([to(150), to(200), up]);
is(await until("/[#&]r=/.test(location.hash)"), true, "a finger that is held selects a range");
const selected = await run("return /r=(\\d+),(\\d+)/.exec(location.hash).slice(1).map(Number)");
near(selected[1] - selected[0], (100 / edge.width) * whole, whole / 50, "as far as it went");

// Paper: the flame graph is drawn for it, although nobody has scrolled there.
const pdf = Buffer.from((await send("WebDriver:Print", {})).value, "base64");
if (process.env.GILTRACER_TEST_PDF) writeFileSync(process.env.GILTRACER_TEST_PDF, pdf);
ok(pdf.subarray(0, 5).toString() === "%PDF-", "a PDF of " + pdf.length + " bytes");
is(
	await run('return document.querySelectorAll("#flame-body .frame").length > 5'),
	true,
	"with the flame graph, to which nobody has scrolled",
);

// Real reports, with a moment explained.
for (const report of process.argv.slice(2)) {
	await send("WebDriver:Navigate", {url: "file://" + report});
	is(
		[
			await until('performance.getEntriesByName("gt-ready").length'),
			await run('return document.getElementById("progress").textContent'),
		],
		[true, ""],
		"Firefox reads " + report.replace(/.*\//, ""),
	);
	await run('document.querySelector("#waits-body button.link")?.click()');
	is(
		await run(
			axe +
				"; return axe.run(document).then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.target.join(' '))]))",
		),
		[],
		"axe-core finds no barrier in Firefox",
	);
}

await send("Marionette:SetContext", {value: "chrome"});
const troubles = await run(
	`return Services.console.getMessageArray().filter(m => m instanceof Ci.nsIScriptError && /^(file|blob):/.test(m.sourceName)).map(m => m.errorMessage + " " + m.sourceName + ":" + m.lineNumber)`,
);
is(troubles, [], "nothing is on the console: no error, no warning, no breach of the policy");
await finish();

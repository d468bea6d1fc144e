// SPDX-License-Identifier: MIT
// Colours, light and dark. Only waits are vermilion. Neighbouring states of a lane differ in
// contrast by 3:1: a solid colour differs from at least one of the stripes' colours; stripes differ
// from each other in direction.

import {crowds} from "./crowds.js";
import {gilKnown, pass, threadName} from "./data.js";
import {$, click, listen, save, saved} from "./dom.js";
import {emit} from "./events.js";
import {round} from "./math.js";
import * as words from "./words.js";

// The colours of the threads and crowds that hold and wait most; all others share a grey.
const IDENTITY = {
	light: "#0072b2 #00805c #b3417f #7a5ba6 #7a7000 #007c91 #2b3f8c #7d1d3f #3b6b00 #5b2a86".split(
		" ",
	),
	dark: "#56a8e8 #25b98c #e58ac0 #a993e0 #c9bd3c #3cc3d6 #8fa8ff #ff8fa3 #93cf5a #cf9bff".split(
		" ",
	),
};

// The names of the colours of style.css that the canvases use.
const PAINTS =
	"paper,ink,soft,line,accent,other,wait,waitAlt,swwaitAlt,freewait,unknown,unknownAlt,none," +
	"dead,hit,noneRun,running,runnable,runnableAlt,sleeping,disk,diskAlt,gilsleep,gilsleepAlt," +
	"more,less";

export const palette = {};
let darkNow = false;

// "#rrggbb" as a number for an ImageData's Uint32 view (little-endian).
export function rgba(hex) {
	const v = parseInt(hex.slice(1, 7), 16);
	return (0xff000000 | ((v & 255) << 16) | (v & 0xff00) | (v >> 16)) >>> 0;
}

export function mix(a, b, share) {
	const x = parseInt(a.slice(1, 7), 16),
		y = parseInt(b.slice(1, 7), 16);
	const one = s => round(((x >> s) & 255) * (1 - share) + ((y >> s) & 255) * share);
	return "#" + ((1 << 24) | (one(16) << 16) | (one(8) << 8) | one(0)).toString(16).slice(1);
}

let slots = []; // indices of colours, by thread; -1 for grey

// Keys that identify a thread or a crowd in each recording of the program; main threads come first.
function identities() {
	const seen = new Map();
	return crowds()
		.map(c => {
			const t = pass().threads[c.threads[0]],
				name = t.main ? "" : c.name || threadName(c.threads[0]);
			seen.set(name, (seen.get(name) || 0) + 1);
			return {threads: c.threads, key: name + "\0" + seen.get(name)};
		})
		.sort((a, b) => (a.key < b.key ? -1 : 1));
}

// The crowds that hold most and those that wait most, alternately.
function conspicuous(list) {
	const sum = (c, of) => c.threads.reduce((n, i) => n + (of(pass().threads[i]) || 0), 0),
		watched = gilKnown();
	const by = of =>
		list
			.map(c => ({c, ns: sum(c, of)}))
			.filter(x => x.ns > 0)
			.sort((a, b) => b.ns - a.ns);
	const hold = by(t => (watched || !t.states ? t.hold_ns : t.states.running_ns)),
		wait = by(t => (watched || !t.states ? t.wait_ns : t.states.gil_sleep_ns)),
		out = new Set();
	for (let i = 0; i < list.length; i++)
		for (const x of [hold[i], wait[i]]) if (x && out.size < IDENTITY.light.length) out.add(x.c);
	return out;
}

// A name has the same colour in every recording, unless an earlier name has taken it.
export function rankHolders() {
	const n = IDENTITY.light.length,
		taken = [],
		list = identities(),
		some = conspicuous(list);
	slots = pass().threads.map(() => -1);
	for (const c of list.filter(x => some.has(x))) {
		let slot = c.key[0] === "\0" ? 0 : nameHash(c.key) % n;
		while (taken[slot]) slot = (slot + 1) % n;
		taken[slot] = true;
		for (const i of c.threads) slots[i] = slot;
	}
}

export function nameHash(text) {
	let v = 7;
	for (let i = 0; i < text.length; i++) v = (v * 31 + text.charCodeAt(i)) >>> 0;
	return v;
}

// The number of ranks: one for each colour of IDENTITY, and the last for the grey of the others.
export const ranks = () => IDENTITY.light.length + 1;
export const rankOf = thread => (slots[thread] >= 0 ? slots[thread] : IDENTITY.light.length);
export const rankColor = rank => IDENTITY[darkNow ? "dark" : "light"][rank] || palette.other;
export const threadColor = thread => rankColor(rankOf(thread));

export let sliceColors = [];
// Calm colours of functions, by id.
export const sliceIndex = id => (Math.imul(id + 1, 2654435761) >>> 8) % sliceColors.length;

function applyTheme() {
	const set = document.documentElement.dataset.theme;
	darkNow = set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
	const css = getComputedStyle(document.documentElement);
	for (const name of PAINTS.split(","))
		palette[name] = css.getPropertyValue("--" + name).match(/#\w{6}/g)[darkNow ? 1 : 0];
	document.documentElement.dataset.shade = darkNow ? "dark" : "light";
	$("theme").textContent = darkNow ? words.light : words.dark;
	const base = [
		"#7aa6c8",
		"#8fbfae",
		"#d9bd84",
		"#c9a5bb",
		"#9cc7de",
		"#b5bb8b",
		"#a9acd0",
		"#d3a594",
	];
	sliceColors = base.map(c => mix(c, palette.paper, darkNow ? 0.52 : 0.3));
}

export function themeInit() {
	const chosen = saved("giltracer-theme");
	if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
	applyTheme();
	const again = () => {
		applyTheme();
		emit("theme");
	};
	listen(matchMedia("(prefers-color-scheme: dark)"), "change", again);
	click("theme", () => {
		const next = darkNow ? "light" : "dark";
		document.documentElement.dataset.theme = next;
		save("giltracer-theme", next);
		again();
	});
	let before = null;
	addEventListener("beforeprint", () => {
		before ??= document.documentElement.dataset.theme || "";
		document.documentElement.dataset.theme = "light";
		again();
		emit("now");
	});
	addEventListener("afterprint", () => {
		if (before) document.documentElement.dataset.theme = before;
		else if (before === "") delete document.documentElement.dataset.theme;
		before = null;
		again();
	});
}

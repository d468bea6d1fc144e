// SPDX-License-Identifier: MIT
// Colours (after Okabe and Ito, safe for colour-blind eyes), light and dark. Their vermilion is
// for waits alone.

import {gilKnown, pass} from "./data.js";
import {$} from "./dom.js";
import {emit} from "./events.js";

// Of threads as holders: the six who hold most have one, the others share a grey.
const IDENTITY = {
	light: ["#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#c2ab00", "#7a5ba6"],
	dark: ["#3f9fe0", "#18b088", "#d48cb4", "#8fd0f5", "#d9cc3f", "#a488d0"],
};

// Those of style.css that are painted with, by name.
const PAINTS =
	"paper ink soft line other wait waitAlt swwaitAlt unknown unknownAlt none dead hit " +
	"running runnable runnableAlt sleeping disk diskAlt gilsleep gilsleepAlt";

export const palette = {};
let darkNow = false;

// "#rrggbb" -> the number that an ImageData's Uint32 view wants (little-endian).
export function rgba(hex) {
	const v = parseInt(hex.slice(1, 7), 16);
	return (0xff000000 | ((v & 255) << 16) | (v & 0xff00) | (v >> 16)) >>> 0;
}

export function mix(a, b, share) {
	const x = parseInt(a.slice(1, 7), 16),
		y = parseInt(b.slice(1, 7), 16);
	const one = s => Math.round(((x >> s) & 255) * (1 - share) + ((y >> s) & 255) * share);
	return "#" + ((1 << 24) | (one(16) << 16) | (one(8) << 8) | one(0)).toString(16).slice(1);
}

let holderRank = null;
export function rankHolders() {
	const t = pass().threads;
	holderRank = new Array(t.length).fill(-1);
	const weight = x => (gilKnown() || !x.states ? x.hold_ns : x.states.running_ns);
	t.map((x, i) => i)
		.filter(i => weight(t[i]) > 0)
		.sort((a, b) => weight(t[b]) - weight(t[a]) || a - b)
		.slice(0, IDENTITY.light.length)
		.forEach((i, rank) => {
			holderRank[i] = rank;
		});
}

// Ranks of colours: those of single threads, and the grey of the rest.
export const ranks = () => IDENTITY.light.length + 1;
export const rankOf = thread =>
	holderRank[thread] >= 0 ? holderRank[thread] : IDENTITY.light.length;
export const rankColor = rank => IDENTITY[darkNow ? "dark" : "light"][rank] || palette.other;

export function threadColor(index) {
	const rank = holderRank[index];
	return rank >= 0 ? IDENTITY[darkNow ? "dark" : "light"][rank] : palette.other;
}

export let sliceColors = [];
// Calm colours of functions, by id.
export const sliceIndex = id => (Math.imul(id + 1, 2654435761) >>> 8) % sliceColors.length;

function applyTheme() {
	const set = document.documentElement.dataset.theme;
	darkNow = set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
	const css = getComputedStyle(document.documentElement);
	for (const name of PAINTS.split(" "))
		palette[name] = css.getPropertyValue("--" + name).match(/#\w{6}/g)[darkNow ? 1 : 0];
	document.documentElement.dataset.shade = darkNow ? "dark" : "light";
	$("theme").textContent = darkNow ? "Light" : "Dark";
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
	try {
		const saved = localStorage.getItem("giltracer-theme");
		if (saved === "dark" || saved === "light") document.documentElement.dataset.theme = saved;
	} catch {
		/* storage may be forbidden for files */
	}
	applyTheme();
	const again = () => {
		applyTheme();
		emit("theme");
	};
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
	$("theme").addEventListener("click", () => {
		const next = darkNow ? "light" : "dark";
		document.documentElement.dataset.theme = next;
		try {
			localStorage.setItem("giltracer-theme", next);
		} catch {
			/* then only for now */
		}
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

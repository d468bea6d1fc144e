// SPDX-License-Identifier: MIT
// Colours (after Okabe and Ito, safe for colour-blind eyes), light and dark. Their vermilion is for waits alone.

// Of threads as holders: the six who hold most have one, the others share a grey.
const IDENTITY = {
	light: ["#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#c2ab00", "#7a5ba6"],
	dark: ["#3f9fe0", "#18b088", "#d48cb4", "#8fd0f5", "#d9cc3f", "#a488d0"],
};

const PALETTES = {
	light: {
		paper: "#ffffff", lane: "#f3f4f6", ink: "#1d2430", soft: "#667085", line: "#e4e7ec", grid: "#eceef2",
		other: "#98a2b3", wait: "#d55e00", waitAlt: "#f2a36b", swwait: "#d55e00", swwaitAlt: "#f7d9c4",
		unknown: "#c3c8d1", unknownAlt: "#e9ebef", none: "#e8ecf1", dead: "#fafbfc",
		running: "#4fae8e", runnable: "#e0c200", runnableAlt: "#f7ee9c", sleeping: "#dfe4ea",
		disk: "#a9568a", diskAlt: "#cc79a7", gilsleep: "#e58a4e", gilsleepAlt: "#f6cdb0",
		hit: "#d6006c", select: "#0072b233", slice: 0.62, text: "#1d2430", waiters: "#1d243099",
	},
	dark: {
		paper: "#14181f", lane: "#1c222b", ink: "#e6e9ee", soft: "#98a2b3", line: "#2b333f", grid: "#232a34",
		other: "#6b7686", wait: "#f0782a", waitAlt: "#8a4213", swwait: "#f0782a", swwaitAlt: "#4a2a14",
		unknown: "#4a5361", unknownAlt: "#2d3541", none: "#28303b", dead: "#171b22",
		running: "#2e8d6d", runnable: "#cdb400", runnableAlt: "#6b6012", sleeping: "#2d3643",
		disk: "#d48cb4", diskAlt: "#7d4a68", gilsleep: "#b9602a", gilsleepAlt: "#5a3419",
		hit: "#ff5fa8", select: "#56b4e940", slice: 0.5, text: "#eef1f5", waiters: "#ffffffb0",
	},
};

let palette = null;
let darkNow = false;

// "#rrggbb" -> the number that an ImageData's Uint32 view wants (little-endian).
function rgba(hex) {
	const v = parseInt(hex.slice(1, 7), 16);
	return (0xff000000 | (v & 255) << 16 | (v & 0xff00) | v >> 16) >>> 0;
}

function mix(a, b, share) {
	const x = parseInt(a.slice(1, 7), 16), y = parseInt(b.slice(1, 7), 16);
	const one = s => Math.round((x >> s & 255) * (1 - share) + (y >> s & 255) * share);
	return "#" + (1 << 24 | one(16) << 16 | one(8) << 8 | one(0)).toString(16).slice(1);
}

let holderRank = null;
function rankHolders() {
	const t = pass().threads;
	holderRank = new Array(t.length).fill(-1);
	const weight = x => gilKnown() || !x.states ? x.hold_ns : x.states.running_ns;
	t.map((x, i) => i).filter(i => weight(t[i]) > 0).sort((a, b) => weight(t[b]) - weight(t[a]) || a - b)
		.slice(0, IDENTITY.light.length).forEach((i, rank) => { holderRank[i] = rank; });
}

function threadColor(index) {
	const rank = holderRank[index];
	return rank >= 0 ? IDENTITY[darkNow ? "dark" : "light"][rank] : palette.other;
}

let sliceColors = [];
// Calm colours of functions, by id.
const sliceIndex = id => (Math.imul(id + 1, 2654435761) >>> 8) % sliceColors.length;
const sliceColor = id => sliceColors[sliceIndex(id)];

function applyTheme() {
	const set = document.documentElement.dataset.theme;
	darkNow = set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
	palette = PALETTES[darkNow ? "dark" : "light"];
	document.documentElement.dataset.shade = darkNow ? "dark" : "light";
	$("theme").textContent = darkNow ? "Light" : "Dark";
	const base = ["#7aa6c8", "#8fbfae", "#d9bd84", "#c9a5bb", "#9cc7de", "#b5bb8b", "#a9acd0", "#d3a594"];
	sliceColors = base.map(c => mix(c, palette.paper, darkNow ? 0.52 : 0.3));
}

function themeInit() {
	try {
		const saved = localStorage.getItem("giltracer-theme");
		if (saved === "dark" || saved === "light")
			document.documentElement.dataset.theme = saved;
	} catch (e) { /* storage may be forbidden for files */ }
	applyTheme();
	const again = () => { applyTheme(); emit("theme"); };
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
	$("theme").addEventListener("click", () => {
		const next = darkNow ? "light" : "dark";
		document.documentElement.dataset.theme = next;
		try {
			localStorage.setItem("giltracer-theme", next);
		} catch (e) { /* then only for now */ }
		again();
	});
	let before = null;
	addEventListener("beforeprint", () => {
		before ??= document.documentElement.dataset.theme || "";
		document.documentElement.dataset.theme = "light";
		again();
		drawNow();
	});
	addEventListener("afterprint", () => {
		if (before)
			document.documentElement.dataset.theme = before;
		else if (before === "")
			delete document.documentElement.dataset.theme;
		before = null;
		again();
	});
}

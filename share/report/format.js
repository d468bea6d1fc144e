// SPDX-License-Identifier: MIT
// Formats numbers and times for people.

import {floor, max, min, round} from "./math.js";

const NBSP = "\u00a0";

function digits3(x) {
	const a = Math.abs(x);
	return a >= 100 ? x.toFixed(0) : a >= 10 ? x.toFixed(1) : x.toFixed(2);
}

// A duration in three digits: "812 ms".
export function fmtDur(ns) {
	if (ns < 999.5) return round(ns) + NBSP + "ns";
	if (ns < 999.5e3) return digits3(ns / 1e3) + NBSP + "µs";
	if (ns < 999.5e6) return digits3(ns / 1e6) + NBSP + "ms";
	if (ns < 600e9) return digits3(ns / 1e9) + NBSP + "s";
	return (ns / 60e9).toFixed(1) + NBSP + "min";
}

// To the nanosecond: "812.345 678 ms".
export function fmtExact(ns) {
	/** @type {[number, string]} */
	const unit =
		ns < 1e3 ? [1, "ns"] : ns < 1e6 ? [1e3, "µs"] : ns < 1e9 ? [1e6, "ms"] : [1e9, "s"];
	const places = round(Math.log10(unit[0]));
	const whole = floor(ns / unit[0]);
	const rest = places
		? "." +
			String(round(ns - whole * unit[0]))
				.padStart(places, "0")
				.replace(/(\d{3})(?=\d)/g, "$1\u2009")
		: "";
	return whole + rest + NBSP + unit[1];
}

// A moment, with enough digits to distinguish it from one that is step ns away.
export function fmtAt(ns, step) {
	const places = max(0, min(9, Math.ceil(9 - Math.log10(max(step || 1e6, 1)))));
	return (ns / 1e9).toFixed(places) + NBSP + "s";
}

export function fmtPct(part, whole) {
	if (!(whole > 0)) return "–";
	const p = (part / whole) * 100;
	return (p === 0 ? "0" : p < 0.05 ? "<0.1" : p.toFixed(1)) + NBSP + "%";
}

export const fmtCount = n => round(n).toLocaleString("en-US");

// Shorten a long name; if it ends in a number, which distinguishes it from similar names, keep the
// end.
export function shorten(text, most) {
	const a = Array.from(text),
		tail = /\d$/.test(text) ? 4 : 0;
	return a.length <= most
		? text
		: a.slice(0, most - 1 - tail).join("") + "…" + a.slice(a.length - tail).join("");
}

export const NAME_FIT = 18; // characters of a thread's name in tables

export const baseName = path => path.replace(/^.*\//, "");

export const plural = (n, one, many) => fmtCount(n) + NBSP + (n === 1 ? one : many || one + "s");

// A step of 1, 2 or 5 times a power of ten that is at least x.
export function niceStep(x) {
	const p = Math.pow(10, floor(Math.log10(max(x, 1))));
	for (const m of [1, 2, 5]) if (m * p >= x) return m * p;
	return 10 * p;
}

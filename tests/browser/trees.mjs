// SPDX-License-Identifier: MIT
// The trees that the flame graph shows, against sums over each call by itself, on random calls.
import {chargeCalls, newNode} from "./calltree.js";
import {HOLD_STATE} from "./states.js";
import {Lane, Track} from "./tracks.js";

let count = 0,
	failed = 0;
function ok(good, name, ...why) {
	console.log((good ? "ok " : "not ok ") + ++count + " - " + name);
	if (good) return;
	failed++;
	for (const w of why) console.log("# " + JSON.stringify(w).slice(0, 2000));
}

function random(seed) {
	return () => (seed = (seed * 48271) % 2147483647) / 2147483647;
}

const SECTION = 65536;
const FUNCTIONS = 40;

// Rows of n calls, nested to at most `deep` levels: [[start, end, name], …] by depth. Some have no
// duration, and some touch the next one.
function callsOf(n, deep, r) {
	const rows = [],
		open = [];
	let t = 0,
		left = n;
	while (left > 0 || open.length) {
		t += r() < 0.2 ? 0 : Math.floor(r() * 2000);
		if (left > 0 && open.length < deep && r() < (open.length < deep / 2 ? 0.6 : 0.45)) {
			open.push([t, 0, Math.floor(r() * FUNCTIONS)]);
			left--;
		} else if (open.length) {
			const call = open.pop();
			call[1] = t;
			(rows[open.length] ||= []).push(call);
		}
	}
	return {rows, dur: t + 1000};
}

function track(calls) {
	const out = new Track();
	for (let at = 0; at < calls.length; at += SECTION) {
		const part = calls.slice(at, at + SECTION);
		out.add({
			start: Float64Array.from(part, c => c[0]),
			end: Float64Array.from(part, c => c[1]),
			name: Uint32Array.from(part, c => c[2]),
			n: part.length,
			t0: part[0][0],
			t1: part[part.length - 1][1],
		});
	}
	return out;
}

// Spans of random states and lengths: [start, state], and a lane of them.
function laneOf(dur, mean, r) {
	const spans = [];
	for (let t = 0; t < dur; t += 1 + Math.floor(r() * 2 * mean))
		spans.push([t, Math.floor(r() * 6)]);
	const lane = new Lane(6);
	for (let at = 0; at < spans.length; at += SECTION) {
		const part = spans.slice(at, at + SECTION),
			end = spans[at + SECTION]?.[0] ?? dur;
		lane.add({
			start: Float64Array.from([...part.map(s => s[0]), end]),
			state: Uint8Array.from(part, s => s[1]),
			n: part.length,
			t0: part[0][0],
			t1: end,
			gils: [1],
			classes: 0,
		});
	}
	return {spans, lane};
}

// By brute force: the time held before t, and so in each call, by the path of names.
function sums(rows, spans, dur, part) {
	const before = [0];
	spans.forEach(([t, state], i) => {
		const from = Math.max(t, part.from),
			to = Math.min(spans[i + 1]?.[0] ?? dur, part.to);
		before.push(before[i] + (state === HOLD_STATE && to > from ? to - from : 0));
	});
	const last = (list, t) => {
		let lo = 0,
			hi = list.length;
		while (lo < hi) {
			const mid = (lo + hi) >> 1;
			if (list[mid][0] <= t) lo = mid + 1;
			else hi = mid;
		}
		return lo - 1;
	};
	const held = t => {
		const i = last(spans, t);
		if (i < 0) return 0;
		const from = Math.max(spans[i][0], part.from),
			to = Math.min(t, part.to);
		return before[i] + (spans[i][1] === HOLD_STATE && to > from ? to - from : 0);
	};
	const out = new Map(),
		paths = [];
	rows.forEach((calls, depth) => {
		let up = 0;
		paths[depth] = calls.map(([start, end, name]) => {
			const above = rows[depth - 1];
			// The caller is the call in the row above that contains this one.
			while (depth && !(above[up][0] <= start && end <= above[up][1])) up++;
			const path = (depth ? paths[depth - 1][up] + ";" : "") + name;
			const ns = held(end) - held(start);
			if (ns) out.set(path, (out.get(path) || 0) + ns);
			return path;
		});
	});
	return {all: held(dur), out};
}

function run(name, {n, deep, mean, range}) {
	const r = random(n + deep),
		{rows, dur} = callsOf(n, deep, r),
		{spans, lane} = laneOf(dur, mean, r),
		part = range ? {from: dur * 0.31, to: dur * 0.57} : {from: 0, to: dur};
	part.from = Math.floor(part.from);
	part.to = Math.floor(part.to);
	const want = sums(rows, spans, dur, part),
		root = newNode("all"),
		steps = chargeCalls(
			root,
			rows.map(track),
			lane,
			part,
			state => state === HOLD_STATE,
			id => ({key: String(id), name: String(id)}),
			() => false,
		);
	let stops = 0;
	const began = performance.now();
	while (!steps.next().done) stops++;
	const ms = performance.now() - began;
	const got = new Map();
	const walk = (node, path) => {
		for (const kid of node.kids.values()) {
			const at = path ? path + ";" + kid.key : kid.key;
			if (kid.ns) got.set(at, kid.ns);
			walk(kid, at);
		}
	};
	walk(root, "");
	ok(root.ns === want.all && root.ns > 0, name + ": all the time is there", root.ns, want.all);
	const bad = [...want.out].filter(([path, ns]) => got.get(path) !== ns);
	ok(
		bad.length === 0 && got.size === want.out.size && got.size > 20,
		name + ": each of " + want.out.size + " stacks has its time, to the nanosecond",
		bad.slice(0, 5).map(([path, ns]) => [path, ns, got.get(path)]),
		got.size,
	);
	console.log("# " + Math.round(ms) + " ms in " + (stops + 1) + " steps");
	return stops;
}

const stops = run("a million calls", {n: 1e6, deep: 12, mean: 20000});
ok(stops > 20, "in steps, between which the page can respond", stops);
run("a million calls, a range", {n: 1e6, deep: 12, mean: 20000, range: true});
run("spans shorter than calls", {n: 2e5, deep: 6, mean: 50});
run("900 levels", {n: 5e4, deep: 900, mean: 1e6});
console.log("1.." + count);
process.exit(failed ? 1 : 0);

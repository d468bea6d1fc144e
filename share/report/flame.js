// SPDX-License-Identifier: MIT
// Flame graph: time by stack, in the selected range (else everything in view) and the threads
// shown.
//	off-gil  waiting for the GIL	on-gil  holding it	off-cpu  asleep, or runnable without a CPU
// The same time by the same stacks as giltracer report --folded: of the GIL, the Python calls, or
// the frames that probes read; off the CPU, the stacks that left it.

import {crowdOf} from "./crowds.js";
import {gilKnown, pass, threadLabel} from "./data.js";
import {$, fill, h, rove} from "./dom.js";
import {on, whenQuiet} from "./events.js";
import {fmtDur, fmtPct, plural} from "./format.js";
import {laneTotals} from "./lod.js";
import {FRAME_MISMATCH, FRAME_PYTHON, callName, framesOf, shortCall} from "./pick.js";
import {SAMPLE_MODES, hasSamples, sampledStacks} from "./samples.js";
import {HOLD_STATE, RUNNABLE_STATE, SWITCH_STATE, WAIT_STATE} from "./states.js";
import {loading, store} from "./store.js";
import {empty} from "./table.js";
import {nameHash, palette, sliceColors} from "./theme.js";
import {hits, passDur, range, rowsThreads, view} from "./view.js";

const FLAME_MODES = [
	["off-gil", "Waiting for the GIL"],
	["on-gil", "Holding the GIL"],
	["off-cpu", "Off the CPU"],
];
const FLAME_BUDGET = 400000; // spans and calls looked at
const flame = {mode: "off-gil", root: null, focus: null};

const newNode = (key, name = key) => ({key, name, ns: 0, kids: new Map()});

const GIL_SLEEP = 5;

// Which states of which lane a mode shows. Without GIL events, the sleeps that stacks know to be
// for the GIL.
function flameWanted(mode, state) {
	if (mode === "on-gil") return state === HOLD_STATE;
	if (mode === "off-gil")
		return gilKnown() ? state === WAIT_STATE || state === SWITCH_STATE : state === GIL_SLEEP;
	return state >= RUNNABLE_STATE;
}

function flameChild(node, ns, key, name) {
	let kid = node.kids.get(key);
	if (!kid) node.kids.set(key, (kid = newNode(key, name)));
	kid.ns += ns;
	return kid;
}

// Divide [from, to) among the calls of a thread, outermost first.
function flameCalls(node, rows, depth, from, to, budget) {
	if (depth >= rows.length || depth > 60 || budget.left <= 0) return;
	rows[depth].each(from, to, (a, b, name) => {
		if (budget.left-- <= 0) return;
		const x = Math.max(a, from),
			y = Math.min(b, to);
		if (y > x)
			flameCalls(
				flameChild(node, y - x, callName(name), shortCall(callName(name))),
				rows,
				depth + 1,
				x,
				y,
				budget,
			);
	});
}

// Of samples: their number times the time between two of them.
function flameSampled(mode) {
	const root = newNode("all"),
		part = range || {from: Math.max(0, view.from), to: Math.min(passDur(), view.to)};
	const samples = sampledStacks(mode, part, (thread, ns, frames) => {
		let node = flameChild(root, ns, threadLabel(thread) + "\0" + thread, threadLabel(thread));
		root.ns += ns;
		for (const f of frames) node = flameChild(node, ns, f.name);
	});
	return {root, total: root.ns, part, samples};
}

export function flameBuild(mode) {
	if (mode.startsWith("s-")) return flameSampled(mode);
	const root = newNode("all"),
		budget = {left: FLAME_BUDGET},
		st = store();
	const part = range || {from: Math.max(0, view.from), to: Math.min(passDur(), view.to)};
	const lanes = mode === "off-cpu" || !gilKnown() ? st.cpu : st.gil;
	const ofGil = lanes === st.gil;
	let total = 0;
	for (const thread of rowsThreads()) {
		const lane = lanes[thread];
		if (!lane) continue;
		const sum = laneTotals(lane, part.from, part.to);
		sum.forEach((ns, state) => {
			if (flameWanted(mode, state)) total += ns;
		});
		const crowd = crowdOf(thread).name,
			key = crowd || threadLabel(thread) + "\0" + thread;
		const top = root.kids.get(key) || newNode(crowd || threadLabel(thread)),
			before = top.ns;
		const rows = st.slices[thread] || [];
		const least = leastFor(lane, part, budget.left / Math.max(1, rowsThreads().length));
		lane.each(part.from, part.to, (a, b, state, s, i) => {
			if (!flameWanted(mode, state) || b - a < least || budget.left-- <= 0) return;
			const x = Math.max(a, part.from),
				y = Math.min(b, part.to);
			top.ns += y - x;
			const stack = s.stack ? s.stack[i] : 0;
			if (rows.length && (ofGil || (!stack && pass().name !== "stacks"))) {
				flameCalls(top, rows, 0, x, y, budget);
			} else if (stack) {
				let node = top;
				for (const f of framesOf(stack)) {
					const mark = f.flags & FRAME_MISMATCH ? " (?)" : "";
					node = flameChild(node, y - x, f.name + mark);
					node.native = !(f.flags & FRAME_PYTHON);
				}
			} else if (!ofGil) {
				flameChild(top, y - x, "[no stack]");
			}
		});
		if (top.ns > 0) {
			root.kids.set(key, top);
			root.ns += top.ns - before;
		}
	}
	return {root, total, part};
}

// Spans shorter than this are left out, so that about `room` remain.
function leastFor(lane, part, room) {
	const counts = new Float64Array(64);
	let n = 0;
	for (const s of lane.sections) {
		if (s.t1 <= part.from || s.t0 >= part.to) continue;
		const step = Math.max(1, s.n >> 11);
		for (let i = 0; i < s.n; i += step)
			counts[Math.floor(Math.log2(Math.max(1, s.start[i + 1] - s.start[i])))] += step;
	}
	for (let b = 63; b > 0; b--) if ((n += counts[b]) > room) return Math.pow(2, b);
	return 0;
}

const flameModes = () => [...flameExact(), ...(hasSamples() ? SAMPLE_MODES : [])];
const flameExact = () =>
	FLAME_MODES.filter(([m]) =>
		m === "off-cpu"
			? store().cpu.length
			: gilKnown()
				? store().gil.length
				: m === "off-gil" && store().cpu.length,
	);

// There is something to draw; whether it is drawn depends on whether anybody looks.
function flameOffer() {
	const st = store();
	$("flame").hidden =
		!loading.complete ||
		!flameModes().length ||
		!(st.calls > 0 || st.stacks.parent.length > 1 || hasSamples());
}

function flameDraw() {
	const modes = flameModes();
	if ($("flame").hidden) return;
	if (!modes.some(([m]) => m === flame.mode)) flame.mode = modes[0][0];
	const redraw = change => () => {
		change();
		flameDraw();
	};
	const toggle = (pressed, text, title, change) =>
		h("button", {"aria-pressed": String(pressed), title, onclick: redraw(change)}, text);
	fill(
		$("flame-modes"),
		modes.map(([m, text]) =>
			toggle(m === flame.mode, text, null, () => {
				flame.mode = m;
			}),
		),
		SHAPES.map(([key, text, title]) =>
			toggle(!!flame[key], text, title, () => {
				flame[key] = !flame[key];
			}),
		),
	);
	const {root, total, part, samples} = flameBuild(flame.mode);
	flame.root = reshape(root);
	const covered = total > 0 ? root.ns / total : 1;
	$("flame-note").textContent =
		(range ? "In the selected range" : "In the part of the timeline that is in view") +
		" (" +
		fmtDur(part.to - part.from) +
		"): " +
		(samples === undefined ? "" : "estimated from " + plural(samples, "sample") + ", about ") +
		fmtDur(total) +
		(covered < 0.995
			? ", of which the longest spans, " + fmtPct(root.ns, total) + ", are drawn"
			: "") +
		". Width is time; callers above, callees below. Click to look closer." +
		(hits.text ? " Found: " + fmtDur(litTime(flame.root)) + "." : "");
	flameShow(flame.root);
}

const SHAPES = [
	[
		"python",
		"Python only",
		"Without native frames: their time is that of the Python call they ran in",
	],
	["merged", "Merge threads", "All threads as one"],
	["inverted", "Inverted", "What ran, and who called it"],
];

function reshape(root) {
	let out = root;
	if (flame.python) out = copyTree(out, node => node.native);
	if (flame.merged || flame.inverted) out = mergeThreads(out);
	return flame.inverted ? invert(out) : out;
}

const kidOf = (node, key, name) => node.kids.get(key) || node.kids.set(key, newNode(name)).get(key);

function addTree(to, from, skip) {
	to.ns += from.ns;
	for (const [key, kid] of from.kids) addKid(to, key, kid, skip);
}

// What is skipped gives its callees to its caller, and its time stays there.
function addKid(to, key, kid, skip) {
	if (skip(kid)) for (const [k, below] of kid.kids) addKid(to, k, below, skip);
	else addTree(kidOf(to, key, kid.name), kid, skip);
}

function copyTree(root, skip) {
	const out = newNode(root.name);
	addTree(out, root, skip);
	return out;
}

function mergeThreads(root) {
	const out = newNode(root.name);
	for (const thread of root.kids.values()) addTree(out, thread, () => false);
	return out;
}

function invert(root) {
	const out = newNode(root.name);
	const walk = (node, path) => {
		let self = node.ns;
		for (const kid of node.kids.values()) {
			self -= kid.ns;
			walk(kid, [kid, ...path]);
		}
		if (self <= 0 || !path.length) return;
		let at = out;
		for (const frame of path) {
			at = kidOf(at, frame.name, frame.name);
			at.ns += self;
		}
		out.ns += self;
	};
	walk(root, []);
	return out;
}

// Time in the frames that the search is for, none within another one.
function litTime(node) {
	if (isLit(node)) return node.ns;
	return [...node.kids.values()].reduce((n, kid) => n + litTime(kid), 0);
}
const isLit = node => hits.text !== "" && node.name.toLowerCase().includes(hits.text.toLowerCase());

function frameButton(node, focus, x, w, top) {
	const text = node === flame.root ? "all shown" : node.name;
	const label = text + ", " + fmtDur(node.ns) + ", " + fmtPct(node.ns, flame.root.ns);
	const color = top === 0 ? palette.none : sliceColors[nameHash(text) % sliceColors.length];
	return h(
		"button",
		{
			class: "frame",
			title: label,
			"aria-label": label,
			onclick: () => flameShow(node === focus ? flame.root : node),
			style:
				"left:" +
				(x * 100).toFixed(4) +
				"%;width:" +
				(w * 100).toFixed(4) +
				"%;top:" +
				top +
				"px;background:" +
				(isLit(node) ? palette.hit + ";color:" + palette.paper : color),
		},
		text,
	);
}

const FRAME_H = 19;

function flameShow(focus) {
	const out = [],
		family = new Map(); // by button: {up, kids}
	const place = (node, x, w, depth, up) => {
		if (w < 0.0008 || depth > 60 || out.length > 3000) return;
		const button = frameButton(node, focus, x, w, depth * FRAME_H);
		out.push(button);
		family.set(button, {up, depth, kids: []});
		if (up) family.get(up).kids.push(button);
		let at = x;
		for (const kid of [...node.kids.values()].sort((a, b) => b.ns - a.ns)) {
			const kw = (w * kid.ns) / node.ns;
			place(kid, at, kw, depth + 1, button);
			at += kw;
		}
	};
	if (focus.ns > 0) place(focus, 0, 1, 0, null);
	const box = $("flame-body");
	const depths = [...family.values()].map(f => f.depth);
	box.style.height = (Math.max(0, ...depths) + 1) * FRAME_H + "px";
	fill(box, out.length ? out : empty("Nothing of this kind here."));
	rove(box, (from, key) => {
		const {up, kids} = family.get(from),
			row = up ? family.get(up).kids : [from];
		const by = {ArrowLeft: -1, ArrowRight: 1}[key];
		return key === "ArrowUp"
			? up
			: key === "ArrowDown"
				? kids[0]
				: by && row[row.indexOf(from) + by];
	});
}

export function flameInit() {
	const later = whenQuiet(400, () => {
		if (flameSeen) flameDraw();
	});
	let flameSeen = false;
	new IntersectionObserver(
		list => {
			flameSeen = list[list.length - 1].isIntersecting;
			if (flameSeen) later();
		},
		{rootMargin: "200px"},
	).observe($("flame"));
	on("view range filter theme search", later);
	on("complete pass", () => {
		flameOffer();
		later();
	});
}

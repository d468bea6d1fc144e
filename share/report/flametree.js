// SPDX-License-Identifier: MIT
// Time by stack, in the selected range (otherwise the part in view), for the threads shown.
//	off-gil  waiting for the GIL	on-gil  holding it	off-cpu  asleep, or runnable without a CPU
// Times and stacks are those of giltracer export --format folded: for the GIL, the Python calls or
// the frames that probes fetched; off the CPU, the stacks at which threads left it.

import {crowdOf} from "./crowds.js";
import {gilKnown, pass, threadLabel} from "./data.js";
import {isInterpreter} from "./library.js";
import {laneTotals} from "./lod.js";
import {floor, max, min} from "./math.js";
import {FRAME_PYTHON, callName, markedFrames, shortCall} from "./pick.js";
import {SAMPLE_MODES, hasSamples, sampledStacks} from "./samples.js";
import {HOLD_STATE, RUNNABLE_STATE, SWITCH_STATE, WAIT_STATE} from "./states.js";
import {store, upper} from "./store.js";
import {rowsThreads, shownPart} from "./view.js";

const FLAME_MODES = [
	["off-gil", "Waiting for the GIL"],
	["on-gil", "Holding the GIL"],
	["off-cpu", "Off the CPU"],
];
const FLAME_BUDGET = 400000; // the most spans and calls that are examined
const ALL = 0.995; // if they cover this share of the time, the graph counts as complete
export const flameModes = () => [...flameExact(), ...(hasSamples() ? SAMPLE_MODES : [])];
const flameExact = () =>
	FLAME_MODES.filter(([m]) =>
		m === "off-cpu"
			? store().cpu.length
			: gilKnown()
				? store().gil.length
				: m === "off-gil" && store().cpu.length,
	);

const newNode = (key, name = key) => ({key, name, ns: 0, kids: new Map()});

const GIL_SLEEP = 5;

// Whether a mode shows a state. Without GIL events, waits are the sleeps for the GIL that stacks
// show.
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
		const x = max(a, from),
			y = min(b, to);
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

// For samples, the time is their number times the period.
function flameSampled(mode) {
	const root = newNode("all"),
		part = shownPart();
	const samples = sampledStacks(mode, part, (thread, ns, frames) => {
		let node = flameChild(root, ns, threadLabel(thread) + "\0" + thread, threadLabel(thread));
		root.ns += ns;
		for (const f of frames) node = flameChild(node, ns, f.name);
	});
	return {root, total: root.ns, part, samples, whole: true};
}

export function flameBuild(mode) {
	if (mode.startsWith("s-")) return flameSampled(mode);
	const root = newNode("all"),
		budget = {left: FLAME_BUDGET},
		st = store();
	const part = shownPart();
	const lanes = mode === "off-cpu" || !gilKnown() ? st.cpu : st.gil;
	const ofGil = lanes === st.gil;
	const threads = rowsThreads().filter(i => lanes[i]);
	const least = leastFor(
		threads.map(i => lanes[i]),
		mode,
		part,
		FLAME_BUDGET / 4,
	);
	let total = 0;
	for (const thread of threads) {
		const lane = lanes[thread];
		const sum = laneTotals(lane, part.from, part.to);
		sum.forEach((ns, state) => {
			if (flameWanted(mode, state)) total += ns;
		});
		const crowd = crowdOf(thread).name,
			key = crowd || threadLabel(thread) + "\0" + thread;
		const top = root.kids.get(key) || newNode(crowd || threadLabel(thread)),
			before = top.ns;
		const rows = st.slices[thread] || [];
		lane.each(part.from, part.to, (a, b, state, s, i) => {
			if (!flameWanted(mode, state) || b - a < least || budget.left-- <= 0) return;
			const x = max(a, part.from),
				y = min(b, part.to);
			top.ns += y - x;
			const stack = s.stack ? s.stack[i] : 0;
			if (rows.length && (ofGil || (!stack && pass().name !== "stacks"))) {
				flameCalls(top, rows, 0, x, y, budget);
			} else if (stack) {
				let node = top;
				for (const f of markedFrames(stack)) {
					const mark = f.unsure ? " (?)" : "";
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
	return {root, total, part, whole: root.ns >= total * ALL && budget.left > 0};
}

// The length below which spans are left out, so that about `room` spans of the mode remain.
function leastFor(lanes, mode, part, room) {
	const counts = new Float64Array(64);
	for (const s of lanes.flatMap(lane => lane.sections)) {
		if (s.t1 <= part.from || s.t0 >= part.to) continue;
		const first = max(0, upper(s.start, 0, s.n, part.from) - 1),
			last = upper(s.start, 0, s.n, part.to - 1),
			step = max(1, (last - first) >> 11);
		for (let i = first; i < last; i += step)
			if (flameWanted(mode, s.state[i]))
				counts[floor(Math.log2(max(1, s.start[i + 1] - s.start[i])))] += step;
	}
	for (let b = 63, n = 0; b > 0; b--) if ((n += counts[b]) > room) return Math.pow(2, b);
	return 0;
}

// how: {python, merged, inverted}
export function reshape(root, how) {
	let out = newNode(root.name);
	addTree(out, root, how.python);
	if (how.merged || how.inverted) out = mergeThreads(out);
	return how.inverted ? invert(out) : out;
}

const kidOf = (node, key, name) =>
	node.kids.get(key) || node.kids.set(key, newNode(key, name)).get(key);

// Copy a tree without native frames, or with the interpreter's frames merged into one. The caller
// of a frame that is left out gets its callees and its time.
function addTree(to, from, python, inPython = false) {
	to.ns += from.ns;
	for (const [key, kid] of from.kids) addKid(to, key, kid, python, inPython);
}

function addKid(to, key, kid, python, inPython) {
	const inner = kid.native && isInterpreter(kid.name);
	if (kid.native && (python || (inner && inPython)))
		for (const [k, below] of kid.kids) addKid(to, k, below, python, inPython);
	else if (inner) addTree(kidOf(to, PYTHON, PYTHON), kid, python, true);
	else addTree(kidOf(to, key, kid.name), kid, python, kid.native === false);
}
const PYTHON = "Python";

function mergeThreads(root) {
	const out = newNode(root.name);
	for (const thread of root.kids.values()) addTree(out, thread);
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
			at = kidOf(at, frame.key, frame.name);
			at.ns += self;
		}
		out.ns += self;
	};
	walk(root, []);
	return out;
}

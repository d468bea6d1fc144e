// SPDX-License-Identifier: MIT
// Time by stack, in the selected range (otherwise the part in view), for the threads shown.
//	off-gil  waiting for the GIL	on-gil  holding it	off-cpu  asleep, or runnable without a CPU
// Times and stacks are those of giltracer export --format folded: for the GIL, the Python calls or
// the frames that probes fetched; off the CPU, the stacks at which threads left it.

import {chargeCalls, kidOf, newNode} from "./calltree.js";
import {crowdOf} from "./crowds.js";
import {gilKnown, pass, passIndex, threadLabel} from "./data.js";
import {isInterpreter} from "./library.js";
import {FRAME_PYTHON, callName, markedFrames, shortCall} from "./pick.js";
import {SAMPLE_MODES, hasSamples, sampledStacks} from "./samples.js";
import {HOLD_STATE, RUNNABLE_STATE, SWITCH_STATE, WAIT_STATE} from "./states.js";
import {loading, store} from "./store.js";
import {rowsThreads, shownPart} from "./view.js";
import * as words from "./words.js";

const FLAME_MODES = [
	["off-gil", words.flameModes.offGil],
	["on-gil", words.flameModes.onGil],
	["off-cpu", words.flameModes.offCpu],
];
export const flameModes = () => [...flameExact(), ...(hasSamples() ? SAMPLE_MODES : [])];
const flameExact = () =>
	FLAME_MODES.filter(([m]) =>
		m === "off-cpu"
			? store().cpu.length
			: gilKnown()
				? store().gil.length
				: m === "off-gil" && store().cpu.length,
	);

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
	const kid = kidOf(node, key, name);
	kid.ns += ns;
	return kid;
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
	return {root, part, samples};
}

let built = {of: "", trees: {}}; // the trees of what is shown, by mode

// {root, part, samples: their number}: all time of a mode in the part and the threads shown. Yields
// between steps.
export function* flameBuild(mode) {
	const part = shownPart(),
		of = [passIndex, part.from, part.to, loading.complete, ...rowsThreads()].join();
	if (built.of !== of) built = {of, trees: {}};
	const {trees} = built,
		index = passIndex;
	if (mode.startsWith("s-")) return (trees[mode] ||= flameSampled(mode));
	for (const steps = flameCharge(mode, part); !trees[mode]; ) {
		const {done, value} = steps.next();
		if (done) trees[mode] = value;
		else yield;
		if (passIndex !== index) return yield* flameBuild(mode);
	}
	return trees[mode];
}

function* flameCharge(mode, part) {
	const root = newNode("all"),
		names = [],
		paths = [],
		st = store();
	const lanes = mode === "off-cpu" || !gilKnown() ? st.cpu : st.gil;
	const ofGil = lanes === st.gil;
	const wanted = state => flameWanted(mode, state);
	const nameOf = id => (names[id] ||= {key: callName(id), name: shortCall(callName(id))});
	for (const thread of rowsThreads().filter(i => lanes[i])) {
		const crowd = crowdOf(thread).name,
			name = crowd || threadLabel(thread),
			top = kidOf(root, crowd || name + "\0" + thread, name),
			before = top.ns;
		const rows = st.slices[thread] || [];
		// Add a span by its stack, unless its calls are known.
		const byStack = (node, ns, s, i) => {
			const stack = s.stack ? s.stack[i] : 0;
			if (rows.length && (ofGil || (!stack && pass().name !== "stacks"))) return false;
			if (!stack && !ofGil) flameChild(node, ns, words.frameWithoutStack);
			for (const f of stack ? (paths[stack] ||= markedFrames(stack)) : []) {
				node = flameChild(node, ns, f.name + (f.unsure ? " (?)" : ""));
				node.native = !(f.flags & FRAME_PYTHON);
			}
			return true;
		};
		yield* chargeCalls(top, rows, lanes[thread], part, wanted, nameOf, byStack);
		root.ns += top.ns - before;
		if (!top.ns) root.kids.delete(top.key);
	}
	return {root, part};
}

// how: {python, merged, inverted}
export function reshape(root, how) {
	let out = newNode(root.name);
	addTree(out, root, how.python);
	if (how.merged || how.inverted) out = mergeThreads(out);
	return how.inverted ? invert(out) : out;
}

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

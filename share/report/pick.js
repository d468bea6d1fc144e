// SPDX-License-Identifier: MIT
// Spans that the reader points at, and facts about them.

import {crowdOf} from "./crowds.js";
import {gilText, pass, threadLabel, threadShort} from "./data.js";
import {h, say} from "./dom.js";
import {fmtAt, fmtDur} from "./format.js";
import {laneTotals} from "./lod.js";
import {max, min} from "./math.js";
import {sampleAt, sampleWords} from "./samples.js";
import {SWITCH_STATE, WAIT_STATE} from "./states.js";
import {loading, store} from "./store.js";
import {gilOf, upper} from "./tracks.js";
import {turns} from "./turns.js";
import {flyTo, flyToSpan, pinned, rowsThreads, setPin, span, view} from "./view.js";
import * as words from "./words.js";

/** @type {(kind: "gil" | "cpu", thread: number, t: number) => LanePin | null} */
export function pinLane(kind, thread, t) {
	const lane = (kind === "gil" ? store().gil : store().cpu)[thread];
	const at = lane && lane.find(t);
	return at ? lanePin(kind, thread, at) : null;
}

/** @type {(kind: "gil" | "cpu", thread: number, at: Place) => LanePin} */
export function lanePin(kind, thread, at) {
	const {s, i} = at;
	return {
		kind,
		thread,
		at,
		from: s.start[i],
		to: s.start[i + 1],
		state: s.state[i],
		gil: kind === "gil" ? gilOf(s, i) : -1,
		flags: s.flags ? s.flags[i] : 0,
		stack: s.stack ? s.stack[i] : 0,
		cpu: s.cpu && s.state[i] === 1 ? s.cpu[i] - 1 : -1,
		waker: s.waker && s.waker[i] ? s.waker[i] - 1 : -1,
	};
}

/** @type {(thread: number, depth: number, t: number) => CallPin | null} */
export function pinCall(thread, depth, t) {
	const row = (store().slices[thread] || [])[depth];
	const at = row && row.find(t);
	return at ? callPin(thread, depth, at) : null;
}

/** @type {(thread: number, depth: number, at: Place) => CallPin} */
export function callPin(thread, depth, at) {
	const {s, i} = at;
	return {
		kind: "py",
		thread,
		depth,
		at,
		from: s.start[i],
		to: s.end[i],
		name: s.name[i],
		flags: s.flags ? s.flags[i] : 0,
	};
}

/**
 * The sample nearest to t: a point, which has no duration.
 * @type {(thread: number, t: number) => SamplePin | null}
 */
export function pinSample(thread, t) {
	const found = sampleAt(thread, t);
	return found && {kind: "samples", thread, from: found.time, to: found.time, ...found};
}

export const callName = id => store().names.slices[id] || "?";

// "work (/a/b/hog.py:12)" -> "work"
export function shortCall(text) {
	const m = /^(.*?) \((.*):(\d+)\)$/.exec(text);
	return m ? m[1] : text;
}

export function callPlace(text) {
	const m = /^(.*?) \((.*):(\d+)\)$/.exec(text);
	return m ? m[2].replace(/^.*\//, "") + ":" + m[3] : "";
}

// The time of threads in calls whose name is wanted. The time of a call within another one does not
// count again; mark(from, to) is called for each that counts. Yields between steps.
export function* timeOfCalls(wanted, mark = (_from, _to) => {}) {
	const sum = {total: 0};
	for (const rows of store().slices) {
		const has = (rows || []).map(row => row.sections.some(s => hasName(s, wanted))),
			last = has.lastIndexOf(true);
		let within = [];
		for (let d = 0; d <= last; d++)
			within = yield* outerCalls(rows[d], wanted, within, sum, mark, d < last);
	}
	return sum.total;
}

function hasName(s, wanted) {
	for (let j = 0; j < s.names.length; j += 3) if (wanted(s.names[j])) return true;
	return false;
}

const LOOKED_AT = 8000; // calls between two interruptions

// within: start, end, start, end … of the calls that counted in the rows above. Returns the same
// list with this row's calls, if it is to be kept for the rows below.
function* outerCalls(row, wanted, within, sum, mark, keep) {
	const out = [];
	let k = 0,
		looked = 0;
	for (const s of row.sections) {
		const some = hasName(s, wanted);
		for (let i = 0; some && i < s.n; i++) {
			if (++looked % LOOKED_AT === 0) yield;
			if (!wanted(s.name[i])) continue;
			for (; k < within.length && within[k + 1] <= s.start[i]; k += 2)
				if (keep) out.push(within[k], within[k + 1]);
			if (k < within.length && within[k] <= s.start[i]) continue;
			if (keep) out.push(s.start[i], s.end[i]);
			sum.total += s.end[i] - s.start[i];
			mark(s.start[i], s.end[i]);
		}
	}
	for (; keep && k < within.length; k++) out.push(within[k]);
	return out;
}

// Python calls around t, outermost first: {name, from, to}.
export function callsAt(thread, t) {
	const out = [];
	for (const row of store().slices[thread] || []) {
		const at = row.find(t);
		if (!at) break;
		out.push({
			id: at.s.name[at.i],
			name: callName(at.s.name[at.i]),
			from: at.s.start[at.i],
			to: at.s.end[at.i],
		});
	}
	return out;
}

// Frames of a stack id, outermost first.
export function framesOf(id) {
	const st = store().stacks,
		names = store().names.stacks,
		out = [];
	for (let n = 0; id && n < 1000; id = st.parent[id], n++)
		out.push({
			name: names[st.name[id]] || "?",
			module: names[st.module[id]] || "",
			line: st.line[id],
			flags: st.flags[id],
		});
	return out.reverse();
}

// The same frames with unsure: whether the position of a Python function is uncertain, or the stack
// has none although the interpreter ran one.
export function markedFrames(id) {
	const frames = framesOf(id),
		known = frames.some(f => f.flags & FRAME_PYTHON);
	for (const f of frames)
		f.unsure = f.flags & FRAME_MISMATCH && (f.flags & FRAME_PYTHON || !known);
	return frames;
}
export const FRAME_KERNEL = 1;
export const FRAME_PYTHON = 2;
export const FRAME_CUT = 32;
export const FRAME_BROKEN = 128;
export const FRAME_MISMATCH = 256;

// The calls that each ran for more than half of [from, to), outermost first.
function mainCalls(thread, from, to) {
	const out = [];
	for (const row of store().slices[thread] || []) {
		let longest = 0,
			id = -1,
			seen = 0;
		row.each(from, to, (a, b, name) => {
			if (++seen > 5000) return;
			const d = min(b, to) - max(a, from);
			if (d > longest) {
				longest = d;
				id = name;
			}
		});
		if (longest * 2 <= to - from) break;
		out.push(callName(id));
	}
	return out;
}

// The function that a thread executed in a span: {name, place}, or null. A recorded call is
// preferred to the frame that a probe fetched.
export const doing = (thread, from, to, stack) => calledIn(thread, from, to) || frameOf(stack);

// The function of a hold, or of a part of it, by the rule of the document's functions: it ran when
// the release was requested, if that is known, otherwise at the end of the hold.
export const holdDoing = (thread, from, to, stack) => frameOf(stack) || calledIn(thread, from, to);

// The innermost call that ran for more than half of a span. A function in C has the place of its
// caller.
function calledIn(thread, from, to) {
	const calls = mainCalls(thread, from, to),
		call = calls[calls.length - 1];
	if (call) {
		const outer = calls.filter(c => callPlace(c)).pop();
		return {
			name: shortCall(call),
			place:
				callPlace(call) || (outer ? words.inOuter(shortCall(outer), callPlace(outer)) : ""),
		};
	}
	return null;
}

function frameOf(stack) {
	const f = framesOf(stack)
		.filter(x => x.flags & FRAME_PYTHON)
		.pop();
	return f ? {name: f.name, place: f.module + (f.line ? ":" + f.line : "")} : null;
}

// The reason why there is no name of the function that ran.
export const noName = () =>
	pass().slices ? words.noCallThere(pass().slices_note) : words.noFrameThere(pass().slices_note);
export const notKnown = () => h("span.soft", {title: noName()}, words.notKnown);

// The same as elements: the name, then the place.
export const doingText = d =>
	d
		? [
				h("code", {title: d.name + " " + d.place}, d.name),
				d.place
					? h("span.soft", {title: d.place}, " " + d.place.replace(/\S*\//g, ""))
					: null,
			]
		: [];

// A lock does not record its holder, so this returns the threads whose releases ended the thread's
// waits in [from, to), in the form of holdersIn().
export function releasersIn(from, to, thread) {
	const by = new Map();
	for (const s of store().released[thread] || [])
		for (let i = max(0, upper(s.time, 0, s.n, from) - 1); i < s.n && s.time[i] < to; i++) {
			const ns = min(to, s.time[i] + s.dur[i]) - max(from, s.time[i]);
			if (ns > 0) by.set(s.by[i], (by.get(s.by[i]) || 0) + ns);
		}
	const list = [...by.keys()]
		.filter(k => k > 1)
		.map(k => ({thread: k - 2, ns: by.get(k)}))
		.sort((a, b) => b.ns - a.ns);
	return {list, nobody: (by.get(0) || 0) + (by.get(1) || 0)};
}

// The holders of the GIL in [from, to): {list: [{thread, ns}], longest first, nobody: the time
// without a holder}.
export function holdersIn(from, to, gil, except) {
	if (pass().locks) return releasersIn(from, to, except);
	if (!loading.complete) return {list: [], nobody: 0};
	const by = new Map(),
		{lane, threads} = turns(max(0, gil));
	let held = 0;
	lane.each(from, to, (a, b, state, s, i) => {
		if (!state || threads[i] === except) return;
		const ns = min(b, to) - max(a, from);
		by.set(threads[i], (by.get(threads[i]) || 0) + ns);
		held += ns;
	});
	const list = [...by].map(([thread, ns]) => ({thread, ns})).sort((a, b) => b.ns - a.ns);
	return {list, nobody: max(0, to - from - held)};
}

// The thread or crowd that is charged with more than half of a time, in the result of holdersIn():
// {thread: its main one, name, short, ns, crowd}, or null.
export function mainHolder(who, ns) {
	const sums = new Map();
	for (const {thread, ns: part} of who.list) {
		const {name} = crowdOf(thread),
			single = {thread, name: threadLabel(thread), short: threadShort(thread), ns: part};
		if (part * 2 > ns) return {...single, crowd: false};
		const sum = name && (sums.get(name) || {...single, name, short: name, ns: 0, crowd: true});
		if (!sum) continue;
		sum.ns += part;
		sums.set(name, sum);
		if (sum.ns * 2 > ns) return sum;
	}
	return null;
}

// The threads that waited for the GIL in [from, to), or were stopped.
export function waitersIn(from, to, gil, except) {
	const out = [];
	store().gil.forEach((lane, thread) => {
		if (thread === except) return;
		const sum = laneTotals(lane, from, to, gil);
		const ns = (pass().locks ? 0 : sum[WAIT_STATE]) + sum[SWITCH_STATE];
		if (ns > 0) out.push({thread, ns});
	});
	out.sort((a, b) => b.ns - a.ns);
	return out;
}

/** @type {(p: LanePin) => string[]} */
export const stateWords = p =>
	p.kind === "gil" ? gilText([words.gilStates, words.lockStates]) : words.cpuStates;

/** @type {(p: Pin) => string} */
export function pinTitle(p) {
	if (p.kind === "py") return shortCall(callName(p.name));
	if (p.kind === "samples") return threadLabel(p.thread) + " " + sampleWords(p.what);
	return threadLabel(p.thread) + " " + stateWords(p)[p.state];
}

/**
 * The duration and start of a span, or the time of a sample.
 * @type {(p: Pin) => string}
 */
export const pinTime = p =>
	words.durAt(
		p.kind === "samples" ? words.sampled : fmtDur(p.to - p.from),
		fmtAt(p.from, span() / 1000),
	);

/** @type {(p: Pin) => string} */
export const pinHead = p =>
	pinTitle(p) + " · " + (p.kind === "samples" ? pinTime(p) : fmtDur(p.to - p.from));

/** @type {(p: Pin) => string} */
export const pinSentence = p => pinTitle(p) + ", " + pinTime(p);

// Go to the next or previous wait of the pinned thread or, if none is pinned, of the first thread.
export function nextWait(by) {
	const thread = pinned ? pinned.thread : rowsThreads()[0];
	const lane = store().gil[thread];
	if (!lane) return;
	const isWait = (s, i) =>
		s.state[i] === WAIT_STATE || (pass().locks && s.state[i] === SWITCH_STATE);
	const to = lane.step(
		pinned && pinned.kind === "gil"
			? pinned.at
			: lane.start(pinned ? pinned.from : (view.from + view.to) / 2, by),
		by,
		isWait,
	);
	if (!to) return say(words.noSuchWait(by > 0, threadLabel(thread)));
	const pin = lanePin("gil", thread, to);
	setPin(pin);
	reveal(pin);
}

/**
 * Bring a span into view, keeping the zoom if it fits.
 * @type {(p: Pin) => void}
 */
export function reveal(p) {
	const d = p.to - p.from;
	if (p.from >= view.from && p.to <= view.to && d > span() / 400) return;
	if (d < span() * 0.9 && d > span() / 400) {
		const mid = (p.from + p.to) / 2;
		flyTo(mid - span() / 2, mid + span() / 2);
	} else {
		flyToSpan(p.from, p.to);
	}
}

// SPDX-License-Identifier: MIT
// The holds of a GIL by all threads as one lane, and the number of threads that wait for it, so
// that drawing a frame does not have to ask each of many threads. Made when everything has been
// read, before the page is complete.

import {pass} from "./data.js";
import {atOnce} from "./events.js";
import {floor, max, min} from "./math.js";
import {prefix} from "./prefix.js";
import {HOLD_STATE, SWITCH_STATE, WAIT_STATE} from "./states.js";
import {store} from "./store.js";
import {rankOf, ranks} from "./theme.js";
import {Lane, gilOf} from "./tracks.js";
import {passDur} from "./view.js";

const WAIT_PARTS = 1 << 18; // parts of the recording for which the waiting is summed up
const HOLDS_STEP = 4000; // holds between two interruptions

let cache = {of: null, list: []};

// {lane, threads, waits} of a GIL. The state in the lane is 0 where no thread holds it, otherwise 1
// + the rank of the holder's colour. threads: the holder, by index of a span. waits: the sum of
// waits, by part.
export function turns(gil) {
	if (cache.of !== pass()) cache = {of: pass(), list: []};
	return (cache.list[gil] ||= atOnce(makeTurns(gil)));
}

// Make those of all GILs, unless another recording is shown meanwhile. Yields between steps.
export function* makeAllTurns() {
	const of = pass(),
		list = [];
	for (let gil = 0; gil < max(1, of.gils.length); gil++)
		for (const steps = makeTurns(gil); !list[gil]; ) {
			const {done, value} = steps.next();
			if (done) list[gil] = value;
			else yield;
			if (pass() !== of) return;
		}
	cache = {of, list};
}

function* makeTurns(gil) {
	const states = ranks() + 1,
		lists = holdLists(gil);
	const most = 2 * lists.reduce((n, list) => n + list.n, 0) + 2;
	const start = new Float64Array(most + 1),
		state = new Uint8Array(most),
		threads = new Int32Array(most);
	let n = 0,
		end = 0;
	const put = (to, what, thread) => {
		start[n] = end;
		state[n] = what;
		threads[n++] = thread;
		end = to;
	};
	let looked = 0;
	for (const {from, to, thread} of inTurn(lists)) {
		if (++looked % HOLDS_STEP === 0) yield;
		if (to <= end) continue;
		if (from > end) put(from, 0, -1);
		put(to, 1 + rankOf(thread), thread);
	}
	put(max(end + 1, passDur()), 0, -1);
	start[n] = end;
	const lane = new Lane(states);
	lane.add({
		start: start.subarray(0, n + 1),
		state: state.subarray(0, n),
		cls: state.subarray(0, n),
		classes: states,
		gils: [1],
		n,
		t0: 0,
		t1: end,
		...prefix(start, state, n, states),
	});
	return {lane, threads, waits: waitParts(gil)};
}

// For each thread: {thread, lane, k, i, at, n}, a cursor over its holds of this GIL.
function holdLists(gil) {
	const out = [];
	store().gil.forEach((lane, thread) => {
		const list = {thread, lane, k: 0, i: -1, at: 0, n: 0};
		for (const s of lane.sections)
			for (let i = 0; i < s.n; i++)
				if (s.state[i] === HOLD_STATE && isOf(s, i, gil)) list.n++;
		if (list.n && nextHold(list, gil)) out.push(list);
	});
	return out.map(list => ({...list, gil}));
}

function nextHold(list, gil) {
	const {sections} = list.lane;
	for (; list.k < sections.length; list.k++, list.i = -1) {
		const s = sections[list.k];
		for (list.i++; list.i < s.n; list.i++)
			if (s.state[list.i] === HOLD_STATE && isOf(s, list.i, gil)) {
				list.at = s.start[list.i];
				return true;
			}
	}
	return false;
}

// All holds in order of time. The lists are in a heap by their next hold. Yields the same object
// each time.
function* inTurn(heap) {
	const hold = {from: 0, to: 0, thread: 0};
	const sink = at => {
		const list = heap[at];
		for (;;) {
			let kid = 2 * at + 1;
			if (kid >= heap.length) break;
			if (kid + 1 < heap.length && heap[kid + 1].at < heap[kid].at) kid++;
			if (heap[kid].at >= list.at) break;
			heap[at] = heap[kid];
			at = kid;
		}
		heap[at] = list;
	};
	for (let i = heap.length >> 1; i-- > 0; ) sink(i);
	while (heap.length) {
		const list = heap[0],
			s = list.lane.sections[list.k];
		hold.from = list.at;
		hold.to = s.start[list.i + 1];
		hold.thread = list.thread;
		yield hold;
		if (!nextHold(list, list.gil)) {
			const last = heap.pop();
			if (!heap.length) break;
			heap[0] = last;
		}
		sink(0);
	}
}

const isOf = (s, i, gil) => pass().gils.length < 2 || gilOf(s, i) === gil;
const isWait = (s, i, gil) =>
	(s.state[i] === WAIT_STATE || s.state[i] === SWITCH_STATE) && isOf(s, i, gil);

function waitParts(gil) {
	const out = new Float64Array(WAIT_PARTS);
	const sum = summer(out, 0, passDur() / WAIT_PARTS);
	store().gil.forEach(lane => {
		for (const s of lane.sections)
			for (let i = 0; i < s.n; i++)
				if (isWait(s, i, gil)) sum.add(s.start[i], s.start[i + 1]);
	});
	sum.done();
	return out;
}

// Adds periods of time to parts of length dt from t0, in constant time for each period.
function summer(out, t0, dt) {
	const n = out.length,
		full = new Float64Array(n + 1);
	out.fill(0);
	return {
		add(from, to) {
			const a = max(0, (from - t0) / dt),
				b = min(n, (to - t0) / dt);
			if (b <= a) return;
			const x = floor(a),
				y = min(n - 1, floor(b));
			if (x === y) {
				out[x] += (b - a) * dt;
				return;
			}
			out[x] += (x + 1 - a) * dt;
			out[y] += (b - y) * dt;
			full[x + 1] += dt;
			full[y] -= dt;
		},
		done() {
			for (let x = 0, sum = 0; x < n; x++) out[x] += sum += full[x];
		},
	};
}

// The time for which threads waited for a GIL in each of w columns of length dt from t0. It is
// exact, unless a column is wider than two parts.
export function waitColumns(gil, t0, dt, w) {
	const out = new Float64Array(w),
		part = passDur() / WAIT_PARTS,
		sum = summer(out, t0, dt);
	if (dt > 2 * part) {
		const {waits} = turns(gil);
		const first = max(0, floor(t0 / part)),
			last = min(WAIT_PARTS, Math.ceil((t0 + w * dt) / part));
		for (let p = first; p < last; p++) {
			const x = floor(((p + 0.5) * part - t0) / dt);
			if (x >= 0 && x < w) out[x] += waits[p];
		}
		return out;
	}
	store().gil.forEach(lane =>
		lane.each(t0, t0 + w * dt, (from, to, state, s, i) => {
			if (isWait(s, i, gil)) sum.add(from, to);
		}),
	);
	sum.done();
	return out;
}

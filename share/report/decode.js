// SPDX-License-Identifier: MIT
// Decodes the bytes of a block into typed arrays. Runs in a worker. See FORMAT.md.

import {floor, min} from "./math.js";
import {prefix} from "./prefix.js";
import {
	CPU_STATES,
	FREE_STATE,
	GIL_STATES,
	GROUP_BITS,
	HIST_SUB,
	HOLD_STATE,
	NONE_STATE,
	SWITCH_STATE,
	WAIT_STATE,
} from "./states.js";
import * as words from "./words.js";

const HIST_N = 48 * HIST_SUB;
const TOP = 200; // longest spans kept per section

class Reader {
	constructor(u8, pos, end) {
		this.u8 = u8;
		this.pos = pos;
		this.end = end;
	}

	// An unsigned LEB128 number; exact up to 2^53.
	next() {
		const u8 = this.u8;
		let p = this.pos;
		let b = u8[p++];
		let v = b & 127;
		if (b > 127) {
			b = u8[p++];
			v |= (b & 127) << 7;
			if (b > 127) {
				b = u8[p++];
				v |= (b & 127) << 14;
				if (b > 127) {
					b = u8[p++];
					v |= (b & 127) << 21;
					for (let m = 268435456; b > 127; m *= 128) {
						b = u8[p++];
						v += (b & 127) * m;
					}
				}
			}
		}
		this.pos = p;
		if (p > this.end) throw new Error(words.sectionShort);
		return v;
	}

	sparse() {
		const m = this.next();
		if (m > this.end - this.pos) throw new Error(words.columnLong);
		const at = new Uint32Array(m);
		const value = new Float64Array(m);
		for (let i = 0, k = 0; i < m; i++) at[i] = k += this.next();
		for (let i = 0; i < m; i++) value[i] = this.next();
		return {at, value};
	}
}

// A sparse column as one value per entry, 0 by default; null if the column is empty.
function spread(column, n, Type) {
	if (!column.at.length) return null;
	const out = new Type(n);
	for (let i = 0; i < column.at.length; i++) out[column.at[i]] = column.value[i];
	return out;
}

// A sparse column of changes as one value per entry: each value holds until the next change.
function holdOn(column, n, Type, first) {
	const out = new Type(n);
	let k = 0,
		v = first;
	for (let i = 0; i < n; i++) {
		while (k < column.at.length && column.at[k] === i) v = column.value[k++];
		out[i] = v;
	}
	return out;
}

// Collects the TOP longest of the spans that it is offered.
class Longest {
	constructor() {
		this.at = [];
		this.floor = 0;
	}

	offer(index, dur, durs) {
		if (dur <= this.floor) return;
		this.at.push(index);
		if (this.at.length >= 4 * TOP) this.cut(durs);
	}

	cut(durs) {
		const dur = i => durs[i + 1] - durs[i];
		this.at.sort((a, b) => dur(b) - dur(a) || a - b);
		if (this.at.length > TOP) {
			this.at.length = TOP;
			this.floor = dur(this.at[TOP - 1]);
		}
	}
}
function decodeSpans(r, h, states) {
	const n = h.n;
	const start = new Float64Array(n + 1);
	const state = new Uint8Array(n);
	let t = h.start;
	for (let i = 0; i < n; i++) {
		const v = r.next();
		start[i] = t;
		if (v < 2147483648) {
			state[i] = v & 7;
			t += v >>> 3;
		} else {
			const s = v % 8;
			state[i] = s;
			t += (v - s) / 8;
		}
		if (state[i] >= states) throw new Error(words.stateMissing);
	}
	start[n] = t;
	return {start, state, t0: h.start, t1: t};
}

// The GIL states that represent the states of a locks lane: a thread that stops the others "holds",
// one that sleeps for a lock "waits", one that is stopped is in a switch wait, and one that
// spins in a free wait.
const SHOWN_AS = [0, NONE_STATE, WAIT_STATE, SWITCH_STATE, HOLD_STATE, FREE_STATE];

function decodeLocks(r, h, markNs) {
	const out = decodeSpans(r, h, SHOWN_AS.length);
	for (let i = 0; i < h.n; i++) out.state[i] = SHOWN_AS[out.state[i]];
	return decodeHolds(r, h, markNs, out, SWITCH_STATE);
}

function decodeGil(r, h, markNs) {
	return decodeHolds(r, h, markNs, decodeSpans(r, h, GIL_STATES), WAIT_STATE);
}

// Decode the other columns of a lane, and collect its holds and waits. The state wait also counts
// as a wait.
function decodeHolds(r, h, markNs, out, wait) {
	const {start, state} = out;
	const n = h.n;
	const gilColumn = r.sparse();
	out.flags = spread(r.sparse(), n, Uint8Array);
	out.stack = spread(r.sparse(), n, Uint32Array);
	out.gils = [1];
	let cls = state;
	if (gilColumn.at.length) {
		const of = holdOn(gilColumn, n, Uint32Array, 1);
		cls = new Uint8Array(n);
		for (let i = 0; i < n; i++) {
			let g = 0;
			if (state[i] >= HOLD_STATE) {
				g = out.gils.indexOf(of[i]);
				if (g < 0) g = out.gils.length < 50 ? out.gils.push(of[i]) - 1 : 0;
			}
			cls[i] = state[i] + GIL_STATES * g;
		}
	}
	out.cls = cls;
	out.classes = GIL_STATES * out.gils.length;
	Object.assign(out, prefix(start, cls, n, out.classes));
	const marks = [];
	const hist = new Uint32Array(HIST_N);
	const waits = new Longest(),
		holds = new Longest();
	for (let i = 0; i < n; i++) {
		const d = start[i + 1] - start[i];
		if (state[i] === HOLD_STATE) {
			holds.offer(i, d, start);
		} else if (state[i] === WAIT_STATE || state[i] === wait) {
			waits.offer(i, d, start);
			if (d > 0) hist[min(HIST_N - 1, floor(Math.log2(d) * HIST_SUB))]++;
			if (d >= markNs) marks.push(start[i], start[i + 1]);
		}
	}
	waits.cut(start);
	holds.cut(start);
	out.marks = Float64Array.from(marks);
	out.hist = hist;
	out.topWaits = Uint32Array.from(waits.at);
	out.topHolds = Uint32Array.from(holds.at);
	return out;
}

function decodeCpu(r, h) {
	const out = decodeSpans(r, h, CPU_STATES);
	const cpu = r.sparse();
	out.cpu = cpu.at.length ? holdOn(cpu, h.n, Uint16Array, 0) : null;
	out.waker = spread(r.sparse(), h.n, Uint32Array);
	out.stack = spread(r.sparse(), h.n, Uint32Array);
	out.cls = out.state;
	out.classes = CPU_STATES;
	out.gils = [1];
	Object.assign(out, prefix(out.start, out.state, h.n, CPU_STATES));
	return out;
}

function decodeSlices(r, h) {
	const n = h.n;
	const start = new Float64Array(n);
	const end = new Float64Array(n);
	const name = new Uint32Array(n);
	const groups = (n + 31) >> GROUP_BITS;
	const ck = new Float64Array(groups + 1),
		at = new Float64Array(groups + 1),
		top = new Uint32Array(groups);
	const per = new Map();
	for (let i = 0; i < n; i++) start[i] = r.next();
	let t = 0,
		sum = 0;
	for (let i = 0; i < n; i++) {
		t += start[i];
		start[i] = t;
		const d = r.next();
		if ((i & 31) === 0) {
			ck[i >> GROUP_BITS] = sum;
			at[i >> GROUP_BITS] = t;
		}
		sum += d;
		end[i] = t += d;
	}
	ck[groups] = sum;
	at[groups] = t;
	let longest = 0;
	for (let i = 0; i < n; i++) {
		const id = (name[i] = r.next());
		if ((i & 31) === 0) longest = -1;
		if (end[i] - start[i] > longest) {
			longest = end[i] - start[i];
			top[i >> GROUP_BITS] = id;
		}
		let p = per.get(id);
		if (!p) per.set(id, (p = [0, 0]));
		const d = end[i] - start[i];
		p[0]++;
		if (d > p[1]) p[1] = d;
	}
	const flags = spread(r.sparse(), n, Uint8Array);
	const names = new Float64Array(per.size * 3);
	let k = 0;
	for (const [id, p] of per) {
		names[k++] = id;
		names[k++] = p[0];
		names[k++] = p[1];
	}
	return {
		start,
		end,
		name,
		flags,
		ck,
		at,
		top,
		total: sum,
		names,
		t0: n ? start[0] : 0,
		t1: n ? end[n - 1] : 0,
	};
}

function decodeNames(r, h) {
	const text = new TextDecoder();
	const list = [];
	for (let i = 0; i < h.n; i++) {
		const len = r.next();
		if (len > r.end - r.pos) throw new Error(words.nameLong);
		list.push(text.decode(r.u8.subarray(r.pos, r.pos + len)));
		r.pos += len;
	}
	return {list};
}

function decodeColumns(r, h, keys, Type) {
	const out = {};
	for (const key of keys) {
		const column = (out[key] = new Type(h.n));
		for (let i = 0; i < h.n; i++) column[i] = r.next();
	}
	return out;
}

function decodeStacks(r, h) {
	return withParents(
		decodeColumns(r, h, ["parent", "name", "module", "line", "flags"], Uint32Array),
		h,
	);
}

// Turn distances to parents into their ids.
function withParents(out, h) {
	for (let i = 0; i < h.n; i++) out.parent[i] = out.parent[i] ? h.start + i - out.parent[i] : 0;
	return out;
}

// Turn gaps into times from the start of the pass.
function sumUp(gap) {
	for (let i = 1; i < gap.length; i++) gap[i] += gap[i - 1];
	return gap;
}

function decodeSection(r, h, markNs) {
	switch (h.kind) {
		case "gil":
			return decodeGil(r, h, markNs);
		case "locks":
			return decodeLocks(r, h, markNs);
		case "cpu":
			return decodeCpu(r, h);
		case "slices":
			return decodeSlices(r, h);
		case "names":
			return decodeNames(r, h);
		case "stacks":
			return decodeStacks(r, h);
		case "counter": {
			const out = decodeColumns(r, h, ["time", "value"], Float64Array);
			sumUp(out.time);
			return out;
		}
		case "queued": {
			const out = decodeColumns(r, h, ["time", "cpu", "owner", "dur"], Float64Array);
			sumUp(out.time);
			return out;
		}
		case "released": {
			const out = decodeColumns(r, h, ["time", "dur", "by"], Float64Array);
			sumUp(out.time);
			return out;
		}
		case "sampletimes":
			return {time: sumUp(decodeColumns(r, h, ["time"], Float64Array).time)};
		case "samplestacks":
			return withParents(
				decodeColumns(r, h, ["parent", "name", "module", "line"], Uint32Array),
				h,
			);
		case "samples": {
			const out = decodeColumns(r, h, ["sample", "what", "stack"], Float64Array);
			sumUp(out.sample);
			return out;
		}
		case "lost": {
			const out = decodeColumns(r, h, ["time", "dur", "count", "cpu"], Float64Array);
			sumUp(out.time);
			return out;
		}
	}
	return null; // a kind from a later version of the format
}

/** @type {(u8: Uint8Array, list: Header[], markNs: number) => any[]} */
export function decodeBlock(u8, list, markNs) {
	const out = [];
	let pos = 0;
	for (const h of list) {
		const r = new Reader(u8, pos, pos + h.bytes);
		if (r.end > u8.length) throw new Error(words.blockShort);
		const data = decodeSection(r, h, markNs);
		if (data && r.pos !== r.end) throw new Error(words.sectionLong(h.kind));
		if (data) out.push({...h, ...data}); // this replaces a lane's start by its column of times
		pos = r.end;
	}
	return out;
}

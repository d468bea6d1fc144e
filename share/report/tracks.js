// SPDX-License-Identifier: MIT
// Spans of one kind, by time: the lanes of threads and rows of their calls.

import {max} from "./math.js";
import {GIL_STATES} from "./states.js";

/** @type {(s: Section, i: number) => number} */
const endOf = (s, i) => (s.end ? s.end[i] : s.start[i + 1]);

// Spans of one kind, in sections by time. The spans of a lane follow each other without a gap and
// have a state; calls have an end and a name.
export class Track {
	constructor() {
		/** @type {Section[]} */
		this.sections = [];
		this.n = 0;
	}
	add(s) {
		let k = this.sections.length;
		while (k > 0 && this.sections[k - 1].t0 > s.t0) k--;
		this.sections.splice(k, 0, s);
		this.n += s.n;
	}

	/**
	 * The span that contains t.
	 * @type {(t: number) => Place | null}
	 */
	find(t) {
		const k = lastAtOrBefore(this.sections.length, j => this.sections[j].t0, t);
		if (k < 0) return null;
		const s = this.sections[k],
			i = upper(s.start, 0, s.n, t) - 1;
		return i >= 0 && t < endOf(s, i) ? {s, k, i} : null;
	}

	// Call f(start, end, state or name, section, index) for each span that overlaps [from, to).
	each(from, to, f) {
		for (const s of this.sections) {
			if (s.t1 <= from || s.t0 >= to) continue;
			const what = s.name || s.state;
			let i = max(0, upper(s.start, 0, s.n, from) - 1);
			for (; i < s.n && s.start[i] < to; i++)
				if (endOf(s, i) > from) f(s.start[i], endOf(s, i), what[i], s, i);
		}
	}
}

export class Lane extends Track {
	constructor(states) {
		super();
		this.states = states;
		this.base = []; // for each section: totals by state of the sections before it
		this.withStacks = false; // whether a span has a stack
		this.cache = null; // of gilColumns()
		this.marks = []; // waits that must stay visible: start, end, start, end …
		this.gils = new Set(); // the GILs that the thread used, as numbers from 1
	}

	add(s) {
		super.add(s);
		for (const gil of s.gils) this.gils.add(gil);
		this.withStacks ||= !!s.stack;
		if (s.marks && s.marks.length) {
			if (!this.marks.length || this.marks[this.marks.length - 2] <= s.marks[0])
				for (const m of s.marks) this.marks.push(m);
			else this.marks = this.sections.flatMap(x => Array.from(x.marks));
		}
		const sum = new Float64Array(this.states);
		this.base = this.sections.map(x => {
			const before = sum.slice();
			for (let c = 0; c < x.classes; c++) sum[c % this.states] += x.total[c];
			return before;
		});
	}

	// Whether the thread used no other GIL than this one.
	only(gil) {
		return this.gils.size === 1 && this.gils.has(gil);
	}

	// Where to continue from at t: before the first span, or after the last one, if the thread did
	// not exist then.
	start(t, by) {
		const last = this.sections.length - 1;
		return this.find(t) || (by > 0 ? {k: 0, i: -1} : {k: last, i: this.sections[last].n});
	}

	/**
	 * The nearest span before or after (by = -1, +1) that test accepts.
	 * @type {(at: Omit<Place, "s">, by: number, test: SpanTest) => Place | null}
	 */
	step(at, by, test) {
		let {k, i} = at;
		for (i += by; k >= 0 && k < this.sections.length; ) {
			const s = this.sections[k];
			for (; i >= 0 && i < s.n; i += by) if (test(s, i)) return {s, k, i};
			k += by;
			i = by > 0 ? 0 : k >= 0 ? this.sections[k].n - 1 : 0;
		}
		return null;
	}
}

/**
 * The index of the GIL of a hold or wait.
 * @type {(s: Section, i: number) => number}
 */
export const gilOf = (s, i) => s.gils[(s.cls[i] - s.state[i]) / GIL_STATES] - 1;

// First index in [lo, hi) whose value is > t.
export function upper(a, lo, hi, t) {
	while (lo < hi) {
		const mid = (lo + hi) >>> 1;
		if (a[mid] <= t) lo = mid + 1;
		else hi = mid;
	}
	return lo;
}

export function lastAtOrBefore(n, value, t) {
	let lo = 0,
		hi = n;
	while (lo < hi) {
		const mid = (lo + hi) >>> 1;
		if (value(mid) <= t) lo = mid + 1;
		else hi = mid;
	}
	return lo - 1;
}

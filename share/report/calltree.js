// SPDX-License-Identifier: MIT
// Divides the time of spans among the calls that a thread was executing: a tree of calls, outermost
// first. Exact for any number of calls.

import {max, min} from "./math.js";
import {upper} from "./tracks.js";

const NO_KIDS = new Map(); // of all nodes without callees
const CALLS_STEP = 4000; // calls between two interruptions

export const newNode = (key, name = key) => ({key, name, ns: 0, kids: NO_KIDS});

export function kidOf(node, key, name) {
	let kid = node.kids.get(key);
	if (kid) return kid;
	if (node.kids === NO_KIDS) node.kids = new Map();
	node.kids.set(key, (kid = newNode(key, name)));
	return kid;
}

// The calls of a row in order of time, for seek() with rising t.
class Calls {
	constructor(row) {
		this.sections = row.sections;
		this.k = 0;
		this.i = 0;
	}

	// Go to the first call that ends after t. Returns false if there is none.
	seek(t) {
		for (; this.k < this.sections.length; this.k++, this.i = 0) {
			const {n, end} = this.sections[this.k];
			if (n > 0 && end[n - 1] > t) {
				for (let step = 1; end[this.i] <= t; step *= 2) {
					const to = min(n, this.i + step);
					this.i = end[to - 1] > t ? upper(end, this.i, to, t) : to;
				}
				this.s = this.sections[this.k];
				return true;
			}
		}
		return false;
	}
}

// Add the spans of a lane in [from, to) whose state is wanted to the node, and their time in calls
// to the tree below it. rows: the calls by depth. nameOf(id): {key, name} of a function.
// each(node, ns, section, index) adds a span in another way and returns true, or false. Yields
// between steps.
export function* chargeCalls(top, rows, lane, {from, to}, wanted, nameOf, each) {
	const calls = rows.map(row => new Calls(row)),
		nodes = [],
		starts = [],
		ends = [];
	let looked = 0;
	for (const s of lane.sections) {
		if (s.t1 <= from || s.t0 >= to) continue;
		for (let i = max(0, upper(s.start, 0, s.n, from) - 1); i < s.n && s.start[i] < to; i++) {
			if (++looked % CALLS_STEP === 0) yield;
			const x = max(s.start[i], from),
				y = min(s.start[i + 1], to);
			if (y <= x || !wanted(s.state[i])) continue;
			top.ns += y - x;
			if (each(top, y - x, s, i)) continue;
			nodes[0] = top;
			starts[0] = x;
			ends[0] = y;
			for (let d = 0; d >= 0; ) {
				const c = calls[d];
				if (!c || starts[d] >= ends[d] || !c.seek(starts[d]) || c.s.start[c.i] >= ends[d]) {
					d--;
					continue;
				}
				if (++looked % CALLS_STEP === 0) yield;
				const a = max(c.s.start[c.i], starts[d]),
					b = min(c.s.end[c.i], ends[d]),
					{key, name} = nameOf(c.s.name[c.i]),
					kid = kidOf(nodes[d], key, name);
				starts[d] = b;
				kid.ns += b - a;
				nodes[++d] = kid;
				starts[d] = a;
				ends[d] = b;
			}
		}
	}
}

// SPDX-License-Identifier: MIT
// Level of detail: the exact content of each pixel column of a track, from prefix sums.

import {floor, max, min} from "./math.js";
import {GIL_STATES, GROUP_BITS, HOLD_STATE, LANE_BITS} from "./states.js";
import {store} from "./store.js";
import {lastAtOrBefore, upper} from "./tracks.js";

// Running sums by state along a lane. seek(t) must be called with rising t.
// gil: index of the only GIL whose holds and waits count, or -1 for all.
class Cursor {
	constructor(lane, gil) {
		this.lane = lane;
		this.states = lane.states;
		this.want = gil < 0 ? -1 : gil + 1;
		this.divided = gil >= 0 && !lane.only(gil + 1); // some holds and waits do not count
		this.sum = new Float64Array(lane.states);
		this.local = new Float64Array(16);
		this.k = -1;
		this.i = 0;
	}

	enter(k) {
		this.k = k;
		this.i = 0;
		const s = this.lane.sections[k];
		if (this.local.length < s.classes) this.local = new Float64Array(s.classes);
		this.local.fill(0);
		this.map = null;
		if (this.divided) {
			this.map = new Int8Array(s.classes);
			for (let c = 0; c < s.classes; c++) {
				const state = c % this.states;
				this.map[c] =
					state < HOLD_STATE || s.gils[(c - state) / this.states] === this.want
						? state
						: -1;
			}
		}
	}

	// Store the time in each state from the lane's start to t in this.sum.
	seek(t) {
		const {lane, sum, states} = this;
		const {sections} = lane;
		let k =
			this.k < 0
				? max(
						0,
						lastAtOrBefore(sections.length, j => sections[j].t0, t),
					)
				: this.k;
		while (k + 1 < sections.length && sections[k + 1].t0 <= t) k++;
		if (k !== this.k) this.enter(k);
		const s = sections[k];
		const {start, cls, classes, ck} = s;
		const local = this.local;
		const base = this.divided ? this.filtered(k) : lane.base[k];
		for (let c = 0; c < states; c++) sum[c] = base[c];
		if (t <= s.t0) return;
		if (t >= s.t1) {
			this.fold(s.total, classes);
			return;
		}
		let i = this.i;
		if (start[i + 1] <= t) {
			const {at} = s;
			let g = i >> LANE_BITS;
			if (g + 1 < at.length && at[g + 1] <= t) {
				// gallop over the checkpoints
				let step = 1;
				while (g + step < at.length && at[g + step] <= t) step *= 2;
				g = upper(at, g + (step >> 1), min(at.length, g + step), t) - 1;
				i = g << LANE_BITS;
				for (let c = 0, from = g * classes; c < classes; c++) local[c] = ck[from + c];
			}
			for (; start[i + 1] <= t; i++) local[cls[i]] += start[i + 1] - start[i];
			this.i = i;
		}
		this.fold(local, classes);
		const c = this.map ? this.map[cls[i]] : cls[i] % states;
		if (c >= 0) sum[c] += t - start[i];
	}

	fold(from, classes) {
		const {sum, map, states} = this;
		if (!map && classes === states) {
			// the usual case: a single GIL
			for (let c = 0; c < classes; c++) sum[c] += from[c];
			return;
		}
		for (let c = 0; c < classes; c++) {
			const to = map ? map[c] : c % states;
			if (to >= 0) sum[to] += from[c];
		}
	}

	// Totals of this.want's GIL in the sections before k.
	filtered(k) {
		if (!this.before) {
			this.before = [];
			const sum = new Float64Array(this.states);
			for (const s of this.lane.sections) {
				this.before.push(sum.slice());
				for (let c = 0; c < s.classes; c++) {
					const state = c % this.states;
					if (state < HOLD_STATE || s.gils[(c - state) / this.states] === this.want)
						sum[state] += s.total[c];
				}
			}
		}
		return this.before[k];
	}
}

const GROUP = 1 << GROUP_BITS;

// Time in each state in each of w columns of dt ns from t0: out[x * states + state].
export function laneColumns(lane, t0, dt, w, gil, out) {
	const states = lane.states;
	if (!lane.sections.length) {
		out.fill(0, 0, w * states);
		return out;
	}
	const cur = new Cursor(lane, gil);
	const last = new Float64Array(states);
	cur.seek(t0);
	last.set(cur.sum);
	for (let x = 0; x < w; x++) {
		cur.seek(t0 + (x + 1) * dt);
		for (let c = 0; c < states; c++) {
			out[x * states + c] = cur.sum[c] - last[c];
			last[c] = cur.sum[c];
		}
	}
	return out;
}

// The columns of a GIL lane. They are cached, since the strip and the lane need the same ones.
export function gilColumns(thread, t0, dt, w, gil) {
	const lane = store().gil[thread];
	let c = lane.cache;
	if (!c || c.t0 !== t0 || c.dt !== dt || c.w !== w || c.gil !== gil || c.n !== lane.n) {
		c = lane.cache = {
			t0,
			dt,
			w,
			gil,
			n: lane.n,
			cols: c && c.w === w ? c.cols : new Float64Array(w * GIL_STATES),
		};
		laneColumns(lane, t0, dt, w, gil, c.cols);
	}
	return c.cols;
}

// Time in each state in [from, to).
export function laneTotals(lane, from, to, gil = -1) {
	const out = new Float64Array(lane.states);
	if (to > from && lane.sections.length) laneColumns(lane, from, to - from, 1, gil, out);
	return out;
}

// Columns that a wait of at least the threshold touches.
export function markColumns(lane, t0, dt, w, out) {
	out.fill(0, 0, w);
	const m = lane.marks,
		t1 = t0 + dt * w;
	let i =
		max(
			0,
			lastAtOrBefore(m.length >> 1, j => m[2 * j], t0),
		) * 2;
	while (i < m.length && m[i] < t1) {
		if (m[i + 1] > t0) {
			const a = max(0, floor((m[i] - t0) / dt));
			const b = min(w - 1, floor((m[i + 1] - t0) / dt));
			for (let x = a; x <= b; x++) out[x] = 1;
			if (m[i + 1] - m[i] < dt) {
				// many in one pixel: continue in the next one
				const next = t0 + (b + 1) * dt;
				const j = lastAtOrBefore(m.length >> 1, q => m[2 * q], next) * 2;
				if (j > i + 2) {
					i = j;
					continue;
				}
			}
		}
		i += 2;
	}
	return out;
}

// For each column of a row of calls: cover[x] = the share of the column that calls cover; name[x] =
// the longest of the calls that were examined, -1 for none; edge[x] = 1 if a call begins there.
export function rowColumns(row, t0, dt, w, cover, name, edge, lit) {
	cover.fill(0, 0, w);
	name.fill(-1, 0, w);
	edge.fill(0, 0, w);
	const t1 = t0 + dt * w;
	for (const s of row.sections) {
		if (s.t1 <= t0 || s.t0 >= t1) continue;
		// Many calls in a pixel are read by groups. A call that matches the search may be inside a
		// group.
		if (!lit && ((s.t1 - s.t0) / max(1, s.n)) * 4 * GROUP < dt)
			groupColumns(s, t0, dt, w, cover, name, edge);
		else callColumns(s, t0, dt, w, cover, name, edge, lit);
	}
}

// The time of calls from the section's start to t, interpolated within a group.
function groupSum(s, g, t) {
	const a = s.at[g],
		d = s.at[g + 1] - a;
	return s.ck[g] + (d > 0 ? min(1, max(0, (t - a) / d)) * (s.ck[g + 1] - s.ck[g]) : 0);
}

function groupColumns(s, t0, dt, w, cover, name, edge) {
	const {at, top} = s,
		groups = top.length;
	let x = max(0, floor((s.t0 - t0) / dt));
	let g = max(0, upper(at, 0, groups, t0 + x * dt) - 1),
		before = groupSum(s, g, t0 + x * dt);
	for (; x < w && g < groups; x++) {
		const b = t0 + (x + 1) * dt,
			first = g;
		while (g + 1 < groups && at[g + 1] <= b) g++;
		const sum = groupSum(s, g, b);
		if (sum > before) {
			cover[x] += (sum - before) / dt;
			edge[x] = 1;
			name[x] = top[(first + g) >> 1];
		}
		before = sum;
		if (b >= s.t1) break;
	}
}

function callColumns(s, t0, dt, w, cover, name, edge, lit) {
	const {start, end, n} = s;
	let x = max(0, floor((s.t0 - t0) / dt));
	let i = max(0, upper(start, 0, n, t0 + x * dt) - 1);
	while (x < w && i < n) {
		const a = t0 + x * dt,
			b = a + dt;
		while (i < n && end[i] <= a) i++;
		if (i >= n) break;
		if (start[i] >= b) {
			// no call here: continue where the next one begins
			x = max(x + 1, floor((start[i] - t0) / dt));
			continue;
		}
		let longest = 0,
			best = -1,
			sum = 0,
			j = i;
		for (; j < n && start[j] < b; j++) {
			const d = min(end[j], b) - max(start[j], a);
			sum += d;
			if (d > longest || (lit && lit[s.name[j]] && !(best >= 0 && lit[best]))) {
				if (!(lit && best >= 0 && lit[best] && !lit[s.name[j]])) {
					longest = d;
					best = s.name[j];
				}
			}
		}
		cover[x] += sum / dt;
		edge[x] = start[j - 1] >= a ? 1 : 0;
		name[x] = best;
		i = j - 1;
		x++;
		if (end[i] >= t0 + (x + 1) * dt) {
			// one call covers many columns
			const full = min(w, floor((end[i] - t0) / dt));
			cover.fill(1, x, full);
			name.fill(s.name[i], x, full);
			x = full;
		}
	}
}

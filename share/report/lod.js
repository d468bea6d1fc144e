// SPDX-License-Identifier: MIT
// Level of detail: what of a track falls into each pixel column, exactly, from prefix sums.

// Running sums by state along a lane. seek(t) must be called with rising t.
// gil: index of the only GIL whose holds and waits count, or -1 for all.
function Cursor(lane, gil) {
	this.lane = lane;
	this.states = lane.states;
	this.want = gil < 0 ? -1 : gil + 1;
	this.sum = new Float64Array(lane.states);
	this.local = new Float64Array(16);
	this.k = -1;
	this.i = 0;
}

Cursor.prototype.enter = function (k) {
	this.k = k;
	this.i = 0;
	const s = this.lane.sections[k];
	if (this.local.length < s.classes)
		this.local = new Float64Array(s.classes);
	this.local.fill(0);
	this.map = null;
	if (this.want >= 0 && this.lane.multi) {
		this.map = new Int8Array(s.classes);
		for (let c = 0; c < s.classes; c++) {
			const state = c % this.states;
			this.map[c] = state < HOLD_STATE || s.gils[(c - state) / this.states] === this.want ? state : -1;
		}
	}
};

// Into this.sum: time in each state from the lane's start to t.
Cursor.prototype.seek = function (t) {
	const {lane, sum, states} = this;
	const {sections} = lane;
	let k = this.k < 0 ? Math.max(0, lastAtOrBefore(sections.length, j => sections[j].t0, t)) : this.k;
	while (k + 1 < sections.length && sections[k + 1].t0 <= t)
		k++;
	if (k !== this.k)
		this.enter(k);
	const s = sections[k];
	const {start, cls, classes, ck} = s;
	const local = this.local;
	const base = lane.multi && this.want >= 0 ? this.filtered(k) : lane.base[k];
	for (let c = 0; c < states; c++)
		sum[c] = base[c];
	if (t <= s.t0)
		return;
	if (t >= s.t1) {
		this.fold(s.total, classes);
		return;
	}
	let i = this.i;
	if (start[i + 1] <= t) { // gallop, then halve
		let step = 1, lo = i + 1;
		while (lo + step < s.n && start[lo + step] <= t) {
			lo += step;
			step *= 2;
		}
		const to = upper(start, lo, Math.min(s.n, lo + step + 1), t) - 1;
		if (to - i > CHECK) {
			i = to & -CHECK;
			const at = (i >> 5) * classes;
			for (let c = 0; c < classes; c++)
				local[c] = ck[at + c];
		}
		for (; i < to; i++)
			local[cls[i]] += start[i + 1] - start[i];
		this.i = i;
	}
	this.fold(local, classes);
	const c = this.map ? this.map[cls[i]] : cls[i] % states;
	if (c >= 0)
		sum[c] += t - start[i];
};

Cursor.prototype.fold = function (from, classes) {
	const {sum, map, states} = this;
	for (let c = 0; c < classes; c++) {
		const to = map ? map[c] : c % states;
		if (to >= 0)
			sum[to] += from[c];
	}
};

// Totals of this.want's GIL in the sections before k.
Cursor.prototype.filtered = function (k) {
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
};

const HOLD_STATE = 2;
const WAIT_STATE = 3;
const SWITCH_STATE = 4;
const CHECK = 32; // as CK in decode.js

// Time in each state in each of w columns of dt ns from t0: out[x * states + state].
function laneColumns(lane, t0, dt, w, gil, out) {
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

// Time in each state in [from, to).
function laneTotals(lane, from, to, gil = -1) {
	const out = new Float64Array(lane.states);
	if (to > from && lane.sections.length)
		laneColumns(lane, from, to - from, 1, gil, out);
	return out;
}

// Columns that a wait of at least the threshold touches.
function markColumns(lane, t0, dt, w, out) {
	out.fill(0, 0, w);
	const m = lane.marks, t1 = t0 + dt * w;
	let i = Math.max(0, lastAtOrBefore(m.length >> 1, j => m[2 * j], t0)) * 2;
	while (i < m.length && m[i] < t1) {
		if (m[i + 1] > t0) {
			const a = Math.max(0, Math.floor((m[i] - t0) / dt));
			const b = Math.min(w - 1, Math.floor((m[i + 1] - t0) / dt));
			for (let x = a; x <= b; x++)
				out[x] = 1;
			if ((m[i + 1] - m[i]) < dt) { // many in one pixel: go on in the next one
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

// Of each column of a row of calls: cover[x] = share of the column that calls cover; name[x] = the
// longest of up to 16 looked at, -1 for none; edge[x] = 1 where a call begins.
function rowColumns(row, t0, dt, w, cover, name, edge, lit) {
	cover.fill(0, 0, w);
	name.fill(-1, 0, w);
	edge.fill(0, 0, w);
	const t1 = t0 + dt * w;
	for (const s of row.sections) {
		if (s.t1 <= t0 || s.t0 >= t1)
			continue;
		const {start, end, n} = s;
		let x = Math.max(0, Math.floor((s.t0 - t0) / dt));
		let i = Math.max(0, upper(start, 0, n, t0 + x * dt) - 1);
		while (x < w && i < n) {
			const a = t0 + x * dt, b = a + dt;
			if (end[i] <= a) { // the first call that ends behind a
				let step = 1;
				while (i + step < n && end[i + step] <= a)
					step *= 2;
				i = upper(end, i + (step >> 1), Math.min(n, i + step + 1), a);
				if (i >= n)
					break;
			}
			if (start[i] >= b) { // nothing here: on to where it begins
				x = Math.max(x + 1, Math.floor((start[i] - t0) / dt));
				continue;
			}
			if (end[i] >= b) { // one call covers to the edge, and perhaps many columns more
				const from = Math.max(start[i], a);
				cover[x] += (b - from) / dt;
				if (start[i] >= a)
					edge[x] = 1;
				if (cover[x] - (b - from) / dt < (b - from) / dt)
					name[x] = s.name[i];
				const full = Math.min(w, Math.floor((end[i] - t0) / dt));
				for (x++; x < full; x++) {
					cover[x] = 1;
					name[x] = s.name[i];
				}
				continue;
			}
			let j = upper(start, i, Math.min(n, i + 64), b);
			if (j === i + 64)
				j = upper(start, j, n, b);
			let sum = callTime(s, i, j, a, b);
			cover[x] += sum / dt;
			edge[x] = 1;
			let best = -1, longest = -1;
			const step = Math.max(1, (j - i) >> 4);
			for (let q = i; q < j; q += step) {
				const d = Math.min(end[q], b) - Math.max(start[q], a);
				if (d > longest) {
					longest = d;
					best = s.name[q];
				}
			}
			if (lit)
				for (let q = i, e = Math.min(j, i + 4096); q < e; q++)
					if (lit[s.name[q]]) {
						best = s.name[q];
						break;
					}
			name[x] = best;
			i = Math.max(i, j - 1);
			x++;
		}
	}
}

// Time of calls i … j-1 within [a, b).
function callTime(s, i, j, a, b) {
	const {start, end} = s;
	let sum = 0;
	if (j - i <= 2 * CHECK) {
		for (let q = i; q < j; q++)
			sum += Math.min(end[q], b) - Math.max(start[q], a);
		return sum;
	}
	return callSum(s, j) - callSum(s, i) - Math.max(0, a - start[i]) - Math.max(0, end[j - 1] - b);
}

function callSum(s, i) {
	if (i >= s.n)
		return s.total;
	let q = i & -CHECK, sum = s.ck[i >> 5];
	for (; q < i; q++)
		sum += s.end[q] - s.start[q];
	return sum;
}

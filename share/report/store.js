// SPDX-License-Identifier: MIT
// The data that the workers have decoded, by pass and track, and the code that hands blocks to
// them.

import {meta, passIndex} from "./data.js";
import {$} from "./dom.js";
import {emit} from "./events.js";
import {max, min} from "./math.js";
import {CPU_STATES, GIL_STATES, HIST_SUB} from "./states.js";

export const endOf = (s, i) => (s.end ? s.end[i] : s.start[i + 1]);

// Spans of one kind, in sections by time. The spans of a lane follow each other without a gap and
// have a state; calls have an end and a name.
class Track {
	constructor() {
		this.sections = [];
		this.n = 0;
	}
	add(s) {
		let k = this.sections.length;
		while (k > 0 && this.sections[k - 1].t0 > s.t0) k--;
		this.sections.splice(k, 0, s);
		this.n += s.n;
	}

	// {s, k, i}: the span that contains t, or null.
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

	// The nearest span before or after (by = -1, +1) that test accepts.
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

// The index of the GIL of a hold or wait.
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

function PassStore() {
	this.gil = []; // by thread index
	this.cpu = [];
	this.slices = []; // by thread index: rows by depth
	this.released = []; // by thread index: the parts of its waits for locks, by releasing thread
	this.counters = []; // by thread index: by counter: sections
	this.lost = [];
	this.queued = []; // by thread index: sections
	// Samples: runs has sections by thread index, in order of time.
	this.sampled = {times: [], runs: [], stacks: {parent: [0], name: [0], module: [0], line: [0]}};
	this.names = {slices: [], stacks: [], samples: [], cpus: []};
	this.nameCount = [];
	this.nameLongest = [];
	this.stacks = {parent: [0], name: [0], module: [0], line: [0], flags: [0]};
	this.hist = new Float64Array(48 * HIST_SUB);
	this.calls = 0;
}

export const stores = meta.passes.map(() => new PassStore());
export const store = () => stores[passIndex];

function addSection(s) {
	const p = stores[s.pass];
	if (!p) return;
	switch (s.kind) {
		case "gil":
		case "locks":
			(p.gil[s.thread] ||= new Lane(GIL_STATES)).add(s);
			for (let i = 0; i < s.hist.length; i++) p.hist[i] += s.hist[i];
			break;
		case "cpu":
			(p.cpu[s.thread] ||= new Lane(CPU_STATES)).add(s);
			break;
		case "slices": {
			const rows = (p.slices[s.thread] ||= []);
			while (rows.length <= s.depth) rows.push(new Track());
			rows[s.depth].add(s);
			p.calls += s.n;
			for (let k = 0; k < s.names.length; k += 3) {
				const id = s.names[k];
				p.nameCount[id] = (p.nameCount[id] || 0) + s.names[k + 1];
				p.nameLongest[id] = max(p.nameLongest[id] || 0, s.names[k + 2]);
			}
			break;
		}
		case "names":
			s.list.forEach((text, i) => {
				p.names[s.table][s.start + i] = text;
			});
			break;
		case "stacks":
			for (const key in p.stacks)
				for (let i = 0; i < s.n; i++) p.stacks[key][s.start + i] = s[key][i];
			break;
		case "sampletimes":
			for (let i = 0; i < s.n; i++) p.sampled.times[s.start + i] = s.time[i];
			break;
		case "samplestacks":
			for (const key in p.sampled.stacks)
				for (let i = 0; i < s.n; i++) p.sampled.stacks[key][s.start + i] = s[key][i];
			break;
		case "samples": {
			const list = (p.sampled.runs[s.thread] ||= []);
			list.push(s);
			list.sort((a, b) => a.sample[0] - b.sample[0]);
			break;
		}
		case "counter":
			((p.counters[s.thread] ||= [])[s.counter] ||= []).push(s);
			break;
		case "queued":
			(p.queued[s.thread] ||= []).push(s);
			break;
		case "released":
			(p.released[s.thread] ||= []).push(s);
			break;
		case "lost":
			p.lost.push(s);
			break;
	}
}

export const loading = {sent: 0, done: 0, ended: false, complete: false, events: 0, errors: []};
let workers = [];

function workersStart() {
	const url = URL.createObjectURL(
		new Blob([$("gt-worker").textContent], {type: "text/javascript"}),
	);
	const n = max(1, min(4, navigator.hardwareConcurrency || 2));
	for (let i = 0; i < n; i++) {
		const w = new Worker(url);
		w.onmessage = e => received(e.data);
		w.onerror = e => {
			loading.errors.push(e.message || "the worker failed");
			received({sections: []});
		};
		workers.push(w);
	}
}

// Called by the script element after each block, while the file is still being parsed.
export function push(list) {
	const me = document.currentScript;
	const data = me.previousElementSibling;
	if (!workers.length) workersStart();
	workers[loading.sent % workers.length].postMessage({
		id: loading.sent,
		text: data.textContent,
		list,
		markNs: meta.wait_mark_ns,
	});
	loading.sent++;
	data.remove();
	me.remove();
}

function received({sections, error}) {
	loading.done++;
	if (error) loading.errors.push(error);
	else
		for (const s of sections) {
			addSection(s);
			loading.events += s.n;
		}
	emit("data");
	maybeComplete();
}

export function end() {
	loading.ended = true;
	maybeComplete();
}

function maybeComplete() {
	if (!loading.ended || loading.done < loading.sent || loading.complete) return;
	loading.complete = true;
	for (const w of workers) w.terminate();
	workers = [];
	performance.mark("gt-complete");
	emit("data");
	emit("complete");
}

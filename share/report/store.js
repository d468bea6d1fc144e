// SPDX-License-Identifier: MIT
// The data that the workers have decoded, by pass and track, and the code that hands blocks to
// them.

import {meta, passIndex} from "./data.js";
import {$} from "./dom.js";
import {emit} from "./events.js";
import {max, min} from "./math.js";
import {CPU_STATES, GIL_STATES, HIST_SUB} from "./states.js";
import {Lane, Track} from "./tracks.js";
import * as words from "./words.js";

class PassStore {
	/** @type {Lane[]} */
	gil = []; // by thread index
	/** @type {Lane[]} */
	cpu = [];
	/** @type {Track[][]} */
	slices = []; // by thread index: rows by depth
	released = []; // by thread index: the parts of its waits for locks, by releasing thread
	counters = []; // by thread index: by counter: sections
	lost = [];
	queued = []; // by thread index: sections
	// Samples: runs has sections by thread index, in order of time.
	sampled = {times: [], runs: [], stacks: {parent: [0], name: [0], module: [0], line: [0]}};
	names = {slices: [], stacks: [], samples: [], cpus: []};
	nameCount = [];
	nameLongest = [];
	stacks = {parent: [0], name: [0], module: [0], line: [0], flags: [0]};
	hist = new Float64Array(48 * HIST_SUB);
	calls = 0;
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

export const loading = {
	sent: 0,
	done: 0,
	ended: false,
	read: false,
	complete: false,
	events: 0,
	errors: [],
};
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
			loading.errors.push(e.message || words.workerFailed);
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

/** @type {(answer: {sections?: any[], error?: string}) => void} */
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
	if (!loading.ended || loading.done < loading.sent || loading.read) return;
	loading.read = true;
	for (const w of workers) w.terminate();
	workers = [];
	emit("read");
}

// What needs all data has been prepared.
export function complete() {
	loading.complete = true;
	performance.mark("gt-complete");
	emit("data");
	emit("complete");
}

// SPDX-License-Identifier: MIT
// Crowds: if there are many threads, those whose names differ in digits only are treated as one, by
// the rules of analysis/groups.h.

import {meta, pass, threadLabel, threadName} from "./data.js";

let crowdCache = {of: null, list: [], at: []};
// [{name, threads}] of the pass: crowds, and threads that are in none, whose name is null.
export function crowds() {
	const p = pass(),
		by = new Map();
	if (crowdCache.of === p) return crowdCache.list;
	p.threads.forEach((t, i) => {
		const key = t.main ? "\0" + i : threadName(i).replace(/[0-9]+/g, "*");
		by.has(key) ? by.get(key).push(i) : by.set(key, [i]);
	});
	const list = [...by].flatMap(([name, threads]) =>
		threads.length >= meta.crowd_least && p.threads.length > meta.crowds_from
			? [{name, threads}]
			: threads.map(i => ({name: null, threads: [i]})),
	);
	const at = [];
	list.forEach((c, k) =>
		c.threads.forEach(i => {
			at[i] = k;
		}),
	);
	crowdCache = {of: p, list, at};
	return list;
}

// The index of a thread's crowd in the list.
export function crowdAt(i) {
	crowds();
	return crowdCache.at[i];
}
export const crowdOf = i => crowds()[crowdAt(i)];

export const crowdLabel = c =>
	c.name ? c.name + " × " + c.threads.length : threadLabel(c.threads[0]);

// The numbers of a crowd in the form of one thread: sums of times, and the longest of any thread.
export function crowdSum(c) {
	if (!c.name) return pass().threads[c.threads[0]];
	const sum = {states: {}};
	for (const i of c.threads)
		for (const [key, v] of Object.entries(pass().threads[i]))
			if (key === "states") for (const s in v) sum.states[s] = (sum.states[s] || 0) + v[s];
			else if (key.startsWith("longest_") && key.endsWith("_ns") && !key.endsWith("_at_ns")) {
				if (!(sum[key] >= v)) {
					sum[key] = v;
					sum[key + "_of"] = i;
				}
			} else if (typeof v === "number" && key.endsWith("_ns") && !key.startsWith("longest_"))
				sum[key] = (sum[key] || 0) + v;
	return sum;
}

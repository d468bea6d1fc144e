// SPDX-License-Identifier: MIT
// The JSON documents of the page, and the names of threads in them.

import {$} from "./dom.js";
import {fmtDur, shorten} from "./format.js";
import * as words from "./words.js";

/** @returns {any} */
const readJson = id => JSON.parse($(id).textContent || "{}");
/** @type {Report} */
export const report = readJson("gt-report");
/** @type {Meta} */
export const meta = readJson("gt-meta");
/** @type {Overview} */
export const overview = readJson("gt-overview");

// For an interpreter without a GIL, lock waits and stops take the place of the GIL: a thread that
// stops the others "holds", a thread that sleeps for a lock or is stopped "waits", and the thread
// whose release ends the wait is the holder.
for (const p of meta.passes) {
	if (!p.locks) continue;
	p.gil_events = 1;
	p.blame = p.lock_blame;
	p.caused = p.lock_caused;
	for (const t of p.threads) {
		const lock = t.longest_lock_wait_ns >= t.longest_stop_ns;
		t.hold_ns = t.stopping_ns;
		t.wait_ns = t.lock_wait_ns + t.stopped_ns;
		t.free_wait_ns = t.spinning_ns;
		t.no_gil_ns -= t.hold_ns + t.wait_ns + t.free_wait_ns;
		t.longest_hold_ns = t.longest_stopping_ns;
		t.longest_hold_at_ns = t.longest_stopping_at_ns;
		t.longest_wait_ns = lock ? t.longest_lock_wait_ns : t.longest_stop_ns;
		t.longest_wait_at_ns = lock ? t.longest_lock_wait_at_ns : t.longest_stop_at_ns;
	}
}

// The recording that is shown; view.js has the part of it that is in view.
export let passIndex = meta.main_pass || 0;
export const pass = () => meta.passes[passIndex];
// Lanes of the groups of event loops' tasks, by the group's index in the report.
export const taskLanes = () => (meta.tasks?.pass === passIndex ? meta.tasks.lanes : []);
export const choosePass = index => {
	passIndex = index;
};

// Words for this recording: about a GIL or, without one, about what blocks threads instead.
/** @type {<T>(texts: T[]) => T} */
export const gilText = ([gil, instead]) => (pass().locks ? instead : gil);

// Whether this recording has GIL events. If not, it has only the CPU states of threads.
export const gilKnown = () => pass().gil_events === undefined || pass().gil_events > 0;

// If there are several GILs, their names have numbers and, if there are several processes, the pid.
export function gilName(index) {
	const list = pass().gils;
	return list.length < 2
		? words.gil
		: words.gilNumber(
				index + 1,
				list.some(g => g.pid !== list[0].pid) ? list[index].pid : null,
			);
}

export const switchInterval = fmtDur(meta.switch_interval_ns).replace(".00", "");

export const HANDOVER = null;
export const CANNOT_TELL = -1;
export const LEFT_OUT = -2; // these holders are not threads
export const isThread = holder => holder !== null && holder >= 0;

// The life of a thread without the time in which it was stopped by a signal: shares are of this.
export const lifeNs = t => t.total_ns - (t.suspended_ns || 0);

// The holder's name for the time of a wait that no hold covers. It is certain that nobody held the
// GIL only if no records are missing.
export const nobodyText = () =>
	gilText([
		pass().blame.some(b => b.holder === CANNOT_TELL)
			? words.nobodyOrUnknown
			: words.handOffHolder,
		words.notSeenHolder,
	]);

export function threadName(index) {
	const t = pass().threads[index];
	if (!t) return words.threadNumber(index);
	return t.name || (t.main ? words.mainThread : words.threadOfTid(t.tid));
}

// Names are not unique: pools give all their threads the same name, and each process has a main
// thread.
let labels = {of: null, list: []};
export function threadLabel(index) {
	const p = pass(),
		count = new Map();
	if (labels.of !== p) {
		const key = (i, main) => (main ? "main " : "") + threadName(i);
		p.threads.forEach((t, i) =>
			[key(i), t.main && key(i, true)].forEach(k => count.set(k, (count.get(k) || 0) + 1)),
		);
		labels = {
			of: p,
			list: p.threads.map(
				(t, i) =>
					threadName(i) +
					(count.get(key(i)) === 1
						? ""
						: t.main && count.get(key(i, true)) === 1
							? " (main)"
							: " " + t.tid),
			),
		};
	}
	return labels.list[index] ?? threadName(index);
}

// The shortest text that distinguishes a thread from the others: "…r-0_1", "Thread-41".
export function threadShort(index) {
	const t = pass().threads[index],
		label = threadLabel(index);
	if (t && t.main && /^MainThread$| \(main\)$/.test(label)) return words.mainThread;
	if (t && label !== threadName(index)) return String(t.tid);
	const numbered = /^\D{0,8}\d+(?= \()/.exec(label);
	return numbered
		? numbered[0]
		: label.length <= 10
			? label
			: /\d$/.test(label)
				? "…" + label.slice(-6)
				: shorten(label, 10);
}

// Indices of threads, by the wait that they had plus the wait that they caused, largest first, then
// by their holds. Threads that never used the GIL come last.
let order = {of: null, list: []};
export function timelineOrder() {
	const p = pass();
	if (order.of === p) return order.list;
	const wait = p.threads.map(t =>
		gilKnown() ? t.wait_ns : t.states ? t.states.gil_sleep_ns : 0,
	);
	for (const [i, ns] of gilKnown() && p.caused ? p.caused.entries() : []) wait[i] += ns;
	for (const b of gilKnown() && !p.caused ? p.blame : [])
		if (isThread(b.holder)) wait[b.holder] += b.wait_ns;
	const list = p.threads
		.map((t, i) => i)
		.sort(
			(a, b) =>
				wait[b] - wait[a] ||
				p.threads[b].hold_ns - p.threads[a].hold_ns ||
				p.threads[b].total_ns - p.threads[a].total_ns ||
				a - b,
		);
	order = {of: p, list};
	return list;
}

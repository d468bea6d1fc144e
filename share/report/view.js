// SPDX-License-Identifier: MIT
// The part of the recording in view, the pinned span, the selected range and the filters.

import {choosePass, meta, pass, passIndex, threadLabel, timelineOrder} from "./data.js";
import {$, fill, h} from "./dom.js";
import {emit, on} from "./events.js";
import {max, min, round} from "./math.js";
import * as words from "./words.js";

export const view = {from: 0, to: 1};
const saved = meta.passes.map(() => null); // the view of each pass
/** @type {Pin | null} */
export let pinned = null;
/** @type {{from: number, to: number} | null} */
export let range = null;
/** @type {Map<number, string>} */
export const notes = new Map(); // the reader's, by time
/** @type {Set<number> | null} */
export let only = null; // indices of the only threads shown, null for all
// The hits of the search; see search.js.
export const hits = {text: "", lit: null, test: null, count: 0, total: 0};
let threadHits = null; // f(thread): whether its name matches the search; null for all
// shown.each: the table has a row for each thread of a crowd.
export const shown = {gil: true, cpu: true, py: true, counters: true, samples: true, tasks: true};

export const span = () => view.to - view.from;
export const passDur = () => max(1, pass().dur_ns);
// The part that the flame graph shows: the selected range, otherwise the part in view.
export const shownPart = () => range || {from: max(0, view.from), to: min(passDur(), view.to)};
export const partWords = () => (range ? words.inRange : words.inView);
export const MIN_SPAN = 200; // ns

export function setView(from, to) {
	const width = max(MIN_SPAN, min(passDur() * 1.02, to - from));
	const slack = width * 0.5;
	const mid = (from + to) / 2;
	from = max(-slack, min(passDur() + slack - width, mid - width / 2));
	view.from = from;
	view.to = from + width;
	emit("view");
}

export function fitView() {
	setView(0, passDur());
}

let flight = 0;
// Move to a part, with an animation unless the reader prefers reduced motion.
export function flyTo(from, to) {
	cancelAnimationFrame(flight);
	if (matchMedia("(prefers-reduced-motion: reduce)").matches) return setView(from, to);
	const a = {...view},
		t0 = performance.now();
	const step = now => {
		const t = min(1, max(0, now - t0) / 220),
			e = 1 - Math.pow(1 - t, 3);
		const width = Math.exp(
			Math.log(a.to - a.from) * (1 - e) + Math.log(max(MIN_SPAN, to - from)) * e,
		);
		const mid =
			t === 1 ? (from + to) / 2 : ((a.from + a.to) / 2) * (1 - e) + ((from + to) / 2) * e;
		setView(mid - width / 2, mid + width / 2);
		if (t < 1) flight = requestAnimationFrame(step);
	};
	flight = requestAnimationFrame(step);
}

// Show a span with room around it.
export function flyToSpan(from, to) {
	const room = to > from ? max((to - from) * 0.6, 2000) : span() / 2;
	flyTo(from - room, to + room);
}

export function zoomAt(t, factor) {
	cancelAnimationFrame(flight);
	setView(t - (t - view.from) * factor, t + (view.to - t) * factor);
}

export function panBy(share) {
	cancelAnimationFrame(flight);
	const d = span() * share;
	setView(view.from + d, view.to + d);
}

export function setRange(from, to = from) {
	[from, to] = [from, to].map(t => (t === null ? null : max(0, min(passDur(), round(t)))));
	range = from === null || to === from ? null : {from: min(from, to), to: max(from, to)};
	emit("range");
}

export function setThreadHits(test) {
	threadHits = test;
}

// by: the sort order of threads, "" for the wait that they had and that they caused; kept: the
// threads that are kept at the top.
export const arranged = {by: "", kept: []};
const SORTS = {
	name: (a, b) => threadLabel(a).localeCompare(threadLabel(b), undefined, {numeric: true}),
	start: (a, b) => pass().threads[a].from_ns - pass().threads[b].from_ns || a - b,
	hold: (a, b) => pass().threads[b].hold_ns - pass().threads[a].hold_ns || a - b,
	life: (a, b) => lifeOf(b) - lifeOf(a) || a - b,
};
export const lifeOf = i => pass().threads[i].to_ns - pass().threads[i].from_ns;

let sorted = {list: null, key: "", of: null};
function arrange() {
	const of = timelineOrder(),
		key = arranged.by + arranged.kept;
	if (sorted.of === of && sorted.key === key) return sorted.list;
	const list = SORTS[arranged.by] ? [...of].sort(SORTS[arranged.by]) : of,
		kept = arranged.kept.filter(i => pass().threads[i]);
	sorted = {of, key, list: [...kept, ...list.filter(i => !kept.includes(i))]};
	return sorted.list;
}

// Threads in the order of the timeline.
export const rowsThreads = () =>
	arrange().filter(i => (!only || only.has(i)) && (!threadHits || threadHits(i)));

export function keepThread(i) {
	const at = arranged.kept.indexOf(i);
	if (at < 0) arranged.kept.push(i);
	else arranged.kept.splice(at, 1);
	emit("filter");
}

export function setOnly(threads) {
	only = threads && threads.length ? new Set(threads) : null;
	$("filter-clear").hidden = !only;
	emit("filter");
}

/** @type {(pin: Pin | null, quiet?: boolean) => void} */
export function setPin(pin, quiet) {
	pinned = pin;
	emit("pin");
	if (pin && !quiet) emit("told");
}

export function setPass(index) {
	if (index === passIndex || !meta.passes[index]) return;
	saved[passIndex] = {...view};
	choosePass(index);
	pinned = null;
	range = null;
	only = null;
	arranged.kept = [];
	notes.clear();
	$("filter-clear").hidden = true;
	emit("pass");
	emit("pin");
	emit("range");
	const v = saved[index];
	if (v) setView(v.from, v.to);
	else fitView();
}

export function passesInit() {
	const box = $("passes");
	box.hidden = meta.passes.length < 2;
	const what = words.recordings,
		sides = ["B", "A"]; // the recordings of a page of two
	const draw = () =>
		fill(
			box,
			meta.passes
				.map((p, i) =>
					h(
						"button",
						{
							"aria-pressed": String(i === passIndex),
							onclick: () => setPass(i),
							title: meta.diff
								? words.recordingShown
								: meta.one_run
									? words.twoOfOneRun
									: words.twoRuns,
						},
						meta.diff ? sides[i] : what[p.name] || p.name,
					),
				)
				.sort((a, b) => meta.diff && (a.textContent < b.textContent ? -1 : 1)),
		);
	on("pass", draw);
	draw();
}

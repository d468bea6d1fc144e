// SPDX-License-Identifier: MIT
// Which part of the recording is shown, what is pinned, selected, filtered.

import {choosePass, meta, pass, passIndex, timelineOrder} from "./data.js";
import {$, fill, h} from "./dom.js";
import {emit, on} from "./events.js";

export const view = {from: 0, to: 1};
const saved = meta.passes.map(() => null); // the view of each pass
export let pinned = null; // {kind: "gil" | "cpu" | "py", thread, depth, from, to, …}; see pick.js
export let range = null; // {from, to}
export let only = null; // Set of thread indices, null for all
// Of the search; see search.js.
export const hits = {text: "", lit: null, test: null, count: 0, total: 0};
let threadHits = null; // f(thread): whether its name was searched for, null for all
export const shown = {gil: true, cpu: true, py: true, counters: true, samples: true};

export const span = () => view.to - view.from;
export const passDur = () => Math.max(1, pass().dur_ns);
export const MIN_SPAN = 200; // ns

export function setView(from, to) {
	const width = Math.max(MIN_SPAN, Math.min(passDur() * 1.02, to - from));
	const slack = width * 0.5;
	const mid = (from + to) / 2;
	from = Math.max(-slack, Math.min(passDur() + slack - width, mid - width / 2));
	view.from = from;
	view.to = from + width;
	emit("view");
}

export function fitView() {
	setView(0, passDur());
}

let flight = 0;
// Glide to a part, unless the reader prefers stillness.
export function flyTo(from, to) {
	cancelAnimationFrame(flight);
	if (matchMedia("(prefers-reduced-motion: reduce)").matches) return setView(from, to);
	const a = {...view},
		t0 = performance.now();
	const step = now => {
		const t = Math.min(1, Math.max(0, now - t0) / 220),
			e = 1 - Math.pow(1 - t, 3);
		const width = Math.exp(
			Math.log(a.to - a.from) * (1 - e) + Math.log(Math.max(MIN_SPAN, to - from)) * e,
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
	const room = Math.max((to - from) * 0.6, 2000);
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
	[from, to] = [from, to].map(t =>
		t === null ? null : Math.max(0, Math.min(passDur(), Math.round(t))),
	);
	range =
		from === null || to === from ? null : {from: Math.min(from, to), to: Math.max(from, to)};
	emit("range");
}

export function setThreadHits(test) {
	threadHits = test;
}

// Threads in the order of the timeline: by the wait that they had and that they caused.
export function rowsThreads() {
	return timelineOrder().filter(i => (!only || only.has(i)) && (!threadHits || threadHits(i)));
}

export function setOnly(threads) {
	only = threads && threads.length ? new Set(threads) : null;
	$("filter-clear").hidden = !only;
	emit("filter");
}

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
	const what = {gil: "GIL recording", stacks: "Stack recording"};
	const draw = () =>
		fill(
			box,
			meta.passes.map((p, i) =>
				h(
					"button",
					{
						"aria-pressed": String(i === passIndex),
						onclick: () => setPass(i),
						title: meta.one_run
							? "Two recordings of one run"
							: "Two runs of the program: they are never mixed",
					},
					what[p.name] || p.name,
				),
			),
		);
	on("pass", draw);
	draw();
}

// SPDX-License-Identifier: MIT
// "Look here first": the holds that caused the most waiting, with thread, function, time and
// duration.

import {gilKnown, gilText, isThread, meta, pass, switchInterval, threadLabel} from "./data.js";
import {$, fill, h, soft} from "./dom.js";
import {emit} from "./events.js";
import {fmtAt, fmtDur, plural} from "./format.js";
import {laneTotals} from "./lod.js";
import {max, min} from "./math.js";
import {holdDoing, doingText, noName, pinLane, waitersIn} from "./pick.js";
import {RUNNABLE_STATE} from "./states.js";
import {loading, store} from "./store.js";
import {goToPin} from "./table.js";
import {threadColor} from "./theme.js";
import {gilOf} from "./tracks.js";
import {passDur} from "./view.js";

const MOMENTS = 3;
export let moments = [];

// Until the lanes have been read: the longest single overlaps of the blame table.
function momentsEarly() {
	const best = new Map();
	for (const b of pass().blame) {
		if (!isThread(b.holder) || !(b.longest_ns > 0)) continue;
		const old = best.get(b.holder);
		if (!old || b.longest_ns > old.to - old.from)
			best.set(b.holder, {
				thread: b.holder,
				from: b.longest_at_ns,
				to: b.longest_at_ns + b.longest_ns,
				caused: b.longest_ns,
				waiters: 0, // at least one, but not counted yet
				what: null,
			});
	}
	return [...best.values()];
}

// When the lanes have been read: holds, by the wait that they caused.
function momentsExact() {
	const out = [];
	store().gil.forEach((lane, thread) => {
		for (const s of lane.sections)
			for (const i of s.topHolds.subarray(0, 40))
				out.push({
					thread,
					from: s.start[i],
					to: s.start[i + 1],
					gil: gilOf(s, i),
					stack: s.stack ? s.stack[i] : 0,
				});
	});
	out.sort((a, b) => b.to - b.from - (a.to - a.from));
	out.length = min(out.length, 60);
	for (const m of out) {
		const w = waitersIn(m.from, m.to, m.gil, m.thread);
		m.waiters = w.length;
		m.caused = w.reduce((sum, x) => sum + x.ns, 0);
	}
	return out.filter(m => m.caused > 0);
}

// How long the holder had no CPU, and so could neither run nor release the GIL.
function runnableIn(m) {
	const lane = store().cpu[m.thread];
	return lane ? laneTotals(lane, m.from, m.to)[RUNNABLE_STATE] : 0;
}

export function momentsDraw() {
	if (!gilKnown()) {
		moments = [];
		$("moments").hidden = true;
		return;
	}
	const list = loading.complete && store().gil.length ? momentsExact() : momentsEarly();
	list.sort((a, b) => b.caused - a.caused || a.from - b.from);
	moments = [];
	const ordinary = m => m.to - m.from < 2 * meta.switch_interval_ns;
	// Holds of ordinary length are left out if there are real hogs, or if they caused less than a
	// millisecond of waiting.
	for (const m of list)
		if (
			moments.length < MOMENTS &&
			m.to - m.from >= 100e3 &&
			!(ordinary(m) && (moments.length || m.caused < 1e6))
		)
			moments.push(m);
	if (loading.complete)
		for (const m of moments) {
			m.what = holdDoing(m.thread, m.from, m.to, m.stack);
			m.runnable = runnableIn(m);
		}
	$("moments").hidden = !moments.length;
	$("moments-h").textContent =
		moments.length === 1 && ordinary(moments[0])
			? gilText("The hold that made others wait longest", "The longest stop of the others")
			: "Look here first";
	fill(
		$("moments-list"),
		moments.map((m, i) => {
			const d = m.to - m.from,
				long = !ordinary(m);
			return h(
				"li",
				h(
					"button.moment",
					{
						onclick: () => goToPin(pinLane("gil", m.thread, (m.from + m.to) / 2)),
					},
					h("span.n", {"aria-hidden": "true"}, String(i + 1)),
					h(
						"span.what",
						h(
							"b",
							h("i.dot", {style: "background:" + threadColor(m.thread)}),
							threadLabel(m.thread),
						),
						gilText(" held the GIL for ", " stopped the others for "),
						h("b.big", fmtDur(d)),
						" at ",
						h("b", fmtAt(m.from, max(1e6, passDur() / 1000))),
						m.what
							? [" in ", doingText(m.what)]
							: loading.complete && soft(" in an unknown function"),
					),
					soft(
						(m.waiters ? plural(m.waiters, "thread") : "Others") +
							gilText(" waited", " stood") +
							(m.waiters > 1 ? ", " + fmtDur(m.caused) + " in all" : "") +
							(m.runnable * 10 >= d
								? ". The holder had no CPU for " + fmtDur(m.runnable) + " of it"
								: "") +
							(m.what || !loading.complete ? "" : ". " + noName()) +
							(long || d < meta.switch_interval_ns || pass().locks
								? ""
								: ". Near the switch interval, when Python asks for a release: " +
									switchInterval),
					),
				),
			);
		}),
	);
	emit("moments");
}

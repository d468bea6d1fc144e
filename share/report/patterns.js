// SPDX-License-Identifier: MIT
// The patterns that the report detected, each kind once, with its longest moment.

import {meta, pass, passIndex, report} from "./data.js";
import {$, fill, h} from "./dom.js";
import {fmtAt} from "./format.js";
import {lanePin} from "./pick.js";
import {loading, store} from "./store.js";
import {goToPin, jumpTo} from "./table.js";

export function patternsDraw() {
	const all = pass().locks || passIndex !== (meta.main_pass || 0) ? [] : report.patterns || [],
		seen = new Set();
	const list = all.filter(
		p => p.code !== "hog" && (!p.code || !seen.has(p.code)) && seen.add(p.code),
	);
	$("patterns").hidden = !list.length;
	fill(
		$("patterns"),
		list.map(p => {
			const more = all.filter(q => q.code === p.code).length - 1;
			const pin = loading.complete && longestOf(p);
			return h(
				"div.pattern",
				h("b", (p.title || p.code || "") + ": "),
				p.text || "",
				p.code && more ? " (and " + more + " more like it)" : "",
				pin
					? [
							" ",
							jumpTo(
								"See the longest" +
									(pin.to - pin.from === p.longest_ns ? "" : " wait") +
									", at " +
									fmtAt(pin.from, 1e6),
								() => goToPin(pin),
							),
						]
					: null,
				p.advice ? h("p", p.advice) : null,
			);
		}),
	);
}

// The span of the pattern's thread that is exactly as long as the pattern's longest one. If there
// is none, as when two threads pass the GIL to each other, the thread's longest wait.
function longestOf(p) {
	const thread = pass().threads.findIndex(t => t.tid === p.tid),
		lane = store().gil[thread];
	let best = null;
	for (const [k, s] of lane ? lane.sections.entries() : [])
		for (const key of ["topWaits", "topHolds"])
			for (const i of s[key]) {
				const pin = lanePin("gil", thread, {s, k, i}),
					ns = pin.to - pin.from;
				if (ns === p.longest_ns) return pin;
				if (key === "topWaits" && !(best && best.to - best.from >= ns)) best = pin;
			}
	return best;
}

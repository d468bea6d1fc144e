// SPDX-License-Identifier: MIT
// Histogram of the lengths of waits, on a logarithmic scale. The height of a bar is the total time
// of its waits. Lines mark the switch interval, the length above which half of the time was waited,
// and quantiles of the waits.

import {meta, pass, switchInterval} from "./data.js";
import {$, fill, h, svg} from "./dom.js";
import {fmtDur} from "./format.js";
import {floor, max, min} from "./math.js";
import {HIST_SUB} from "./states.js";
import {store} from "./store.js";
import {noWait} from "./table.js";
import * as words from "./words.js";

// A quantile of the waits. It cannot exceed the longest wait, which is known exactly.
function quantile(hist, q) {
	let n = 0,
		want = 0;
	const most = pass().threads.reduce((m, t) => max(m, t.longest_wait_ns), 0);
	for (const c of hist) want += c;
	want *= q;
	for (let b = 0; b < hist.length; b++) {
		n += hist[b];
		if (n >= want && n > 0) return min(most, midOf(b));
	}
	return 0;
}

const midOf = b => Math.pow(2, (b + 0.5) / HIST_SUB);

export function histogramDraw() {
	const counts = store().hist,
		hist = counts.map((c, b) => c * midOf(b));
	const total = counts.reduce((a, b) => a + b, 0);
	const box = $("histogram-body");
	if (!total) return fill(box, noWait());
	const group = 8,
		bars = [];
	let first = hist.findIndex(c => c > 0),
		last = hist.length - 1;
	while (!hist[last]) last--;
	const si = Math.log2(meta.switch_interval_ns) * HIST_SUB;
	first = floor(min(first, si - 2 * HIST_SUB) / group) * group;
	last = Math.ceil((max(last, si + HIST_SUB) + 1) / group) * group;
	for (let b = first; b < last; b += group) {
		let c = 0;
		for (let i = b; i < b + group; i++) c += hist[i] || 0;
		bars.push(c);
	}
	const W = max(260, min(1000, box.clientWidth)),
		H = 228,
		L = 54,
		B = 30,
		T = 52,
		most = max(...bars);
	const x = b => L + ((b - first) / (last - first)) * (W - L - 12);
	const y = c => H - B - (c ? max(2, (c / most) * (H - B - T)) : 0);
	const parts = [];
	bars.forEach((c, i) => {
		if (c)
			parts.push(
				svg(
					"rect",
					{
						x: x(first + i * group) + 0.5,
						y: y(c),
						width: max(1, x(first + group) - L - 1),
						height: H - B - y(c),
						class: "hbar",
					},
					svg(
						"title",
						{},
						words.histogramBar(
							fmtDur(c),
							fmtDur(Math.pow(2, (first + i * group) / HIST_SUB)),
							fmtDur(Math.pow(2, (first + (i + 1) * group) / HIST_SUB)),
						),
					),
				),
			);
	});
	for (let e = 0, before = -50; e <= 12; e++) {
		const b = Math.log2(Math.pow(10, e)) * HIST_SUB;
		if (b >= first && b <= last && x(b) - before >= 50 && (before = x(b)))
			parts.push(
				svg("line", {x1: x(b), x2: x(b), y1: H - B, y2: H - B + 5, class: "haxis"}),
				svg(
					"text",
					{x: x(b), y: H - 9, "text-anchor": "middle"},
					fmtDur(Math.pow(10, e)).replace(".00", "").replace(".0", ""),
				),
			);
	}
	parts.push(
		svg("line", {x1: L, x2: W - 12, y1: H - B, y2: H - B, class: "haxis"}),
		svg("text", {x: L - 6, y: T + 8, "text-anchor": "end"}, fmtDur(most)),
		svg("text", {x: L - 6, y: H - B, "text-anchor": "end"}, "0"),
	);
	const half = quantile(hist, 0.5);
	const [p50, p95, p99] = [0.5, 0.95, 0.99].map(q => quantile(counts, q));
	/** @type {[string, number][]} */
	const marked = [
		[words.halfTheTime, half],
		["p50", p50],
		["p99", p99],
	];
	if (!pass().locks) marked.push([words.switchInterval, meta.switch_interval_ns]);
	// Each label has its own line.
	marked.forEach(([name, ns], i) => {
		const at = x(Math.log2(ns) * HIST_SUB),
			own = i === 3,
			left = at > W / 2;
		parts.push(
			svg("line", {x1: at, x2: at, y1: i * 12 + 6, y2: H - B, class: own ? "hsi" : "hq"}),
			svg(
				"text",
				{
					x: at + (left ? -4 : 4),
					y: 10 + i * 12,
					"text-anchor": left ? "end" : "start",
					class: own ? "hsit" : "hqt",
				},
				name + " " + (own ? switchInterval : fmtDur(ns)),
			),
		);
	});
	const summary = words.histogramText(total, fmtDur(half), fmtDur(p50), fmtDur(p95), fmtDur(p99));
	fill(
		box,
		h("p.hint", summary + words.histogramError),
		svg(
			"svg",
			{
				viewBox: "0 0 " + W + " " + H,
				width: W,
				height: H,
				role: "img",
				"aria-label": summary,
				class: "hist",
			},
			parts,
		),
	);
}

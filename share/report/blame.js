// SPDX-License-Identifier: MIT
// The blame matrix: a row for each holder, a column for each waiter, in the cells the wait that is
// charged. If there are many threads, rows and columns are crowds.

import {asleepDraw, hardlyWaits} from "./asleep.js";
import {crowdAt, crowdLabel, crowdOf, crowds} from "./crowds.js";
import {crowdTag} from "./crowdtag.js";
import {
	CANNOT_TELL,
	HANDOVER,
	LEFT_OUT,
	gilText,
	isThread,
	pass,
	threadLabel,
	threadShort,
} from "./data.js";
import {$, fill, h, rove, stepInTable, toward} from "./dom.js";
import {NAME_FIT, fmtDur, fmtExact, shorten} from "./format.js";
import {max} from "./math.js";
import {pinLane} from "./pick.js";
import {copyButtons, noWait} from "./table.js";
import {threadColor} from "./theme.js";
import {flyToSpan, passDur, setOnly, setPin} from "./view.js";
import * as words from "./words.js";

const MATRIX_MAX = 5;
export const blameTitle = () => gilText(words.blameTitle);

export const holderName = (i, pairs) =>
	i === HANDOVER
		? words.nobody
		: i === CANNOT_TELL
			? gilText(words.cannotTell)
			: i === LEFT_OUT
				? words.others
				: pairs
					? crowdLabel(crowdOf(i))
					: threadLabel(i);
const blameColumns = [
	{csv: "holder", value: b => holderName(b.holder, b.pairs)},
	{csv: "waiter", value: b => holderName(b.waiter, b.pairs)},
	{csv: "wait_ns", value: b => b.wait_ns},
	{csv: "longest_ns", value: b => b.longest_ns},
	{csv: "pairs", value: b => b.pairs || 1},
];

export function blameDraw() {
	if (hardlyWaits()) return asleepDraw();
	fill($("blame-h"), blameTitle());
	fill(
		$("blame-hint"),
		gilText(words.blameHint)(text => h("b", text)),
	);
	const all = crowds();
	const leftOut = pass().blame.reduce((n, b) => n + (b.holder === LEFT_OUT ? b.pairs : 0), 0);
	const sum = new Map(),
		caused = new Map(),
		waited = new Map();
	const add = (map, key, ns) => map.set(key, (map.get(key) || 0) + ns);
	const rank = map => [...map.keys()].filter(k => all[k]).sort((a, b) => map.get(b) - map.get(a));
	const blame = pass()
		.blame.filter(b => b.wait_ns > 0)
		.map(b => ({
			...b,
			row: isThread(b.holder) ? crowdAt(b.holder) : b.holder,
			column: crowdAt(b.waiter),
		}));
	for (const b of blame) {
		add(caused, b.row, b.wait_ns);
		add(waited, b.column, b.wait_ns);
	}
	// Threads without a row or column of their own share the last one.
	const fold = map => {
		const list = rank(map);
		return list.length <= MATRIX_MAX + 1 ? list : list.slice(0, MATRIX_MAX).concat("rest");
	};
	const rows = fold(caused),
		columns = fold(waited);
	for (const b of blame)
		add(
			sum,
			[
				all[b.row] && !rows.includes(b.row) ? "rest" : b.row,
				columns.includes(b.column) ? b.column : "rest",
			].join(),
			b.wait_ns,
		);
	if (!sum.size) return fill($("blame-body"), noWait());
	const most = max(...sum.values(), passDur() / 50); // hardly any wait has a pale colour
	const cell = (row, column) => {
		const ns = sum.get([row, column].join()) || 0;
		if (!ns) return h("td.num.zero", row === column ? "" : "0");
		return h(
			"td.num.heat",
			{style: "--heat:" + (ns / most).toFixed(3)},
			row === "rest" || row === LEFT_OUT || column === "rest"
				? h("span", {title: fmtExact(ns)}, fmtDur(ns))
				: h(
						"button",
						{
							title: fmtExact(ns),
							onclick: () =>
								pickBlame(blame.filter(b => b.row === row && b.column === column)),
							"data-ns": ns,
						},
						fmtDur(ns),
					),
		);
	};
	const others = (list, map) => words.otherRows(rank(map).length - list.length + 1);
	const head = k =>
		k === "rest"
			? h("th", {scope: "col"}, h("span.clip", others(columns, waited)))
			: h(
					"th",
					{scope: "col", title: crowdLabel(all[k])},
					h(
						"span.clip",
						h("i.dot", {
							style: "background:" + threadColor(all[k].threads[0]),
						}),
						all[k].name
							? shorten(all[k].name, 9) + " ×" + all[k].threads.length
							: threadShort(all[k].threads[0]),
					),
				);
	const line = (row, name, ns, kind) =>
		h(
			"tr",
			{class: kind},
			name,
			h("td.num.sum", fmtDur(ns)),
			columns.map(c => cell(row, c)),
		);
	const body = rows.map(k =>
		k === "rest"
			? line(
					k,
					h("th", {scope: "row"}, others(rows, caused)),
					rank(caused)
						.slice(MATRIX_MAX)
						.reduce((n, q) => n + caused.get(q), 0),
				)
			: line(
					k,
					h(
						"th",
						{scope: "row"},
						crowdTag(all[k], columns.length > 4 ? (all[k].name ? 8 : 11) : NAME_FIT),
					),
					caused.get(k),
				),
	);
	for (const [who, text, title] of [
		[HANDOVER, words.nobody, gilText(words.handOffRow)],
		[CANNOT_TELL, gilText(words.cannotTell), gilText(words.unknownRow)],
		[LEFT_OUT, words.leftOutRow(leftOut), words.leftOutTitle],
	])
		if (caused.has(who))
			body.push(line(who, h("th", {scope: "row", title}, text), caused.get(who), "handover"));
	const switched = pass().threads.reduce((n, t) => n + (t.switch_wait_ns || 0), 0),
		charged = blame.reduce((n, b) => n + b.wait_ns, 0);
	fill(
		$("blame-body"),
		h(
			columns.length > 4 ? "table.matrix.tall" : "table.matrix",
			h("caption.visually-hidden", gilText(words.matrixCaption)),
			h(
				"thead",
				h(
					"tr",
					h("td.corner", gilText(words.matrixCorner)),
					h("th", {scope: "col", class: "num"}, words.matrixCaused),
					columns.map(head),
				),
			),
			h("tbody", body),
		),
		h("p.under", copyButtons(blameColumns, blame)),
	);
	rove($("blame-body").querySelector("tbody"), stepInTable);
	$("blame-note").textContent =
		switched > 0.01 * charged && !pass().locks ? words.switchLeftOut(fmtDur(switched)) : "";
}

// Show the longest overlap of one's wait with the other's hold, and only these two threads.
function pickBlame(list) {
	const best = list.sort((a, b) => b.longest_ns - a.longest_ns)[0],
		{holder, waiter} = best;
	setOnly(isThread(holder) ? [holder, waiter] : [waiter]);
	if (best.longest_ns > 0) {
		setPin(pinLane("gil", waiter, best.longest_at_ns));
		flyToSpan(best.longest_at_ns, best.longest_at_ns + best.longest_ns);
	}
	toward("timeline");
}

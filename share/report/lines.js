// SPDX-License-Identifier: MIT
// The program's source, with bars of what each line held, caused and waited. C charges the times to
// the lines, and the report has the text of those that ran and of their neighbours.

import {meta, pass, passIndex, report} from "./data.js";
import {$, code, fill, h, listen, soft} from "./dom.js";
import {fmtDur} from "./format.js";
import {max} from "./math.js";
import {pinLane} from "./pick.js";
import {goToPin, jumpTo} from "./table.js";
import {loading} from "./store.js";
import * as words from "./words.js";

const AROUND = [-3, -2, -1, 0, 1, 2, 3]; // a line is shown if one of these is a line with times
const LINE_FILES = 6; // those that cost most are open at first
// On a small screen the rows are no table for CSS, so the roles are given.
const ROW = {role: "row"},
	ROWS = {role: "rowgroup"},
	COLUMN = {role: "columnheader", scope: "col"};

const lineCosts = l => l.caused_ns + l.waited_ns + l.lock_wait_ns + l.lock_caused_ns;

// [{file, cost, rows: [{line, text, indent, times}, …] by line}], most costs first
function filesOf(lines, source) {
	const files = new Map(),
		of = file => {
			if (!files.has(file)) files.set(file, {file, cost: 0, rows: new Map()});
			return files.get(file);
		};
	for (const l of lines) {
		const f = of(l.file || "?");
		f.cost += lineCosts(l);
		f.rows.set(l.line, {line: l.line, text: "", indent: 0, times: l});
	}
	for (const s of source) {
		const f = files.get(s.file);
		if (f && AROUND.some(by => f.rows.get(s.line + by)?.times))
			f.rows.set(s.line, {...s, times: f.rows.get(s.line)?.times});
	}
	return [...files.values()]
		.map(f => ({...f, rows: [...f.rows.values()].sort((a, b) => a.line - b.line)}))
		.sort((a, b) => b.cost - a.cost);
}

function goToLine(times) {
	const thread = pass().threads.findIndex(
		t => t.tid === times.tid && t.from_ns <= times.from_ns && times.from_ns < t.to_ns,
	);
	if (loading.complete) goToPin(pinLane("gil", thread, (times.from_ns + times.to_ns) / 2));
}

const lineCell = (times, key, most) =>
	h(
		"td.num",
		{role: "cell"},
		times?.[key]
			? [
					h("i.gauge", {style: "width:" + ((times[key] / most) * 100).toFixed(1) + "%"}),
					fmtDur(times[key]),
				]
			: "",
	);

function lineRow(r, last, columns, most) {
	const gap =
		last > 0 &&
		r.line > last + 1 &&
		h("tr.gap", ROW, h("td", {role: "cell", colspan: columns.length + 2}, "⋮"));
	return [
		gap,
		h(
			"tr",
			{...ROW, class: r.times ? "hot" : "cold"},
			h(
				"th",
				{role: "rowheader", scope: "row"},
				r.times ? jumpTo(String(r.line), () => goToLine(r.times)) : r.line,
			),
			columns.map(c => lineCell(r.times, c, most)),
			h(
				"td.src",
				{role: "cell"},
				r.text
					? code("\u00a0".repeat(r.indent) + r.text)
					: soft(r.times?.function || "", words.sourceMissing),
			),
		),
	];
}

function linesTable(f, columns, most) {
	return h(
		"table.lines",
		{role: "table"},
		h("caption.visually-hidden", words.linesOf(f.file)),
		h(
			"thead",
			ROWS,
			h(
				"tr",
				ROW,
				h("th", COLUMN, words.line),
				columns.map(key =>
					h(
						"th.num",
						{...COLUMN, title: words.lineColumns[key][1]},
						words.lineColumns[key][0],
					),
				),
				h("th.src", COLUMN, words.source),
			),
		),
		h(
			"tbody",
			ROWS,
			f.rows.map((r, i) => lineRow(r, i && f.rows[i - 1].line, columns, most)),
		),
	);
}

// The table of a file is made when it is opened.
function fileDetails(f, open, columns, most) {
	const el = h(
			"details",
			{open},
			h(
				"summary",
				h("b", f.file.replace(/^.*\//, "")),
				" ",
				soft(f.file),
				" ",
				fmtDur(f.cost),
			),
		),
		make = () => {
			if (!el.open || el.children.length > 1) return;
			el.append(
				h(
					"div.scroll",
					{tabindex: "0", role: "group", "aria-label": words.linesOf(f.file)},
					linesTable(f, columns, most),
				),
			);
		};
	make();
	listen(el, "toggle", make);
	return el;
}

export function linesDraw() {
	const lines = report.lines || [];
	$("lines").hidden = !lines.length || pass().locks || passIndex !== (meta.main_pass || 0);
	if ($("lines").hidden || $("lines-body").firstChild) return;
	const files = filesOf(lines, meta.source || []),
		columns = Object.keys(words.lineColumns).filter(key => lines.some(l => l[key] > 0)),
		most = lines.reduce((n, l) => max(n, ...columns.map(key => l[key])), 1),
		left = (report.shortened?.lines ?? lines.length) - lines.length;
	fill(
		$("lines-body"),
		files.map((f, i) =>
			fileDetails(f, i < LINE_FILES && f.cost * 20 >= files[0].cost, columns, most),
		),
		left > 0 && soft(words.linesLeft(left)),
	);
	fill(
		$("lines-hint"),
		columns.map(key => [
			h("b", words.lineColumns[key][0]),
			": " + words.lineColumns[key][1] + ". ",
		]),
		words.lineHint,
	);
}

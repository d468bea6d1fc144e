// SPDX-License-Identifier: MIT
// Accessible tables with caption, scope and aria-sort, which are sorted by their headings and
// copied as CSV.

import {gilText, threadLabel} from "./data.js";
import {code, copyText, fill, h, listen, rove, soft, stepInTable, toward} from "./dom.js";
import {emit} from "./events.js";
import {NAME_FIT, fmtDur, fmtPct, shorten} from "./format.js";
import {seeTimeline, tl, tlBox, unhide} from "./layout.js";
import {max, min} from "./math.js";
import {notKnown} from "./pick.js";
import {nameHash, threadColor} from "./theme.js";
import {flyToSpan, setPin} from "./view.js";
import * as words from "./words.js";

// The order of the tables that the reader has sorted, by name: {sort, up}.
export const sorts = new Map();

/**
 * @template R
 * @param {TableColumn<R>[]} columns
 * @param {R[]} rows
 * @param {TableOptions<R>} options
 */
export function makeTable(columns, rows, options) {
	const key = nameHash(options.caption).toString(36),
		own = sorts.get(key) || {sort: options.sort ?? 0, up: !!options.up};
	let sort = min(own.sort, columns.length - 1),
		{up} = own,
		all = false;
	const body = h("tbody");
	const heads = columns.map((col, i) => {
		const button = h(
			"button.sort",
			{
				title: col.title,
				onclick: () => {
					up = sort === i ? !up : !col.num;
					sort = i;
					sorts.set(key, {sort, up});
					emit("link");
					draw();
				},
			},
			col.head,
		);
		return h(
			"th",
			{scope: "col", class: col.num ? "num" : null},
			col.head ? button : h("span.visually-hidden", col.title),
		);
	});
	const table = h(
		"table",
		h(
			"caption",
			{class: options.hideCaption ? "visually-hidden" : null},
			options.caption,
			options.note,
		),
		h("thead", h("tr", heads)),
		body,
	);
	const more = h(
		"button.more",
		{
			onclick: () => {
				all = true;
				draw();
			},
		},
		"",
	);
	function draw() {
		const value = columns[sort].value;
		const sorted = rows.slice().sort((a, b) => {
			const x = value(a),
				y = value(b);
			const c =
				typeof x === "number" && typeof y === "number"
					? x - y
					: String(x).localeCompare(String(y));
			return up ? c : -c;
		});
		const limit = all ? sorted.length : options.limit || sorted.length;
		fill(
			body,
			sorted.slice(0, limit).map(row => {
				const tr = h(
					"tr",
					options.attrs ? options.attrs(row) : {},
					columns.map((col, i) => {
						const cell = col.cell ? col.cell(row) : String(col.value(row));
						return h(
							i === 0 ? "th" : "td",
							{
								scope: i === 0 ? "row" : null,
								class: col.num ? "num" : col.wide ? "wide" : null,
							},
							cell,
						);
					}),
				);
				if (options.onrow) {
					tr.classList.add("jump");
					listen(tr, "click", e => {
						if (!e.target.closest("button,a,input")) options.onrow(row);
					});
				}
				return tr;
			}),
		);
		heads.forEach(
			(th, i) =>
				columns[i].head &&
				th.setAttribute(
					"aria-sort",
					i === sort ? (up ? "ascending" : "descending") : "none",
				),
		);
		rove(body, stepInTable);
		more.hidden = limit >= sorted.length;
		more.textContent = words.showAll(sorted.length);
	}
	draw();
	return h("div.table", table, h("p.under", more, copyButtons(columns, rows)));
}

// The table as text, for files and for pasting into a spreadsheet.
export const copyButtons = (columns, rows) =>
	[
		[words.copyCsv, ","],
		[words.copyTsv, "\t"],
	].map(([text, comma]) => {
		const button = h(
			"button.more",
			{
				onclick: () => {
					copyText(tableText(columns, rows, comma));
					button.textContent = words.copied;
					setTimeout(() => {
						button.textContent = text;
					}, 1500);
				},
			},
			text,
		);
		return button;
	});

// Make sure that a spreadsheet does not take a name for a formula.
export function csvField(v) {
	let s = String(v);
	if (/^[=+\-@\t\r]/.test(s) && typeof v !== "number") s = "'" + s;
	return /[",\n\r\t]/.test(s) ? '"' + s.replace(/"/g, '""') + '"' : s;
}

const tableText = (columns, rows, comma) =>
	[columns.map(c => csvField(c.csv || c.head)).join(comma)]
		.concat(rows.map(r => columns.map(c => csvField(c.value(r))).join(comma)))
		.join("\n") + "\n";

// A button with a thread's name and colour, which shows the thread in the timeline.
export const threadTag = (index, most = NAME_FIT) =>
	h(
		"button.thread",
		{
			title: words.showInTimeline(threadLabel(index)),
			onclick: () => showThread(index),
		},
		h("i.dot", {style: "background:" + threadColor(index)}),
		shorten(threadLabel(index), most),
	);

// Frames, innermost first: {name, place, kernel, dur}.
export const stackList = frames =>
	h(
		"ol.stack",
		frames.map(f =>
			h(
				"li",
				h("code", {class: f.kernel ? "kernel" : null}, f.name),
				f.place ? soft(" " + f.place) : null,
				f.dur ? soft(" · " + fmtDur(f.dur)) : null,
			),
		),
	);

// A column of threads, a column of the functions that ran, and texts for empty tables.
export const whoColumn = (of, head = words.thread, csv = head) => ({
	head,
	csv,
	value: r => threadLabel(of(r)),
	cell: r => threadTag(of(r)),
});
export const ranColumn = head => ({
	head,
	csv: "function",
	value: r => (r.what ? r.what.name : ""),
	cell: r => (r.what ? code(r.what.name, r.what.name + " " + r.what.place) : notKnown()),
});
export const empty = text => h("p.empty", text);
export const noWait = () => empty(gilText(words.noWait));

export function showThread(index) {
	unhide(index);
	const row = tl.rows.find(r => (r.head || r.kind === "thin") && r.thread === index);
	if (row) tlBox.scrollTop = max(0, row.top - tl.top - 30);
	toward("timeline");
}

// A button that leads to a moment.
export const jumpTo = (text, go) => h("button.link", {onclick: go}, text);

/** @type {(pin: Pin | null) => void} */
export function goToPin(pin) {
	if (!pin) return;
	unhide(pin.thread);
	setPin(pin);
	flyToSpan(pin.from, pin.to);
	seeTimeline();
}

// A list item for a part of a time, with the thread or program that it is charged to.
export const shareItem = (ns, total, color, who, after) =>
	h(
		"li",
		h("i.meter", {
			style: "--w:" + min(100, (ns / total) * 100).toFixed(2) + "%;--c:" + color,
		}),
		who,
		h("span.num", fmtDur(ns)),
		h("span.num.soft", fmtPct(ns, total)),
		after || null,
	);

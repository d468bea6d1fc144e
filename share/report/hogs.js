// SPDX-License-Identifier: MIT
// Functions that keep the GIL, and the places where threads are blocked.

import {meta, pass, passIndex, report, switchInterval} from "./data.js";
import {$, code, fill, h, soft, tally} from "./dom.js";
import {baseName, fmtCount, fmtDur} from "./format.js";
import {noName, notKnown, pinLane} from "./pick.js";
import {goToPin, jumpTo, makeTable, threadTag} from "./table.js";
import * as words from "./words.js";

const rowPlace = r => (r.file || "") + (r.line ? ":" + r.line : "");
const rowThread = r => pass().threads.findIndex(t => t.tid === r.tid);

// Sum up the document's rows by function, across threads.
function byFunction(rows) {
	const by = new Map();
	for (const r of rows) {
		const key = [r.function || r.native, r.file].join("\0"),
			old = r.function ? by.get(key) : null;
		if (!old) {
			by.set(r.function ? key : r, {...r, tids: [r.tid]});
			continue;
		}
		old.tids.push(r.tid);
		if (r.longest_hold_ns > old.longest_hold_ns)
			Object.assign(old, {
				longest_hold_ns: r.longest_hold_ns,
				longest_hold_at_ns: r.longest_hold_at_ns,
				tid: r.tid,
			});
		old.native = old.native || r.native;
		for (const k of ["wait_caused_ns", "holds", "hold_ns", "held_off_cpu_ns", "gain_ns"])
			old[k] =
				k === "gain_ns" && !(Number.isFinite(r[k]) && Number.isFinite(old[k]))
					? null
					: (old[k] || 0) + (r[k] || 0);
	}
	return [...by.values()];
}

// The caller, if it is informative: in another file, and not a function of the library that starts
// or feeds all threads.
const telling = r =>
	r.caller &&
	r.caller.function &&
	r.caller.file !== r.file &&
	!/\/lib\/python.*\/(threading\.py|runpy\.py|concurrent\/|multiprocessing\/|asyncio\/)/.test(
		r.caller.file,
	)
		? r.caller
		: null;

// The places where threads are blocked, or block others, without a GIL.
function blockedTable() {
	const rows = report.blocked || [];
	return rows.length
		? makeTable(
				[
					{
						head: words.functionHead,
						csv: "function",
						value: r => r.function || "?",
						cell: r => [
							code(r.function || "?", rowPlace(r)),
							r.file ? soft(" " + baseName(rowPlace(r))) : null,
						],
					},
					{head: words.what, csv: "what", value: words.blockedBy},
					tally(
						words.times,
						"count",
						r => r.count,
						r => fmtCount(r.count),
					),
					tally(
						words.time,
						"total_ns",
						r => r.total_ns,
						r => fmtDur(r.total_ns),
					),
					tally(
						words.longest,
						"longest_ns",
						r => r.longest_ns,
						r => fmtDur(r.longest_ns),
					),
				],
				rows,
				{
					caption: words.whereBlocked,
					hideCaption: !(report.functions || []).length,
					sort: 3,
					limit: 15,
				},
			)
		: null;
}

function hogColumns(rows, late) {
	const off = r => r.held_off_cpu_ns || 0;
	const columns = [
		{
			head: late ? words.functionHead : words.heldUntil,
			csv: "function",
			value: r => r.function || r.native || "?",
			cell: r => [
				r.function || r.native ? code(r.function || r.native, rowPlace(r)) : notKnown(),
				r.file ? soft(" " + baseName(rowPlace(r))) : null,
				r.native && r.function ? [words.beforePlace, code(r.native)] : null,
				telling(r)
					? h(
							"div.soft",
							{title: rowPlace(r.caller)},
							words.calledBefore,
							code(r.caller.function),
							r.caller.file ? " (" + baseName(rowPlace(r.caller)) + ")" : "",
						)
					: null,
			],
		},
		{
			head: words.thread,
			csv: "tid",
			value: r => r.tids.join(" "),
			cell: r =>
				r.tids.length > 1
					? words.threads(r.tids.length)
					: rowThread(r) < 0
						? words.tid(r.tid)
						: threadTag(rowThread(r)),
		},
		tally(
			words.waitCaused,
			"wait_caused_ns",
			r => r.wait_caused_ns,
			r => fmtDur(r.wait_caused_ns),
		),
		tally(
			words.holds,
			"holds",
			r => r.holds,
			r => fmtCount(r.holds),
		),
		tally(
			words.held,
			"hold_ns",
			r => r.hold_ns,
			r => fmtDur(r.hold_ns),
		),
		tally(
			words.longest,
			"longest_hold_ns",
			r => r.longest_hold_ns,
			r =>
				Number.isFinite(r.longest_hold_at_ns)
					? jumpTo(fmtDur(r.longest_hold_ns), () =>
							goToPin(pinLane("gil", rowThread(r), r.longest_hold_at_ns)),
						)
					: fmtDur(r.longest_hold_ns),
		),
	];
	if (rows.some(off))
		columns.push(
			tally(
				words.offCpu,
				"held_off_cpu_ns",
				off,
				r => (off(r) ? fmtDur(off(r)) : "–"),
				words.offCpuHelp,
			),
		);
	if (rows.some(r => Number.isFinite(r.gain_ns)))
		columns.push(
			tally(
				words.wouldSave,
				"gain_ns",
				r => r.gain_ns || 0,
				r => (Number.isFinite(r.gain_ns) ? fmtDur(r.gain_ns) : "?"),
				words.wouldSaveHelp,
			),
		);
	return columns;
}

const waitCaused = rows => rows.reduce((n, r) => n + r.wait_caused_ns, 0);

const functionsTable = (rows, late, caption) =>
	makeTable(hogColumns(rows, late), rows, {
		caption,
		hideCaption: true,
		sort: 2,
		limit: 15,
	});

// Draw the calls that kept the GIL after a release request and all functions that held it while
// others waited or, without a GIL, the places where threads are blocked. The rows come from the
// document, and so from the main recording.
export function hogsDraw() {
	const rowsOf = key => (pass().locks ? [] : byFunction(report[key] || []));
	const hogs = rowsOf("hogs"),
		all = rowsOf("functions").filter(r => r.function),
		blocked = blockedTable();
	const unnamed = waitCaused(rowsOf("functions").filter(r => !r.function));
	const nearlyAll = (waitCaused(all) / 100) * meta.nearly_all_percent;
	const holders = waitCaused(hogs) >= nearlyAll && hogs.length ? [] : all;
	const heading = words.functionsHeld;
	$("hogs").hidden =
		!(hogs.length || holders.length || blocked) || passIndex !== (meta.main_pass || 0);
	fill(
		$("hogs-h"),
		hogs.length ? words.hogs : holders.length || !blocked ? heading : words.whereBlocked,
	);
	$("hogs-hint").textContent = hogs.length
		? words.hogsHint(
				switchInterval,
				hogs.some(r => Number.isFinite(r.gain_ns)),
			)
		: holders.length || !blocked
			? meta.holders_hint
			: words.blockedHint;
	fill(
		$("hogs-body"),
		hogs.length ? functionsTable(hogs, true, words.hogsCaption) : null,
		hogs.length && holders.length ? [h("h3", heading), h("p.hint", meta.holders_hint)] : null,
		holders.length ? functionsTable(holders, false, heading) : null,
		unnamed > 0.01 * waitCaused(all) &&
			h("p.hint", words.unknownLeftOut(fmtDur(unnamed), noName())),
		blocked,
	);
}

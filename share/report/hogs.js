// SPDX-License-Identifier: MIT
// Functions that keep the GIL, and the places where threads are blocked.

import {meta, pass, passIndex, report, switchInterval} from "./data.js";
import {$, code, fill, h, soft, tally} from "./dom.js";
import {baseName, fmtCount, fmtDur, plural} from "./format.js";
import {noName, notKnown, pinLane} from "./pick.js";
import {goToPin, jumpTo, makeTable, threadTag} from "./table.js";

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
	const what = r =>
		r.what === "lock"
			? /^_thread\./.test(r.of)
				? "waits for a " + r.of
				: r.of
					? "waits for the lock of a " + r.of + (r.name ? " (" + r.name + ")" : "")
					: "waits for a lock"
			: r.what === "spins"
				? "spins for " + (r.of ? "the lock of a " + r.of : "a lock")
				: r.what === "stopped"
					? "stopped by another thread"
					: "stops the others";
	return rows.length
		? makeTable(
				[
					{
						head: "Function",
						csv: "function",
						value: r => r.function || "?",
						cell: r => [
							code(r.function || "?", rowPlace(r)),
							r.file ? soft(" " + baseName(rowPlace(r))) : null,
						],
					},
					{head: "What", csv: "what", value: what},
					tally(
						"Times",
						"count",
						r => r.count,
						r => fmtCount(r.count),
					),
					tally(
						"Time",
						"total_ns",
						r => r.total_ns,
						r => fmtDur(r.total_ns),
					),
					tally(
						"Longest",
						"longest_ns",
						r => r.longest_ns,
						r => fmtDur(r.longest_ns),
					),
				],
				rows,
				{
					caption: "Where threads are blocked",
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
			head: late ? "Function" : "Held until",
			csv: "function",
			value: r => r.function || r.native || "?",
			cell: r => [
				r.function || r.native ? code(r.function || r.native, rowPlace(r)) : notKnown(),
				r.file ? soft(" " + baseName(rowPlace(r))) : null,
				r.native && r.function ? [" in ", code(r.native)] : null,
				telling(r)
					? h(
							"div.soft",
							{title: rowPlace(r.caller)},
							"called by ",
							code(r.caller.function),
							r.caller.file ? " (" + baseName(rowPlace(r.caller)) + ")" : "",
						)
					: null,
			],
		},
		{
			head: "Thread",
			csv: "tid",
			value: r => r.tids.join(" "),
			cell: r =>
				r.tids.length > 1
					? plural(r.tids.length, "thread")
					: rowThread(r) < 0
						? "tid " + r.tid
						: threadTag(rowThread(r)),
		},
		tally(
			"Wait caused",
			"wait_caused_ns",
			r => r.wait_caused_ns,
			r => fmtDur(r.wait_caused_ns),
		),
		tally(
			"Holds",
			"holds",
			r => r.holds,
			r => fmtCount(r.holds),
		),
		tally(
			"Held",
			"hold_ns",
			r => r.hold_ns,
			r => fmtDur(r.hold_ns),
		),
		tally(
			"Longest",
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
				"Off CPU",
				"held_off_cpu_ns",
				off,
				r => (off(r) ? fmtDur(off(r)) : "–"),
				"Held while the holder was off-CPU: asleep, or runnable without a CPU",
			),
		);
	if (rows.some(r => Number.isFinite(r.gain_ns)))
		columns.push(
			tally(
				"Would save",
				"gain_ns",
				r => r.gain_ns || 0,
				r => (Number.isFinite(r.gain_ns) ? fmtDur(r.gain_ns) : "?"),
				"Estimated wait saved if it released the GIL, see above",
			),
		);
	return columns;
}

const hogsHint = gains =>
	"Kept the GIL after a release request (Python asks after " +
	switchInterval +
	"): C code, or one long instruction." +
	(gains
		? " The wait that a release would save is an estimate: " +
			"the recording is replayed on its CPUs."
		: "");

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
	const heading = "Functions that held the GIL while others waited";
	$("hogs").hidden =
		!(hogs.length || holders.length || blocked) || passIndex !== (meta.main_pass || 0);
	fill(
		$("hogs-h"),
		hogs.length
			? "Calls that keep the GIL"
			: holders.length || !blocked
				? heading
				: "Where threads are blocked",
	);
	$("hogs-hint").textContent = hogs.length
		? hogsHint(hogs.some(r => Number.isFinite(r.gain_ns)))
		: holders.length || !blocked
			? meta.holders_hint
			: "All waits of a function are one row; the line is that of the longest.";
	fill(
		$("hogs-body"),
		hogs.length
			? functionsTable(hogs, true, "Calls that kept the GIL while others waited")
			: null,
		hogs.length && holders.length ? [h("h3", heading), h("p.hint", meta.holders_hint)] : null,
		holders.length ? functionsTable(holders, false, heading) : null,
		unnamed > 0.01 * waitCaused(all) &&
			h("p.hint", "Not included: " + fmtDur(unnamed) + " in unknown functions. " + noName()),
		blocked,
	);
}

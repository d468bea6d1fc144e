// SPDX-License-Identifier: MIT
// Tables of the longest waits and holds, and further facts about the recording.

import {gilName, gilText, meta, nobodyText, pass, report} from "./data.js";
import {longestIn} from "./details.js";
import {$, factsList, fill, h, soft, tally} from "./dom.js";
import {fmtAt, fmtCount, fmtDur, fmtExact, fmtPct, plural} from "./format.js";
import {max, min} from "./math.js";
import {holdDoing, holdersIn, lanePin, mainHolder, waitersIn} from "./pick.js";
import {HOLD_STATE} from "./states.js";
import {store} from "./store.js";
import {
	empty,
	goToPin,
	jumpTo,
	makeTable,
	noWait,
	ranColumn,
	threadTag,
	whoColumn,
} from "./table.js";

const LIST = 100;

function collectTop(key) {
	const out = [];
	store().gil.forEach((lane, thread) => {
		for (const [k, s] of lane.sections.entries())
			for (const i of s[key]) out.push(lanePin("gil", thread, {s, k, i}));
	});
	out.sort((a, b) => b.to - b.from - (a.to - a.from) || a.from - b.from);
	return out.slice(0, LIST);
}

export function waitsDraw() {
	const rows = collectTop("topWaits").map(p => {
		const who = holdersIn(p.from, p.to, p.gil, p.thread);
		const most = mainHolder(who, p.to - p.from);
		return {p, who, most, what: most && !most.crowd ? whatHeld(p, most.thread) : null};
	});
	const named = rows.some(r => r.what);
	fill(
		$("waits-body"),
		rows.length
			? makeTable(
					[
						tally(
							"Waited",
							"wait_ns",
							r => r.p.to - r.p.from,
							r => jumpTo(fmtDur(r.p.to - r.p.from), () => goToPin(r.p)),
						),
						whoColumn(r => r.p.thread),
						{
							head: gilText("Mostly for", "Mainly released by"),
							csv: "holder",
							value: r => r.most?.name || othersText(r),
							cell: r =>
								!r.most
									? soft(othersText(r))
									: r.most.crowd
										? r.most.name
										: threadTag(r.most.thread),
						},
						named && ranColumn("which ran"),
						tally(
							"At",
							"at_ns",
							r => r.p.from,
							r => fmtAt(r.p.from, 1e6),
						),
					].filter(Boolean),
					rows,
					{
						caption: gilText("The longest waits for the GIL", "The longest waits"),
						hideCaption: true,
						sort: 0,
						limit: 10,
						onrow: r => goToPin(r.p),
					},
				)
			: noWait(),
	);
}

// If nobody held the GIL for most of a wait.
const othersText = r =>
	r.who.nobody * 2 > r.p.to - r.p.from || !r.who.list.length
		? nobodyText()
		: plural(r.who.list.length, "thread");

// The function of the main holder's longest hold in this wait.
function whatHeld(p, holder) {
	const pin = longestIn(holder, p.from, p.to, [HOLD_STATE]);
	return pin ? holdDoing(pin.thread, max(pin.from, p.from), min(pin.to, p.to), pin.stack) : null;
}

export function holdsDraw() {
	const rows = collectTop("topHolds").map(p => {
		const w = waitersIn(p.from, p.to, p.gil, p.thread);
		return {
			p,
			waiters: w.length,
			caused: w.reduce((sum, x) => sum + x.ns, 0),
			what: holdDoing(p.thread, p.from, p.to, p.stack),
		};
	});
	const named = rows.some(r => r.what);
	fill(
		$("holds-body"),
		rows.length
			? makeTable(
					[
						tally(
							gilText("Held", "Stopped"),
							"hold_ns",
							r => r.p.to - r.p.from,
							r => jumpTo(fmtDur(r.p.to - r.p.from), () => goToPin(r.p)),
						),
						whoColumn(r => r.p.thread),
						named && ranColumn("ran"),
						tally(
							"Wait caused",
							"wait_caused_ns",
							r => r.caused,
							r => (r.caused ? fmtDur(r.caused) : "–"),
							"Summed over the threads that waited",
						),
						tally(
							"At",
							"at_ns",
							r => r.p.from,
							r => fmtAt(r.p.from, 1e6),
						),
					].filter(Boolean),
					rows,
					{
						caption: gilText("The longest holds of the GIL", "The longest stops"),
						hideCaption: true,
						sort: 0,
						limit: 10,
						onrow: r => goToPin(r.p),
					},
				)
			: empty(gilText("No thread held the GIL.", "No thread stopped the others.")),
	);
}

export function aboutDraw() {
	const p = pass(),
		py = /** @type {Partial<Report["python"]>} */ (report.python || {}),
		items = [];
	const add = (term, value) => {
		if (value !== undefined && value !== null && value !== "")
			items.push([term, String(value)]);
	};
	add("Program", (meta.command || []).join(" "));
	add(
		"Python",
		[py.implementation, py.version, py.free_threaded ? "(free-threaded)" : "", py.executable]
			.filter(Boolean)
			.join(" "),
	);
	add("Recorded", meta.created);
	add("Host", [meta.host, meta.cpus ? plural(meta.cpus, "CPU") : ""].filter(Boolean).join(" · "));
	add(
		"Recording shown",
		p.name +
			(meta.passes.length > 1
				? meta.one_run
					? " (one of two, of one run)"
					: " (one of two runs, never mixed)"
				: ""),
	);
	add("Length", fmtExact(p.dur_ns));
	add(
		"Events",
		p.events !== undefined
			? fmtCount(p.events) + (p.lost ? ", " + fmtCount(p.lost) + " lost" : ", none lost")
			: "",
	);
	add("Python calls", p.slices ? fmtCount(p.slices) : p.slices_note);
	if (p.slices && p.slices_note) add("Calls, note", p.slices_note);
	p.gils.forEach((g, i) =>
		add(
			gilName(i),
			"held " +
				fmtPct(g.held_ns, p.dur_ns) +
				" of the time, wanted " +
				fmtPct(g.wanted_ns, p.dur_ns) +
				", hand-off " +
				fmtDur(g.handover_ns),
		),
	);
	add("giltracer", report.giltracer);
	const notes = [...(report.caveats || []), ...(meta.notes || [])].filter(
		(c, i, all) =>
			c.count !== 0 &&
			all.findIndex(o => o.text === c.text && (o.pass || c.pass) === c.pass) === i,
	);
	fill(
		$("about-body"),
		factsList(items),
		notes.length
			? h(
					"ul.caveats",
					notes.map(c =>
						h(
							"li",
							c.pass && meta.passes.length > 1 ? c.pass + " pass: " : "",
							c.text || c.code,
							c.count > 1 ? soft(" (" + fmtCount(c.count) + ")") : null,
						),
					),
				)
			: null,
	);
}

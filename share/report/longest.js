// SPDX-License-Identifier: MIT
// Tables of the longest waits and holds, and further facts about the recording.

import {gilName, gilText, meta, nobodyText, pass, report} from "./data.js";
import {longestIn} from "./details.js";
import {$, factsList, fill, h, soft, tally} from "./dom.js";
import {fmtAt, fmtCount, fmtDur, fmtExact, fmtPct} from "./format.js";
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
import * as words from "./words.js";

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
							words.waited,
							"wait_ns",
							r => r.p.to - r.p.from,
							r => jumpTo(fmtDur(r.p.to - r.p.from), () => goToPin(r.p)),
						),
						whoColumn(r => r.p.thread),
						{
							head: gilText(words.mostlyFor),
							csv: "holder",
							value: r => r.most?.name || othersText(r),
							cell: r =>
								!r.most
									? soft(othersText(r))
									: r.most.crowd
										? r.most.name
										: threadTag(r.most.thread),
						},
						named && ranColumn(words.whichRan),
						tally(
							words.at,
							"at_ns",
							r => r.p.from,
							r => fmtAt(r.p.from, 1e6),
						),
					].filter(Boolean),
					rows,
					{
						caption: gilText(words.longestWaits),
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
		: words.threads(r.who.list.length);

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
							gilText(words.longestHold),
							"hold_ns",
							r => r.p.to - r.p.from,
							r => jumpTo(fmtDur(r.p.to - r.p.from), () => goToPin(r.p)),
						),
						whoColumn(r => r.p.thread),
						named && ranColumn(words.holderRan),
						tally(
							words.waitCaused,
							"wait_caused_ns",
							r => r.caused,
							r => (r.caused ? fmtDur(r.caused) : "–"),
							words.summedOverWaiters,
						),
						tally(
							words.at,
							"at_ns",
							r => r.p.from,
							r => fmtAt(r.p.from, 1e6),
						),
					].filter(Boolean),
					rows,
					{
						caption: gilText(words.longestHolds),
						hideCaption: true,
						sort: 0,
						limit: 10,
						onrow: r => goToPin(r.p),
					},
				)
			: empty(gilText(words.noHold)),
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
	add(words.program, (meta.command || []).join(" "));
	add(
		words.python,
		[py.implementation, py.version, py.free_threaded ? words.freeThreaded : "", py.executable]
			.filter(Boolean)
			.join(" "),
	);
	add(words.recorded, meta.created);
	add(
		words.host,
		[meta.host, meta.cpus ? words.hostCpus(meta.cpus) : ""].filter(Boolean).join(" · "),
	);
	add(
		words.shownHere,
		p.name +
			(meta.passes.length > 1 ? (meta.one_run ? words.oneOfOneRun : words.oneOfTwoRuns) : ""),
	);
	add(words.length, fmtExact(p.dur_ns));
	add(words.events, p.events !== undefined ? fmtCount(p.events) + words.lostEvents(p.lost) : "");
	add(words.pythonCalls, p.slices ? fmtCount(p.slices) : p.slices_note);
	if (p.slices && p.slices_note) add(words.callsNote, p.slices_note);
	p.gils.forEach((g, i) =>
		add(
			gilName(i),
			words.gilShares(
				fmtPct(g.held_ns, p.dur_ns),
				fmtPct(g.wanted_ns, p.dur_ns),
				fmtDur(g.handover_ns),
			),
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
							c.pass && meta.passes.length > 1 ? words.ofPass(c.pass) : "",
							c.text || c.code,
							c.count > 1 ? soft(" (" + fmtCount(c.count) + ")") : null,
						),
					),
				)
			: null,
	);
}

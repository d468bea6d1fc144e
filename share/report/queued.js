// SPDX-License-Identifier: MIT
// Who used the CPU while a thread was runnable.

import {crowdLabel, crowdOf, crowds} from "./crowds.js";
import {crowdTag} from "./crowdtag.js";
import {meta, pass, passIndex, report, threadLabel} from "./data.js";
import {$, fill, h, soft, tally} from "./dom.js";
import {fmtDur, fmtPct} from "./format.js";
import {RUNNABLE_STATE} from "./states.js";
import {store} from "./store.js";
import {makeTable, shareItem, threadTag} from "./table.js";
import {palette, threadColor} from "./theme.js";
import {upper} from "./tracks.js";
import * as words from "./words.js";

// The rows of a pinned runnable span, most time first: {cpu, owner, ns}.
function queuedRows(p) {
	const out = [];
	if (p.kind === "cpu" && p.state === RUNNABLE_STATE)
		for (const s of store().queued[p.thread] || [])
			for (let i = upper(s.time, 0, s.n, p.from - 1); i < s.n && s.time[i] === p.from; i++)
				out.push({cpu: s.cpu[i] - 1, owner: s.owner[i], ns: s.dur[i]});
	return out;
}

const ownerThread = owner => (owner > 1 && owner % 2 === 0 ? owner / 2 - 1 : -1);

function ownerText(owner) {
	if (owner < 2) return owner ? words.nobody : words.cannotTell[0];
	return owner % 2 ? store().names.cpus[(owner - 3) / 2] || "?" : threadLabel(ownerThread(owner));
}

// The owner of the CPU for most of a pinned runnable span: {thread, text}, or null.
export function queuedOwners(p) {
	const rows = p ? queuedRows(p).sort((a, b) => b.ns - a.ns) : [];
	return rows.length
		? {thread: ownerThread(rows[0].owner), text: ownerText(rows[0].owner)}
		: null;
}

export const queuedCpus = p =>
	[
		...new Set(
			queuedRows(p)
				.map(r => r.cpu)
				.filter(c => c >= 0),
		),
	]
		.map(words.cpuNumber)
		.join(words.andBetween);

export function queuedText(p) {
	const rows = queuedRows(p);
	return rows.length
		? words.queuedOn(
				queuedCpus(p) || words.aCpu,
				rows
					.slice(0, 3)
					.map(r => ownerText(r.owner) + " " + fmtPct(r.ns, p.to - p.from))
					.join(", "),
			)
		: null;
}

export function queuedPanel(p) {
	const rows = queuedRows(p),
		total = p.to - p.from,
		several = new Set(rows.map(r => r.cpu)).size > 1;
	return rows.length
		? h(
				"div.panel",
				h("h3", words.cpuUsedMeanwhile),
				h(
					"ol.shares",
					rows.map(r => {
						const thread = ownerThread(r.owner);
						return shareItem(
							r.ns,
							total,
							thread < 0 ? palette.soft : threadColor(thread),
							h(
								"span",
								thread < 0 ? ownerText(r.owner) : threadTag(thread),
								several ? soft(" ", words.cpuNumber(r.cpu)) : null,
							),
						);
					}),
				),
			)
		: null;
}

// Draw the document's rows, which belong to the main recording, by crowds.
export function starvedDraw() {
	const all =
		passIndex === (meta.main_pass || 0)
			? (report.starvation || []).filter(r => r.runnable_ns > 0)
			: [];
	const list = crowds(),
		of = new Map(),
		sums = new Map(),
		total = all.reduce((sum, r) => sum + r.runnable_ns, 0);
	pass().threads.forEach((t, i) => of.set(t.tid, crowdOf(i)));
	for (const r of all) {
		const rest = r.tid === null && words.others,
			who = rest || of.get(r.tid),
			by = rest || of.get(r.by_tid) || r.by_name || words.nobodyOrUnknown;
		// A program may have a number for its name.
		const key = list.indexOf(who) + " " + list.indexOf(by) + " " + by,
			row = sums.get(key);
		if (row) row.ns += r.runnable_ns;
		else if (who) sums.set(key, {who, by, ns: r.runnable_ns});
	}
	const text = (who, label) => (who.threads ? label(who) : who);
	$("starved").hidden = !sums.size || !meta.state_detect;
	fill(
		$("starved-body"),
		sums.size
			? makeTable(
					[
						{
							head: words.runnableThread,
							csv: "thread",
							value: r => text(r.who, crowdLabel),
							cell: r => text(r.who, crowdTag),
						},
						{
							head: words.cpuUsedBy,
							csv: "by",
							value: r => text(r.by, crowdLabel),
							cell: r => text(r.by, crowdTag),
						},
						tally(
							words.forTime,
							"runnable_ns",
							r => r.ns,
							r => fmtDur(r.ns),
						),
						tally(
							words.shareOfRunnable,
							"share",
							r => r.ns,
							r => fmtPct(r.ns, total),
						),
					],
					[...sums.values()],
					{
						caption: words.starvedCaption,
						hideCaption: true,
						sort: 2,
						limit: 10,
					},
				)
			: null,
	);
}

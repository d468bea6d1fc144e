// SPDX-License-Identifier: MIT
// One bar per thread, which divides its time by state, with the numbers of the terminal's table.

import {crowdLabel, crowdSum, crowds} from "./crowds.js";
import {crowdTag} from "./crowdtag.js";
import {gilKnown, gilText, lifeNs, meta, pass} from "./data.js";
import {$, fill, h, tally} from "./dom.js";
import {emit} from "./events.js";
import {fmtCount, fmtDur, fmtPct} from "./format.js";
import {max, min} from "./math.js";
import {pinLane} from "./pick.js";
import {empty, goToPin, jumpTo, makeTable, whoColumn} from "./table.js";
import {threadColor} from "./theme.js";
import {shown} from "./view.js";

// The part of the time without the GIL in which a thread waited for locks of the program.
const lockNs = t => (pass().locks ? 0 : t.lock_wait_ns || 0);
const LOCKS = "no GIL, waits for a lock of the program";

// The parts of a bar. With CPU states, the time without the GIL is divided further.
function barParts(t) {
	const st = t.states,
		lock = lockNs(t),
		parts = [
			["hold", gilText("holds the GIL", "stops the others"), t.hold_ns],
			["wait", gilText("waits for the GIL", "is blocked"), t.wait_ns],
			["freewait", "takes a free GIL", t.free_wait_ns],
		];
	const known = st && st.running_ns + st.runnable_ns + st.sleeping_ns + st.uninterruptible_ns > 0;
	if (known && meta.state_detect) {
		// The time without the GIL is divided by the CPU states of the thread, in proportion.
		const running = max(0, min(t.no_gil_ns - lock, st.running_ns - t.hold_ns));
		parts.push(["none-run", gilText("no GIL, on a CPU", "free, on a CPU"), running]);
		parts.push([
			"none-sleep",
			gilText("no GIL, asleep or not on a CPU", "free, asleep or not on a CPU"),
			t.no_gil_ns - lock - running,
		]);
	} else {
		parts.push(["none", gilText("no GIL", "free"), t.no_gil_ns - lock]);
	}
	parts.push(["none-lock", LOCKS, lock]);
	parts.push(["unknown", "unknown", t.unknown_ns - (t.suspended_ns || 0)]);
	return parts;
}

const bar = (t, color) =>
	sharebar(
		barParts(t)
			.filter(p => p[2] > 0)
			.map(([kind, text, ns]) => [kind, text + " " + fmtPct(ns, lifeNs(t)), ns]),
		t.total_ns,
		color,
	);

// parts: [kind, words, ns]
const sharebar = (parts, total, color) =>
	h(
		"div.sharebar",
		{
			role: "img",
			"aria-label": parts.map(p => p[1]).join(", "),
			title: parts.map(p => p[1]).join("\n"),
		},
		parts.map(([kind, , ns]) =>
			h("i", {
				class: "k-" + kind,
				style:
					"flex-grow:" +
					((ns / max(1, total)) * 1000).toFixed(3) +
					(kind === "hold" ? ";background:" + color : ""),
			}),
		),
	);

// Without GIL events: the CPU states.
export const STATE_COLUMNS = [
	["running", "On CPU", "running"],
	["runnable", "Runnable", "runnable: ready to run, but without a CPU"],
	["sleeping", "Asleep", "asleep"],
	["uninterruptible", "Uninterr.", "uninterruptible, mostly for the disk"],
	["gil_sleep", "GIL sleep", "asleep because another thread has the GIL"],
	["unknown", "Unknown", "unknown"],
];
const STATE_KINDS = {
	running: "running",
	runnable: "runnable",
	sleeping: "sleeping",
	uninterruptible: "disk",
	gil_sleep: "gilsleep",
	unknown: "unknown",
};

function statesDraw() {
	const rows = pass().threads.map((t, i) => ({t, i})),
		ns = (r, key) =>
			((r.t.states || {})[key + "_ns"] || 0) -
			((key === "unknown" && r.t.states && r.t.suspended_ns) || 0);
	const there = STATE_COLUMNS.filter(([key]) => rows.some(r => ns(r, key) > 0));
	const share = (r, key) => fmtPct(ns(r, key), lifeNs(r.t));
	const shares = r =>
		sharebar(
			there
				.filter(([key]) => ns(r, key))
				.map(([key, , text]) => [STATE_KINDS[key], text + " " + share(r, key), ns(r, key)]),
			r.t.total_ns,
		);
	fill(
		$("threads-body"),
		makeTable(
			[
				whoColumn(r => r.i),
				{
					head: "",
					csv: "bar",
					value: r => ns(r, "running"),
					cell: shares,
					wide: true,
					title: "Shares of its life",
				},
				...there.map(([key, head, title]) =>
					tally(
						head,
						key + "_ns",
						r => ns(r, key),
						r => share(r, key),
						title,
					),
				),
				tally(
					"Total",
					"total_ns",
					r => r.t.total_ns,
					r => fmtDur(r.t.total_ns),
				),
			],
			rows,
			{
				caption: "Per thread: shares of its lifetime by state",
				hideCaption: true,
				sort: 2,
				limit: 8,
				attrs: r => ({"data-tid": r.t.tid, "data-total": r.t.total_ns}),
			},
		),
	);
	legendDraw(
		$("threads-legend"),
		there.map(([key, , text]) => [STATE_KINDS[key], text]),
	);
}

const FREE_WAIT =
	"Share of its known lifetime in which it took a GIL that was free: " +
	"tracing overhead or scheduling delay";

const PROBES =
	"Share of its known lifetime that the GIL's probes took, as a part of the others: " +
	"an estimate, and a lower bound";
// A smaller share gets no column; see model/probe_cost.h.
const probesMatter = t => t.probe_cost_ns > 0 && t.probe_cost_ns * 50 >= lifeNs(t);

const CALLS =
	"Share of its known lifetime that recording its Python calls took, " +
	"as a part of the others: an estimate";
const callsMatter = t => t.calls_cost_ns > 0 && t.calls_cost_ns * 50 >= lifeNs(t);

export function threadsDraw() {
	const p = pass();
	if (!gilKnown()) return statesDraw();
	const many = crowds().some(c => c.name);
	const rows = (many && !shown.each ? crowds() : p.threads.map((t, i) => ({threads: [i]}))).map(
		c => ({t: crowdSum(c), i: c.threads[0], c}),
	);
	const longest = (r, key) =>
		!r.t[key + "_ns"]
			? "–"
			: jumpTo(fmtDur(r.t[key + "_ns"]), () => {
					const i = r.t[key + "_ns_of"] ?? r.i;
					goToPin(pinLane("gil", i, p.threads[i][key + "_at_ns"]));
				});
	const part = (head, key, title) =>
		tally(
			head,
			key,
			r => r.t[key],
			r => fmtPct(r.t[key], lifeNs(r.t)),
			title,
		);
	const columns = [
		{head: "Thread", value: r => crowdLabel(r.c), cell: r => crowdTag(r.c)},
		{
			head: "",
			csv: "bar",
			value: r => r.t.wait_ns,
			cell: r => bar(r.t, threadColor(r.i)),
			wide: true,
			title: "Shares of its life",
		},
		part(
			gilText("Has GIL", "Stops others"),
			"hold_ns",
			gilText(
				"Share of its known lifetime in which it held the GIL",
				"Share of its known lifetime in which it stopped the others, or was stopping them",
			),
		),
		part(
			gilText("Waits", "Blocked"),
			"wait_ns",
			gilText(
				"Share of its known lifetime in which it wanted the GIL and did not have it",
				"Share of its known lifetime in which it slept for a lock, " +
					"or was stopped by another thread",
			),
		),
		part("Free wait", "free_wait_ns", FREE_WAIT),
		part(
			gilText("No GIL", "Free"),
			"no_gil_ns",
			gilText(
				"In C code with the GIL released, or asleep",
				"Running, or asleep for another reason",
			),
		),
		tally(
			"Unknown",
			"unknown_ns",
			r => r.t.unknown_ns,
			r => fmtPct(r.t.unknown_ns - (r.t.suspended_ns || 0), lifeNs(r.t)),
			"Before its first event, or records were lost",
		),
		tally(
			"Longest wait",
			"longest_wait_ns",
			r => r.t.longest_wait_ns,
			r => longest(r, "longest_wait"),
		),
		tally(
			gilText("Longest hold", "Longest stop"),
			"longest_hold_ns",
			r => r.t.longest_hold_ns,
			r => longest(r, "longest_hold"),
		),
		part("Probes", "probe_cost_ns", PROBES),
		part("Calls", "calls_cost_ns", CALLS),
		tally(
			"Lifetime",
			"total_ns",
			r => r.t.total_ns,
			r => fmtDur(r.t.total_ns),
			"Lifetime within the recording",
		),
	];
	const there = columns.filter(c =>
		c.csv === "probe_cost_ns"
			? p.threads.some(probesMatter)
			: c.csv === "calls_cost_ns"
				? p.threads.some(callsMatter)
				: !["free_wait_ns", "unknown_ns"].includes(c.csv) || p.threads.some(t => t[c.csv]),
	);
	fill(
		$("threads-body"),
		rows.length
			? makeTable(there, rows, {
					caption: "Per thread: shares of its lifetime, longest wait first",
					hideCaption: true,
					sort: 3,
					limit: 8,
					attrs: r => ({
						"data-tid": r.t.tid,
						"data-hold": r.t.hold_ns,
						"data-wait": r.t.wait_ns,
						"data-free": r.t.free_wait_ns,
						"data-none": r.t.no_gil_ns,
						"data-unknown": r.t.unknown_ns,
						"data-total": r.t.total_ns,
					}),
				})
			: empty("No thread was recorded."),
		many
			? h(
					"p.under",
					h(
						"button.more",
						{
							onclick: () => {
								shown.each = !shown.each;
								threadsDraw();
								emit("link");
							},
						},
						shown.each
							? "Group similar names"
							: "Show each of the " + fmtCount(p.threads.length) + " threads",
					),
				)
			: null,
	);
	legendDraw($("threads-legend"), [
		["hold", gilText("holds the GIL (its colour)", "stops the others (its colour)")],
		["wait", gilText("waits for the GIL", "is blocked: waits for a lock, or is stopped")],
		...(p.threads.some(t => t.free_wait_ns)
			? [["freewait", "takes a free GIL: tracing overhead or scheduling delay"]]
			: []),
		...(meta.state_detect
			? [
					["none-run", gilText("no GIL, on a CPU", "free, on a CPU")],
					["none-sleep", gilText("no GIL, asleep", "free, asleep")],
				]
			: [["none", gilText("no GIL: in C code, or asleep", "free")]]),
		...(p.threads.some(lockNs) ? [["none-lock", LOCKS]] : []),
		["unknown", "unknown"],
	]);
}

export function legendDraw(el, items) {
	fill(
		el,
		items.map(([kind, text]) => h("span.key", h("i", {class: "k-" + kind}), text)),
	);
}

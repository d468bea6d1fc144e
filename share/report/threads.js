// SPDX-License-Identifier: MIT
// One bar per thread, which divides its time by state, with the numbers of the terminal's table.

import {crowdLabel, crowdSum, crowds} from "./crowds.js";
import {crowdTag} from "./crowdtag.js";
import {gilKnown, gilText, lifeNs, meta, pass} from "./data.js";
import {$, fill, h, rove, stepInList, tally} from "./dom.js";
import {emit} from "./events.js";
import {fmtDur, fmtPct} from "./format.js";
import {max, min} from "./math.js";
import {pinLane} from "./pick.js";
import {empty, goToPin, jumpTo, makeTable, whoColumn} from "./table.js";
import {threadColor} from "./theme.js";
import {shown} from "./view.js";
import * as words from "./words.js";

// The part of the time without the GIL in which a thread waited for locks of the program.
const lockNs = t => (pass().locks ? 0 : t.lock_wait_ns || 0);

// The parts of a bar. With CPU states, the time without the GIL is divided further.
function barParts(t) {
	const st = t.states,
		lock = lockNs(t),
		parts = [
			["hold", gilText(words.barHold), t.hold_ns],
			["wait", gilText(words.barWait), t.wait_ns],
			["freewait", gilText(words.barFreeWait), t.free_wait_ns],
		];
	const known = st && st.running_ns + st.runnable_ns + st.sleeping_ns + st.uninterruptible_ns > 0;
	if (known && meta.state_detect) {
		// The time without the GIL is divided by the CPU states of the thread, in proportion.
		const running = max(0, min(t.no_gil_ns - lock, st.running_ns - t.hold_ns));
		parts.push(["none-run", gilText(words.barNoneRun), running]);
		parts.push(["none-sleep", gilText(words.barNoneSleep), t.no_gil_ns - lock - running]);
	} else {
		parts.push(["none", gilText(words.barNone), t.no_gil_ns - lock]);
	}
	parts.push(["none-lock", words.locksOfProgram, lock]);
	parts.push(["unknown", words.unknown, t.unknown_ns - (t.suspended_ns || 0)]);
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

// The class of each CPU state.
const STATE_KINDS = {
	running_ns: "running",
	runnable_ns: "runnable",
	sleeping_ns: "sleeping",
	uninterruptible_ns: "disk",
	gil_sleep_ns: "gilsleep",
	unknown_ns: "unknown",
};

function statesDraw() {
	const rows = pass().threads.map((t, i) => ({t, i})),
		ns = (r, key) =>
			((r.t.states || {})[key] || 0) -
			((key === "unknown_ns" && r.t.states && r.t.suspended_ns) || 0);
	const there = pass().state_columns.filter(c => rows.some(r => ns(r, c.key) > 0));
	const share = (r, key) => fmtPct(ns(r, key), lifeNs(r.t));
	const shares = r =>
		sharebar(
			there
				.filter(c => ns(r, c.key))
				.map(c => [STATE_KINDS[c.key], c.help + " " + share(r, c.key), ns(r, c.key)]),
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
					value: r => ns(r, "running_ns"),
					cell: shares,
					wide: true,
					title: words.sharesOfLife,
				},
				...there.map(c =>
					tally(
						c.head,
						c.key,
						r => ns(r, c.key),
						r => share(r, c.key),
						c.help,
					),
				),
				tally(
					words.total,
					"total_ns",
					r => r.t.total_ns,
					r => fmtDur(r.t.total_ns),
				),
			],
			rows,
			{
				caption: words.statesCaption,
				hideCaption: true,
				sort: 2,
				limit: 8,
				attrs: r => ({"data-tid": r.t.tid, "data-total": r.t.total_ns}),
			},
		),
	);
	legendDraw(
		$("threads-legend"),
		there.map(c => [STATE_KINDS[c.key], c.help]),
	);
}

export function threadsDraw() {
	const p = pass();
	if (!gilKnown()) return statesDraw();
	const many = crowds().some(c => c.name);
	const rows = (many && !shown.each ? crowds() : p.threads.map((t, i) => ({threads: [i]}))).map(
		c => ({t: crowdSum(c), i: c.threads[0], c}),
	);
	const longest = (r, key) =>
		!r.t[key]
			? "–"
			: jumpTo(fmtDur(r.t[key]), () => {
					const i = r.t[key + "_of"] ?? r.i;
					goToPin(pinLane("gil", i, p.threads[i][key.replace(/_ns$/, "_at_ns")]));
				});
	// What a share leaves out is another column's or counts for nothing.
	const share = (r, c) => fmtPct(r.t[c.key] - ((c.minus && r.t[c.minus]) || 0), lifeNs(r.t));
	const there = [
		{head: words.thread, value: r => crowdLabel(r.c), cell: r => crowdTag(r.c)},
		{
			head: "",
			csv: "bar",
			value: r => r.t.wait_ns,
			cell: r => bar(r.t, threadColor(r.i)),
			wide: true,
			title: words.sharesOfLife,
		},
		...p.columns.map(c =>
			tally(
				c.head,
				c.key,
				r => r.t[c.key],
				r => (c.longest ? longest(r, c.key) : share(r, c)),
				c.help,
			),
		),
		tally(
			words.lifetime,
			"total_ns",
			r => r.t.total_ns,
			r => fmtDur(r.t.total_ns),
			words.lifetimeHelp,
		),
	];
	fill(
		$("threads-body"),
		rows.length
			? makeTable(there, rows, {
					caption: words.threadsCaption,
					hideCaption: true,
					sort: there.findIndex(c => c.csv === "wait_ns"),
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
			: empty(words.noThread),
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
						shown.each ? words.groupNames : words.showEach(p.threads.length),
					),
				)
			: null,
	);
	legendDraw($("threads-legend"), [
		["hold", gilText(words.keyHold)],
		["wait", gilText(words.keyWait)],
		...(p.threads.some(t => t.free_wait_ns) ? [["freewait", gilText(words.keyFreeWait)]] : []),
		...(meta.state_detect
			? [
					["none-run", gilText(words.barNoneRun)],
					["none-sleep", gilText(words.keyNoneSleep)],
				]
			: [["none", gilText(words.keyNone)]]),
		...(p.threads.some(lockNs) ? [["none-lock", words.locksOfProgram]] : []),
		["unknown", words.unknown],
	]);
}

export function legendDraw(el, items) {
	fill(
		el,
		items.map(([kind, text]) => {
			const meaning = words.glossary.find(
				([term]) => text === term || text.startsWith(term + " ("),
			)?.[1];
			return h(
				meaning ? "button.key" : "span.key",
				{title: meaning},
				h("i", {class: "k-" + kind}),
				text,
			);
		}),
	);
	rove(el, stepInList);
}

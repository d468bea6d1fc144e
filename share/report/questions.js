// SPDX-License-Identifier: MIT
// The questions that readers come with, each with a button that leads to its answer; and the answer
// to one of them: what the program would wait without a GIL.

import {meta, passIndex} from "./data.js";
import {$, code, fill, h, toward} from "./dom.js";
import {flameChoose} from "./flame.js";
import {fmtDur, fmtPct} from "./format.js";
import {meetingModes} from "./meeting.js";
import {makeTable} from "./table.js";

const LITTLE = 0.1; // of what is lost

const plainCpus = n => n + (n === 1 ? " CPU" : " CPUs");

// {known, error, lost: what is lost in the replay with the GIL, saved: of that, without it}
function withoutGil() {
	const f = meta.without_gil,
		lost = f.replayed_ns + f.replayed_shared_ns;
	return {
		...f,
		lost,
		saved: lost - f.runs[0].shared_ns,
		error: Math.abs(f.replayed_ns - f.recorded_ns) / f.recorded_ns,
	};
}

// The sentence that answers the question.
function verdictOf({known, lost, saved, runs}) {
	const [here, ...more] = runs,
		enough = more.find(r => lost - r.shared_ns > lost * (1 - LITTLE));
	if (!known)
		return (
			"Not known: replayed with the GIL, the recorded schedule does not wait as long as " +
			"recorded. The numbers below have that error."
		);
	if (saved < lost * LITTLE)
		return (
			`Little, on ${plainCpus(here.cpus)}: threads would wait for a CPU instead.` +
			(enough ? ` With ${plainCpus(enough.cpus)}, hardly any waiting would remain.` : "")
		);
	return (
		`It would save ${fmtDur(saved)} of the ${fmtDur(lost)} that threads lose by waiting for ` +
		`the GIL and by sharing ${plainCpus(here.cpus)} (${fmtPct(saved, lost)}).`
	);
}

export function withoutGilDraw() {
	$("nogil").hidden = !meta.without_gil || passIndex !== (meta.main_pass || 0);
	if ($("nogil").hidden || $("nogil-body").firstChild) return;
	const f = withoutGil(),
		rows = [
			{
				text: "With the GIL, " + plainCpus(f.runs[0].cpus),
				gil: f.replayed_ns,
				cpu: f.replayed_shared_ns,
			},
			...f.runs.map(r => ({
				text: "Without the GIL, " + plainCpus(r.cpus),
				gil: 0,
				cpu: r.shared_ns,
			})),
		];
	const time = (head, csv, value) => ({
		head,
		csv,
		num: true,
		value,
		cell: r => (value(r) ? fmtDur(value(r)) : "–"),
	});
	fill(
		$("nogil-body"),
		h("p.req-answer", verdictOf(f)),
		makeTable(
			[
				{head: "Replay of the recorded schedule", csv: "replay", value: r => r.text},
				time("Waits for the GIL", "gil_wait_ns", r => r.gil),
				time("Shares CPUs", "cpu_ns", r => r.cpu),
				time("Lost in all", "lost_ns", r => r.gil + r.cpu),
			],
			rows,
			{caption: "With and without the GIL", hideCaption: true, sort: 3},
		),
		h(
			"p.hint",
			`Summed over all threads. The recording waited ${fmtDur(f.recorded_ns)} for the GIL, `,
			`its replay ${fmtDur(f.replayed_ns)}: an error of ${fmtPct(f.error, 1)}. What a `,
			"thread does takes as long as it did, also its sleeps and its waits for locks. Not ",
			"included: that an interpreter without a GIL runs a single thread more slowly, and ",
			"waits for locks that the GIL made unnecessary.",
		),
	);
}

const helpDiff = () => [
	"Record both states of the program with ",
	code("--keep before"),
	" and ",
	code("--keep after"),
	", then: ",
	code("giltracer diff -o diff.html before after"),
];

// The questions that this recording can answer: [text, what its button does]. Some parts are only
// shown once all data is read.
export function questionsDraw() {
	const there = id => !$(id).hidden,
		locks = meetingModes().find(([m]) => m === "meet-locks"),
		note = h("span.soft", {role: "status"});
	const list = [
		there("lines") && ["Which line?", () => toward("lines")],
		locks && [
			"Which lock?",
			() => {
				flameChoose("meet-locks");
				toward("flame");
			},
		],
		there("requests") && ["Why are some calls slow?", () => toward("requests")],
		[
			"Did a change help?",
			() => {
				if (meta.diff) toward("verdict");
				else fill(note, helpDiff());
			},
		],
		there("nogil") && ["Would it help without the GIL?", () => toward("nogil")],
	].filter(Boolean);
	fill(
		$("ask"),
		list.map(([text, go]) => h("button", {onclick: go}, text)),
		note,
	);
}

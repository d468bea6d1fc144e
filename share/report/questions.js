// SPDX-License-Identifier: MIT
// The questions that readers come with, each with a button that leads to its answer; and the answer
// to one of them: what the program would wait without a GIL.

import {meta, passIndex} from "./data.js";
import {$, code, fill, h, toward} from "./dom.js";
import {flameChoose} from "./flame.js";
import {fmtDur, fmtPct} from "./format.js";
import {meetingModes} from "./meeting.js";
import {makeTable} from "./table.js";
import * as words from "./words.js";

const LITTLE = 0.1; // of the length of a run

// The replays, and the error of the one with the GIL.
function withoutGil() {
	const f = meta.without_gil;
	return {...f, error: Math.abs(f.end_ns - f.duration_ns) / f.duration_ns};
}

// The sentence that answers the question.
function verdictOf({known, end_ns, runs}) {
	const best = runs.reduce((a, b) => (b.end_ns < a.end_ns ? b : a)),
		enough = runs.find(r => r.end_ns <= best.end_ns * (1 + LITTLE));
	if (!known) return words.replayUnlike;
	if (best.end_ns > end_ns * (1 - LITTLE)) return words.replayNoShorter;
	return words.replayShorter(enough.cpus, fmtDur(enough.end_ns), fmtDur(end_ns));
}

export function withoutGilDraw() {
	$("nogil").hidden = !meta.without_gil || passIndex !== (meta.main_pass || 0);
	if ($("nogil").hidden || $("nogil-body").firstChild) return;
	const f = withoutGil(),
		rows = [
			{
				text: words.withGil(f.cpus),
				gil: f.replayed_ns,
				cpu: f.replayed_shared_ns,
				end: f.end_ns,
			},
			...f.runs.map(r => ({
				text: words.withoutGil(r.cpus),
				gil: 0,
				cpu: r.shared_ns,
				end: r.end_ns,
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
				{head: words.replayHead, csv: "replay", value: r => r.text},
				time(words.lengthOfRun, "end_ns", r => r.end),
				time(words.waitsForGil, "gil_wait_ns", r => r.gil),
				time(words.sharesCpus, "cpu_ns", r => r.cpu),
			],
			rows,
			{caption: words.withoutGilCaption, hideCaption: true, sort: 1},
		),
		h(
			"p.hint",
			words.withoutGilHint(
				fmtDur(f.duration_ns),
				fmtDur(f.end_ns),
				fmtPct(f.error, 1),
				f.factor,
				code,
			),
		),
	);
}

// The questions that this recording can answer: [text, what its button does]. Some parts are only
// shown once all data is read.
export function questionsDraw() {
	const there = id => !$(id).hidden,
		locks = meetingModes().find(([m]) => m === "meet-locks"),
		note = h("span.soft", {role: "status"});
	const list = [
		there("lines") && [words.whichLine, () => toward("lines")],
		locks && [
			words.whichLock,
			() => {
				flameChoose("meet-locks");
				toward("flame");
			},
		],
		there("requests") && [words.whySlow, () => toward("requests")],
		[
			words.didItHelp,
			() => {
				if (meta.diff) toward("verdict");
				else fill(note, words.howToCompare(code));
			},
		],
		there("nogil") && [words.withoutGilHelps, () => toward("nogil")],
	].filter(Boolean);
	fill(
		$("ask"),
		list.map(([text, go]) => h("button", {onclick: go}, text)),
		note,
	);
}

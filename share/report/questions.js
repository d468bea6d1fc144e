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

const LITTLE = 0.1; // of what is lost

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
	if (!known) return words.replayUnlike;
	if (saved < lost * LITTLE) return words.savesLittle(here.cpus, enough?.cpus);
	return words.savesMuch(fmtDur(saved), fmtDur(lost), here.cpus, fmtPct(saved, lost));
}

export function withoutGilDraw() {
	$("nogil").hidden = !meta.without_gil || passIndex !== (meta.main_pass || 0);
	if ($("nogil").hidden || $("nogil-body").firstChild) return;
	const f = withoutGil(),
		rows = [
			{
				text: words.withGil(f.runs[0].cpus),
				gil: f.replayed_ns,
				cpu: f.replayed_shared_ns,
			},
			...f.runs.map(r => ({
				text: words.withoutGil(r.cpus),
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
				{head: words.replayHead, csv: "replay", value: r => r.text},
				time(words.waitsForGil, "gil_wait_ns", r => r.gil),
				time(words.sharesCpus, "cpu_ns", r => r.cpu),
				time(words.lostInAll, "lost_ns", r => r.gil + r.cpu),
			],
			rows,
			{caption: words.withoutGilCaption, hideCaption: true, sort: 3},
		),
		h(
			"p.hint",
			words.withoutGilHint(fmtDur(f.recorded_ns), fmtDur(f.replayed_ns), fmtPct(f.error, 1)),
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

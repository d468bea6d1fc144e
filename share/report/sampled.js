// SPDX-License-Identifier: MIT
// The activity of every thread at a moment, and estimated shares of its activities, from samples.

import {pass} from "./data.js";
import {$, fill, soft} from "./dom.js";
import {on, perFrame} from "./events.js";
import {fmtAt, fmtPct, plural} from "./format.js";
import {
	eachSample,
	hasSamples,
	sampleAt,
	sampleWords,
	sampledFrames,
	sampledPlace,
} from "./samples.js";
import {loading} from "./store.js";
import {makeTable, stackList, whoColumn} from "./table.js";
import {pinned, range, rowsThreads, span, view} from "./view.js";

const middleOf = part => (part.from + part.to) / 2;

function sampledShares(thread, from, to) {
	const count = new Map();
	let n = 0;
	eachSample(thread, from, to, (time, what) => {
		count.set(what, (count.get(what) || 0) + 1);
		n++;
	});
	return [...count]
		.sort((a, b) => b[1] - a[1])
		.map(([what, k]) => sampleWords(what) + " ~" + fmtPct(k, n))
		.join(", ");
}

function sampledDraw() {
	$("sampled").hidden = !hasSamples() || !loading.complete;
	if ($("sampled").hidden) return;
	const part = range || view,
		at = middleOf(pinned || part);
	const frames = r => sampledFrames(r.s.stack).reverse().map(sampledPlace);
	const rows = rowsThreads()
		.map(thread => ({thread, s: sampleAt(thread, at)}))
		.filter(r => r.s);
	const {count, hz, missed, torn} = pass().samples;
	$("sampled-note").textContent =
		plural(count, "sample") +
		" at " +
		hz +
		" Hz" +
		(missed ? ", " + missed + " missed" : "") +
		(torn ? ", " + plural(torn, "stack") + " dropped" : "") +
		". Shares, marked ~, are estimates of " +
		(range ? "the selected range" : "the part in view") +
		"; stacks are those of the sample nearest to " +
		fmtAt(at, span() / 1000) +
		(pinned
			? "."
			: " (the middle of " +
				(range ? "the range" : "the view") +
				"; click the timeline to choose a moment).");
	const text = (head, value, cell) => ({head, value, cell});
	fill(
		$("sampled-body"),
		makeTable(
			[
				whoColumn(r => r.thread),
				text("At that moment", r => sampleWords(r.s.what)),
				text(
					"Python stack, innermost first",
					r =>
						frames(r)
							.map(f => f.name + " " + f.place)
							.join("; "),
					r => (r.s.stack ? stackList(frames(r)) : soft("no Python frame")),
				),
				text("Estimated shares", r => sampledShares(r.thread, part.from, part.to)),
			],
			rows,
			{caption: "What every thread did", hideCaption: true, sort: 1, limit: 200},
		),
	);
}

export function sampledInit() {
	on("complete pass pin range view filter theme", perFrame(sampledDraw));
}

// SPDX-License-Identifier: MIT
// The activity of every thread at a moment, and estimated shares of its activities, from samples.

import {pass} from "./data.js";
import {$, fill, soft} from "./dom.js";
import {on, perFrame} from "./events.js";
import {fmtAt, fmtPct} from "./format.js";
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
import * as words from "./words.js";

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
	$("sampled-note").textContent = words.samplesNote({
		count,
		hz,
		missed,
		torn,
		range: !!range,
		pinned: !!pinned,
		at: fmtAt(at, span() / 1000),
	});
	const text = (head, value, cell) => ({head, value, cell});
	fill(
		$("sampled-body"),
		makeTable(
			[
				whoColumn(r => r.thread),
				text(words.atThatMoment, r => sampleWords(r.s.what)),
				text(
					words.innermostFirst,
					r =>
						frames(r)
							.map(f => f.name + " " + f.place)
							.join("; "),
					r => (r.s.stack ? stackList(frames(r)) : soft(words.noPythonFrame)),
				),
				text(words.estimatedShares, r => sampledShares(r.thread, part.from, part.to)),
			],
			rows,
			{caption: words.sampledCaption, hideCaption: true, sort: 1, limit: 200},
		),
	);
}

export function sampledInit() {
	on("complete pass pin range view filter theme", perFrame(sampledDraw));
}

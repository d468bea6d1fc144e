// SPDX-License-Identifier: MIT
// Samples of the stacks: the activity of each thread at certain moments. They are points, not
// spans: nothing is known between two samples, and their shares are estimates.

import {gilKnown, pass} from "./data.js";
import {baseName} from "./format.js";
import {floor, max, min} from "./math.js";
import {store} from "./store.js";
import {palette, rgba, threadColor} from "./theme.js";
import {upper} from "./tracks.js";
import {passDur, rowsThreads, view} from "./view.js";
import * as words from "./words.js";

const FOUND_HOLDS = 2;
const FOUND_WAITS = 3;
const FOUND_RUNS = 4;
const FOUND_UNKNOWN = 12;

export const sampleWords = what => words.sampleStates[what] || "";
export const hasSamples = () => !!pass().samples;

// Whether only samples were recorded, so that no lane has data.
export const samplesAlone = () =>
	hasSamples() &&
	!gilKnown() &&
	pass().threads.every(t => !t.states || t.states.unknown_ns === t.total_ns);

export const SAMPLE_KEYS = [
	["ink", words.legendSample.has],
	["wait", words.legendSample.waits],
	["running", words.legendSample.runnable],
	["sleeping", words.legendSample.asleep],
];

const foundColor = (what, thread) =>
	what === FOUND_HOLDS
		? gilKnown()
			? threadColor(thread)
			: palette.ink
		: what === FOUND_WAITS
			? palette.wait
			: what === FOUND_RUNS
				? palette.running
				: what === FOUND_UNKNOWN || what < FOUND_HOLDS
					? palette.unknown
					: palette.sleeping;

// Call f(time, what, stack) for each sample of a thread in [from, to).
export function eachSample(thread, from, to, f) {
	const {times, runs} = store().sampled,
		list = runs[thread] || [];
	const first = upper(times, 0, times.length, from - 1),
		last = upper(times, 0, times.length, to - 1);
	for (const [j, run] of list.entries()) {
		const behind = j + 1 < list.length ? list[j + 1].sample[0] : times.length;
		let k = max(0, upper(run.sample, 0, run.n, first) - 1);
		for (; k < run.n && run.sample[k] < last; k++) {
			const end = k + 1 < run.n ? run.sample[k + 1] : behind;
			for (let i = max(first, run.sample[k]); i < min(last, end); i++)
				if (run.what[k] > 0) f(times[i], run.what[k], run.stack[k]);
		}
	}
}

// {time, what, stack}: the sample nearest to t, or null.
export function sampleAt(thread, t) {
	const {times} = store().sampled,
		i = upper(times, 0, times.length, t);
	const near = i > 0 && (i === times.length || t - times[i - 1] <= times[i] - t) ? i - 1 : i;
	let found = null;
	if (near < times.length)
		eachSample(thread, times[near], times[near] + 1, (time, what, stack) => {
			found = {time, what, stack};
		});
	return found;
}

// Frames of a sampled stack, outermost first.
export function sampledFrames(id) {
	const {parent, name, module, line} = store().sampled.stacks,
		names = store().names.samples,
		out = [];
	for (let n = 0; id && n < 1000; id = parent[id], n++)
		out.push({name: names[name[id]] || "?", module: names[module[id]] || "", line: line[id]});
	return out.reverse();
}

export const sampledPlace = f => ({
	name: f.name,
	place: baseName(f.module) + (f.line ? ":" + f.line : ""),
});

// Draw a tick for each sample if there is room, otherwise the most informative sample of each
// column: waiting for the GIL first, then holding it. Unlike spans, ticks leave the background
// visible.
export function paintSamples(row, r, x0, y, w, hgt, dt, unit) {
	r.rect(x0, y, w, hgt, rgba(palette.dead));
	const best = new Uint8Array(w);
	const rank = what => (what === FOUND_WAITS ? 15 : what === FOUND_HOLDS ? 14 : 13 - what);
	eachSample(row.thread, view.from, view.to, (time, what) => {
		const x = floor((time - view.from) / dt);
		if (x >= 0 && x < w && (!best[x] || rank(what) > rank(best[x]))) best[x] = what;
	});
	for (let x = 0; x < w; x++) {
		if (!best[x]) continue;
		const low = best[x] > FOUND_RUNS || best[x] < FOUND_HOLDS;
		const high = low ? max(unit, hgt >> 1) : hgt;
		r.rect(x0 + x, y + hgt - high, unit, high, rgba(foundColor(best[x], row.thread)));
	}
}

// The flame graphs of samples. Each sample stands for one period, so that widths are estimates of
// times.
export const SAMPLE_MODES = [
	["s-holds", words.sampleModes.holds],
	["s-waits", words.sampleModes.waits],
	["s-all", words.sampleModes.all],
];

/** @type {{[mode: string]: (what: number) => boolean}} */
const SAMPLE_WANTED = {
	"s-holds": what => what === FOUND_HOLDS,
	"s-waits": what => what === FOUND_WAITS,
	"s-all": () => true,
};

// Call add(thread, ns, frames) for each sample in the part; returns their number.
export function sampledStacks(mode, part, add) {
	const wanted = SAMPLE_WANTED[mode],
		{times} = store().sampled;
	const ns = times.length > 1 ? passDur() / times.length : 0;
	let n = 0;
	for (const thread of rowsThreads())
		eachSample(thread, part.from, part.to, (time, what, stack) => {
			if (!wanted(what)) return;
			n++;
			add(thread, ns, stack ? sampledFrames(stack) : [{name: words.frameOfSample}]);
		});
	return n;
}

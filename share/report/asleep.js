// SPDX-License-Identifier: MIT
// For a program that hardly waits for the GIL: where its threads sleep, by the line of Python in
// which they slept.

import {gilKnown, meta, pass, passIndex, report} from "./data.js";
import {$, fill, soft, tally} from "./dom.js";
import {fmtCount, fmtDur} from "./format.js";
import {isInterpreter} from "./library.js";
import {FRAME_KERNEL, FRAME_PYTHON, doingText, pinLane} from "./pick.js";
import {DISK_STATE, SLEEPING_STATE} from "./states.js";
import {loading, stores} from "./store.js";
import {empty, goToPin, jumpTo, makeTable} from "./table.js";
import {setPass} from "./view.js";
import * as words from "./words.js";

const SLEEPS = [SLEEPING_STATE, DISK_STATE];

const CALM = ["native", "io-bound", "single-threaded", "gil-none"]; // verdicts
// Whether threads wait so little for the GIL that the waits need no attention.
export function hardlyWaits() {
	const sum = key => pass().threads.reduce((n, t) => n + (t[key] || 0), 0);
	return (
		gilKnown() &&
		!pass().locks &&
		(CALM.includes(report.verdict?.kind) ||
			sum("wait_ns") < 0.01 * (sum("total_ns") - sum("unknown_ns")))
	);
}

// The index of a recording with stacks, preferably of the one that is shown.
function passWithStacks() {
	const has = i =>
		stores[i].stacks.parent.length > 1 && stores[i].cpu.some(l => l && l.withStacks);
	return [passIndex, ...stores.keys()].find(has);
}

// The innermost line of Python of a stack, and the native function that it called:
// {name, place, native}
function lineOf(st, id) {
	const text = n => st.names.stacks[n] || "?";
	let native = "";
	for (; id; id = st.stacks.parent[id]) {
		const flags = st.stacks.flags[id];
		if (flags & FRAME_PYTHON) {
			const line = st.stacks.line[id];
			return {
				name: text(st.stacks.name[id]),
				place: text(st.stacks.module[id]) + (line ? ":" + line : ""),
				native,
			};
		}
		const name = text(st.stacks.name[id]);
		if (!(flags & FRAME_KERNEL) && !(native && isInterpreter(name))) native = name;
	}
	return {name: native || words.inKernel, place: "", native: ""};
}

// [{name, place, native, threads, ns, count, longest: {thread, from, to}}]
function sleeps(st) {
	const by = new Map(),
		lines = [];
	st.cpu.forEach((lane, thread) => {
		for (const s of lane.sections)
			for (let i = 0; i < s.n; i++) {
				if (!SLEEPS.includes(s.state[i])) continue;
				const id = s.stack ? s.stack[i] : 0;
				const line = (lines[id] ||= id
					? lineOf(st, id)
					: {name: "", place: "", native: ""});
				const key = line.name + "\0" + line.place,
					from = s.start[i],
					to = s.start[i + 1];
				let row = by.get(key);
				if (!row)
					by.set(
						key,
						(row = {
							...line,
							threads: new Set(),
							ns: 0,
							count: 0,
							longest: {from, to: from},
						}),
					);
				row.threads.add(thread);
				row.ns += to - from;
				row.count++;
				if (to - from > row.longest.to - row.longest.from) row.longest = {thread, from, to};
			}
	});
	return [...by.values()];
}

function goToSleep(index, x) {
	setPass(index);
	goToPin(pinLane("cpu", x.thread, x.from));
}

export function asleepDraw() {
	fill($("blame-h"), words.whereAsleep);
	fill($("blame-hint"), words.asleepHint);
	fill($("blame-note"));
	const index = passWithStacks();
	if (index === undefined)
		return fill(
			$("blame-body"),
			empty(
				!loading.complete
					? words.reading
					: meta.state_detect
						? words.noStackOfSleep
						: words.noStacks,
			),
		);
	const st = stores[index];
	fill(
		$("blame-body"),
		makeTable(
			[
				{
					head: words.asleepIn,
					wide: true,
					csv: "function",
					value: r => r.name || words.notKnown,
					cell: r =>
						r.name
							? [doingText(r), r.native ? soft(words.insideOf(r.native)) : null]
							: soft(words.notKnown),
				},
				tally(
					words.time,
					"sleep_ns",
					r => r.ns,
					r => fmtDur(r.ns),
				),
				tally(
					words.threadsHead,
					"threads",
					r => r.threads.size,
					r => fmtCount(r.threads.size),
				),
				tally(
					words.times,
					"sleeps",
					r => r.count,
					r => fmtCount(r.count),
				),
				tally(
					words.longest,
					"longest_ns",
					r => r.longest.to - r.longest.from,
					r =>
						jumpTo(fmtDur(r.longest.to - r.longest.from), () =>
							goToSleep(index, r.longest),
						),
				),
			],
			sleeps(st),
			{caption: words.whereAsleep, hideCaption: true, sort: 1, limit: 8},
		),
	);
}

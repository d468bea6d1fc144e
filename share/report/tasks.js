// SPDX-License-Identifier: MIT
// Tasks of event loops by group: lanes with the numbers of tasks that ran, were late and waited,
// and a table.

import {meta, pass, report, taskLanes, threadLabel} from "./data.js";
import {$, code, fill, h, soft, tally} from "./dom.js";
import {fmtAt, fmtCount, fmtDur} from "./format.js";
import {seeTimeline, tl, tlBox} from "./layout.js";
import {max, min} from "./math.js";
import {callPlace} from "./pick.js";
import {cpuPens} from "./raster.js";
import {jumpTo, makeTable} from "./table.js";
import {upper} from "./tracks.js";
import {flyToSpan, view} from "./view.js";
import * as words from "./words.js";

const TASK_STATES = ["running", "late", "waiting", "unknown"];
const groupOf = i => report.tasks.groups[i];
const placedCall = name => name.replace(/\((?:.*\/)?([^/]*:\d+)\)$/, "($1)");
export const taskName = i =>
	groupOf(i).named ? groupOf(i).name : placedCall(groupOf(i).name || words.unknownFunction);

// A lane, with the times of its levels, the running sums of each kind, and the largest number of
// tasks that ran or were late.
function levelsOf(lane) {
	if (lane.at) return lane;
	const sum = list => {
		const out = [0];
		for (const ns of list) out.push(out[out.length - 1] + ns);
		return out;
	};
	lane.at = sum(lane.dur);
	lane.sums = TASK_STATES.map(kind => sum(lane[kind]));
	lane.most = max(1, ...lane.dur.map((ns, i) => (lane.running[i] + lane.late[i]) / ns));
	return lane;
}

// Store the sums of each kind up to t in to.
function sumsTo(lane, t, to) {
	const {at, dur, sums} = lane,
		i = max(0, upper(at, 0, dur.length, t) - 1),
		part = max(0, min(1, (t - at[i]) / dur[i]));
	for (let k = 0; k < 4; k++) to[k] = sums[k][i] + (sums[k][i + 1] - sums[k][i]) * part;
}

// Paint the tasks that run or are late: their number is the height, and the colours are those of
// the CPU states "running" and "asleep for the GIL". The background stands for tasks that wait.
export function paintTasks(row, r, s, x0, y, w, hgt, dt, unit, dead) {
	const lane = levelsOf(taskLanes()[row.group]);
	let before = [],
		now = [];
	sumsTo(lane, view.from, now);
	for (let x = 0; x < w; x++) {
		[before, now] = [now, before];
		sumsTo(lane, view.from + (x + 1) * dt, now);
		const ran = now[0] - before[0],
			late = now[1] - before[1],
			other = now[2] - before[2] + now[3] - before[3];
		const high = (ran + late) / lane.most;
		s.cols[x * 6 + 1] = ran / lane.most;
		s.cols[x * 6 + 5] = late / lane.most;
		s.cols[x * 6 + 3] = ran + late + other > 0 ? max(0, dt - high) : 0;
		s.marks[x] = late > 0;
	}
	r.lane(x0, y, w, hgt, s.cols, 6, dt, [1, 5, 3], cpuPens(), 0, dead, s.marks, 5, unit);
}

const threadOfTid = tid => threadLabel(pass().threads.findIndex(t => t.tid === tid));

// What kept the event loop's thread busy.
function whyLate(d) {
	if (d.loop_tid === null) return "";
	const loop = threadOfTid(d.loop_tid);
	if (d.gil_wait_ns * 2 >= d.ns)
		return words.lateByGil(
			loop,
			fmtDur(d.gil_wait_ns),
			d.holder_tid === null ? "" : threadOfTid(d.holder_tid),
			d.holder_function || "",
		);
	if (d.function)
		return words.lateByFunction(loop, fmtDur(d.function_ns), placedCall(d.function));
	return d.slept_ns
		? words.lateBySelector(loop, fmtDur(d.slept_ns))
		: words.lateBySteps(loop, d.other_steps);
}

export function taskTip(i, t) {
	const lane = levelsOf(taskLanes()[i]),
		d = groupOf(i).longest_late,
		k = upper(lane.at, 0, lane.at.length, t) - 1,
		ns = lane.dur[k];
	const number = kind => {
		const n = lane[kind][k] / ns;
		return (lane.exact || n === 0 ? n : n.toFixed(2)) + " " + kind;
	};
	return [
		h("b", taskName(i)),
		groupOf(i).loop !== "asyncio" && soft(words.onLoop(groupOf(i).loop)),
		ns &&
			h(
				"span",
				TASK_STATES.filter(q => q !== "unknown" || lane[q][k])
					.map(number)
					.join(", "),
			),
		ns && !lane.exact && soft(words.averageOver(fmtDur(ns))),
		d && h("span", words.longestLate(fmtDur(d.ns), d.inferred, fmtAt(d.at_ns, 1e6))),
		d && whyLate(d) && soft(whyLate(d)),
	];
}

export function seeTasks(i) {
	const row = tl.rows.find(r => r.kind === "tasks" && r.group === i);
	if (row) tlBox.scrollTop = max(0, row.y - tl.top - 60);
	seeTimeline();
}

export function goToLate(i) {
	const d = groupOf(i).longest_late;
	if (!d) return;
	flyToSpan(d.at_ns, d.at_ns + d.ns);
	seeTasks(i);
}

export function tasksDraw() {
	const lanes = taskLanes();
	$("tasks").hidden = !lanes.length;
	if (!lanes.length) return;
	const {groups, count, steps} = report.tasks,
		inferred = groups.reduce((ns, g) => ns + g.late_inferred_ns, 0),
		silent = ["uvloop", "greenlet"], // loops that do not show when a task becomes ready
		unknown = groups.reduce((ns, g) => ns + (silent.includes(g.loop) ? g.unknown_ns : 0), 0),
		left = meta.tasks.groups > lanes.length;
	fill(
		$("tasks-note"),
		words.tasksNote(count, steps),
		inferred > 0 && words.lateInferred(fmtDur(inferred)),
		unknown > 0 && words.lateUnknown(fmtDur(unknown)),
		left && words.groupsShown(lanes.length),
	);
	const column = (head, key, title, text = fmtDur) =>
		tally(
			head,
			key,
			r => r.g[key],
			r => text(r.g[key]),
			title,
		);
	const ns = r => (r.g.longest_late ? r.g.longest_late.ns : 0),
		why = r => (r.g.longest_late ? whyLate(r.g.longest_late) : "");
	const place = r => {
		const at = r.g.waits[0];
		return at ? callPlace(at.function).replace(/\d+$/, at.line) : "";
	};
	fill(
		$("tasks-body"),
		makeTable(
			[
				{
					head: words.task,
					value: r => taskName(r.i),
					cell: r => code(taskName(r.i), r.g.name),
				},
				{head: words.loop, value: r => r.g.loop},
				{head: words.waitsAt, value: place},
				column(words.tasksHead, "tasks", "", fmtCount),
				column(words.steps, "steps", "", fmtCount),
				column(words.running, "running_ns"),
				column(words.waiting, "waiting_ns"),
				column(words.late, "late_ns"),
				column(words.gilWait, "late_gil_wait_ns", words.gilWaitHelp),
				column(words.unknownHead, "unknown_ns", words.unknownHelp),
				tally(words.longestDelay, "longest_late_ns", ns, r =>
					ns(r) ? jumpTo(fmtDur(ns(r)), () => goToLate(r.i)) : "–",
				),
				{head: words.because, wide: true, value: why},
			],
			groups.map((g, i) => ({g, i})),
			{
				caption: words.tasksOfLoops,
				hideCaption: true,
				sort: 7,
				limit: 10,
			},
		),
	);
}

// SPDX-License-Identifier: MIT
// The positions of the timeline's rows, and the mapping between times and positions.

import {crowdLabel, crowdOf} from "./crowds.js";
import {gilKnown, pass, taskLanes} from "./data.js";
import {$, toward} from "./dom.js";
import {emit} from "./events.js";
import {tellingDepths} from "./library.js";
import {max} from "./math.js";
import {holdersIn, mainHolder} from "./pick.js";
import {samplesAlone} from "./samples.js";
import {WAIT_STATE} from "./states.js";
import {store} from "./store.js";
import {lifeOf, only, passDur, pinned, rowsThreads, setOnly, shown, span, view} from "./view.js";
import * as words from "./words.js";

export let GUTTER = 212; // narrower on a small screen, without shares after the names
export const AXIS = 26;
const GIL_H = 24;
const CPU_H = 10;
const CALL_H = 15;
const COUNTER_H = 20;
const SAMPLE_H = 14;
const OWNER_H = 22;
const PROCESS_H = 22;
const SLOT_H = 18;
const TASKS_H = 24;
const CROWD_H = 30;
const THIN_H = 4;
export const PAD = 8;
const DEPTH_FEW = 6; // the most rows of calls of a thread that is not opened

export const tl = {
	/** @type {Row[]} */
	rows: [],
	top: 26, // where the scrolling rows begin, below the axis and the fixed lanes
	height: 0,
	scale: 1,
	width: 0,
	viewHeight: 0,
	raster: null,
	opened: new Set(),
	hover: null,
	drawMs: [],
};

export const tlCanvas = $("tl");
export const tlBox = $("tl-box");

const LANES_MAX = 40; // the most threads with rows until the reader asks for all

// Make sure that a thread has rows.
export function unhide(thread) {
	if (only && !only.has(thread)) setOnly(null);
	if (!tl.all && !tl.compact && rowsThreads().indexOf(thread) >= LANES_MAX) {
		tl.all = true;
		emit("filter");
		tlLayout();
	}
}

const MANY = 12; // if there are more threads, only those that live in the part in view are shown
const STICKY = 3; // the number of lanes of holders that do not scroll

// The thread that held the GIL for most of the pinned wait: its lane is shown next to the wait.
function guestOf() {
	if (!pinned || pinned.kind !== "gil" || pinned.state !== WAIT_STATE || pass().locks) return -1;
	const who = holdersIn(pinned.from, pinned.to, pinned.gil, pinned.thread),
		most = mainHolder(who, pinned.to - pinned.from);
	return most && !most.crowd ? most.thread : -1;
}

// The threads that have rows: {threads, alive: the number of those that could have rows}
function threadsShown() {
	const all = rowsThreads(),
		lives = i => pass().threads[i].from_ns < view.to && pass().threads[i].to_ns > view.from;
	tl.many = all.length > MANY;
	const alive =
		tl.many && !isAligned()
			? all.filter(i => lives(i) || (pinned && pinned.thread === i))
			: all;
	const threads = !tl.all && !tl.slots && !tl.compact ? alive.slice(0, LANES_MAX) : alive;
	return {threads, alive: alive.length};
}

const setText = (el, text) => el.textContent === text || (el.textContent = text);

function tellFold(threads, alive) {
	$("all-threads").hidden = threads.length === alive;
	setText($("all-threads"), words.showAllThreads(alive, LANES_MAX));
	$("slots").hidden = $("compact").hidden = !tl.many || !gilKnown();
	$("compact").setAttribute("aria-pressed", String(!!tl.compact));
	$("slots").setAttribute("aria-pressed", String(!!tl.slots));
	$("aligned").hidden = $("slots").hidden || !tl.slots;
	$("aligned").setAttribute("aria-pressed", String(!!tl.aligned));
}

// Lists of threads by process, in the order of their first threads; one list for a single process.
function byProcess(threads) {
	const by = new Map();
	for (const i of threads) {
		const {pid} = pass().threads[i];
		if (!by.has(pid)) by.set(pid, []);
		by.get(pid).push(i);
	}
	return [...by];
}

// Short-lived threads, packed into as few lanes as possible: [[thread, …], …] by start.
function packed(threads) {
	const lanes = [],
		life = i => pass().threads[i];
	for (const i of [...threads].sort((a, b) => life(a).from_ns - life(b).from_ns)) {
		const free = lanes.find(l => life(l[l.length - 1]).to_ns <= life(i).from_ns);
		if (free) free.push(i);
		else lanes.push([i]);
	}
	return lanes;
}

const isShort = i => lifeOf(i) < passDur() / 2;
const isAligned = () => tl.slots && tl.aligned;

// The longest lifetime of the threads that have slots.
export const longestShort = () => max(1, ...rowsThreads().filter(isShort).map(lifeOf));

// Add a row below the others; to: {rows, y}
function pile(to, row) {
	row.y = to.y;
	to.rows.push(row);
	to.y += row.h;
}

function pileThread(to, thread, guest) {
	const st = store(),
		top = to.y,
		first = to.rows.length;
	to.y += PAD / 2;
	if (shown.gil && gilKnown()) pile(to, {kind: "gil", thread, h: GIL_H});
	if (pinned && pinned.thread === thread && guest >= 0 && guest !== thread)
		pile(to, {kind: "held", thread: guest, h: GIL_H - 6});
	if (shown.cpu && st.cpu[thread] && !samplesAlone())
		pile(to, {kind: "cpu", thread, h: gilKnown() ? CPU_H : GIL_H});
	if (shown.counters)
		(st.counters[thread] || []).forEach((sections, counter) => {
			pile(to, {kind: "counter", thread, counter, sections, h: COUNTER_H});
		});
	if (shown.samples && st.sampled.runs[thread])
		pile(to, {kind: "samples", thread, h: gilKnown() ? SAMPLE_H : GIL_H});
	if (shown.py) pileCalls(to, thread, st.slices[thread] || []);
	if (to.rows.length === first) pile(to, {kind: "name", thread, h: GIL_H});
	to.y += PAD / 2;
	Object.assign(to.rows[first], {head: true, top, bottom: to.y});
}

function pileCalls(to, thread, calls) {
	const few = tellingDepths(calls).slice(0, DEPTH_FEW),
		opened = tl.opened.has(thread),
		list = opened ? [...calls.keys()] : few;
	if (list.length) to.y += 2;
	list.forEach((depth, k) => {
		const row = {kind: "py", thread, depth, h: CALL_H, lead: !k};
		if (k === list.length - 1)
			row.more = opened ? few.length - list.length : calls.length - k - 1;
		pile(to, row);
	});
}

// The threads that have no rows of their own but a thin one below their crowd's.
const thinOf = list =>
	tl.compact && gilKnown()
		? list.filter(i => crowdOf(i).name && !(pinned && pinned.thread === i))
		: [];

// A row that counts the threads of a crowd in each state, and a thin one for each thread.
function pileCrowds(to, threads) {
	for (const crowd of new Set(threads.map(crowdOf))) {
		const own = threads.filter(i => crowdOf(i) === crowd);
		to.y += PAD / 2;
		pile(to, {kind: "crowd", text: crowdLabel(crowd), threads: own, h: CROWD_H});
		for (const thread of own) pile(to, {kind: "thin", thread, h: THIN_H});
	}
}

export function tlLayout() {
	const to = {rows: [], y: AXIS},
		{threads, alive} = threadsShown(),
		guest = guestOf();
	tellFold(threads, alive);
	const gils = gilKnown() ? [...pass().gils.keys()] : [];
	const owners = gils.filter(i => gils.length <= 4 || pass().gils[i].wanted_ns > 0);
	const fixed = owners.length <= STICKY;
	for (const gil of owners) pile(to, {kind: "owner", gil, h: OWNER_H, fixed});
	tl.top = fixed ? to.y : AXIS;
	to.y += PAD / 2;
	const processes = byProcess(threads);
	for (const [pid, list] of processes) {
		if (processes.length > 1) pile(to, {kind: "process", pid, h: PROCESS_H});
		const short = new Set(tl.slots ? list.filter(isShort) : []);
		const thin = new Set(thinOf(list.filter(i => !short.has(i))));
		for (const thread of list)
			if (!short.has(thread) && !thin.has(thread)) pileThread(to, thread, guest);
		pileCrowds(to, [...thin]);
		if (isAligned()) {
			pile(to, {kind: "process", text: words.fromStartOfEach, h: PROCESS_H});
			for (const i of [...short].sort((a, b) => lifeOf(b) - lifeOf(a)))
				pile(to, {kind: "slot", threads: [i], shift: pass().threads[i].from_ns, h: SLOT_H});
		} else
			packed([...short]).forEach((of, n) => {
				pile(to, {kind: "slot", threads: of, n, h: SLOT_H});
			});
	}
	if (shown.tasks)
		for (const group of taskLanes().keys()) {
			if (!group) pile(to, {kind: "process", text: words.tasksOfLoops, h: PROCESS_H});
			pile(to, {kind: "tasks", group, h: TASKS_H});
		}
	tl.rows = to.rows;
	tl.height = to.y + 6;
	if (tl.spaceHeight !== tl.height) $("tl-space").style.height = tl.height + "px";
	tl.spaceHeight = tl.height;
}

// Lay out again for another part in view, without moving the row that the reader looks at.
export function tlFollow() {
	if (!tl.many) return;
	const of =
		tl.hover?.head?.thread ??
		tl.rows.find(r => r.head && r.bottom > tlBox.scrollTop + tl.top)?.thread;
	const topOf = () => tl.rows.find(r => r.head && r.thread === of)?.top;
	const before = topOf();
	tlLayout();
	const after = topOf();
	if (before !== undefined && after !== undefined && before !== after)
		tlBox.scrollTop += after - before;
}

/**
 * Show all calls of the thread if the pinned call has no row.
 * @type {(pin: Pin) => void}
 */
export function openFor(pin) {
	if (pin.kind !== "py" || rowOf(pin) || !shown.py) return;
	tl.opened.add(pin.thread);
	emit("filter");
	tlLayout();
}

// Scroll the page to the timeline unless a part of it is visible.
export function seeTimeline() {
	const box = $("timeline").getBoundingClientRect();
	if (box.bottom < 200 || box.top > innerHeight - 200) toward("timeline");
}

export function setGutter(px) {
	GUTTER = px;
	document.documentElement.style.setProperty("--gutter", px + 1 + "px");
}

export const timeToX = t => GUTTER + ((t - view.from) / span()) * (tl.width - GUTTER);
export const xToTime = x => view.from + ((x - GUTTER) / (tl.width - GUTTER)) * span();

/** @type {(pin: {kind: string, thread: number, depth?: number}) => Row | undefined} */
export function rowOf(pin) {
	if (tl.slots && pin.kind === "gil") {
		const slot = tl.rows.find(row => row.kind === "slot" && row.threads.includes(pin.thread));
		if (slot) return slot;
	}
	return tl.rows.find(
		row =>
			(row.kind === pin.kind || (row.kind === "thin" && pin.kind === "gil")) &&
			row.thread === pin.thread &&
			(pin.kind !== "py" || row.depth === pin.depth),
	);
}

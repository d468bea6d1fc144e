// SPDX-License-Identifier: MIT
// All of the time of a span by cause, to the nanosecond: on a CPU, waiting for the GIL (by holder
// and function), runnable (by the thread that had the CPU), blocked by a lock, or in I/O.

import {pass, threadLabel} from "./data.js";
import {h, soft} from "./dom.js";
import {fmtDur, fmtPct} from "./format.js";
import {max, min} from "./math.js";
import {
	FRAME_KERNEL,
	FRAME_PYTHON,
	doing,
	doingText,
	framesOf,
	holdDoing,
	pinLane,
} from "./pick.js";
import {queuedOwners} from "./queued.js";
import {
	DISK_STATE,
	FREE_STATE,
	HOLD_STATE,
	NONE_STATE,
	RUNNABLE_STATE,
	SWITCH_STATE,
	WAIT_STATE,
} from "./states.js";
import {store} from "./store.js";
import {goToPin, jumpTo} from "./table.js";
import {palette, threadColor} from "./theme.js";
import {gilOf, upper} from "./tracks.js";
import {turns} from "./turns.js";
import * as words from "./words.js";

const PARTS = 20000; // the most parts of a span that are told apart
const NAMED = 300; // the number of parts, longest first, whose function is looked up
const ROWS = 9;

// The colours of the causes; words.causes has their names.
export const CAUSES = {
	gil: "wait",
	handoff: "freewait",
	switched: "wait",
	free: "freewait",
	released: "wait",
	unseen: "wait",
	unlocked: "freewait",
	stopped: "wait",
	cpu: "running",
	native: "noneRun",
	held: "running",
	nogil: "other",
	runnable: "runnable",
	lock: "disk",
	io: "other",
	disk: "disk",
	asleep: "other",
	unknown: "unknown",
};

const LOCK_NAME = /acquire|lock|Condition|\bwait\b|join|futex|sem_|Queue|Event/i;
const IO_NAME = /read|recv|send|write|poll|select|accept|connect|sleep|fsync|open/i;

// Find out from its stack or its calls why a thread slept.
function sleepOf(part, stack) {
	const native = framesOf(stack).filter(f => !(f.flags & (FRAME_PYTHON | FRAME_KERNEL)));
	const what = doing(part.thread, part.from, part.to, stack);
	part.what = what;
	const text = (what ? what.name : "") + " " + native.map(f => f.name).join(" ");
	part.kind = LOCK_NAME.test(text) ? "lock" : IO_NAME.test(text) ? "io" : "asleep";
	// An interrupt of a timer or a packet ends I/O, and the thread that it interrupts seems to be
	// the waker.
	if (part.kind === "io") part.who = -1;
}

// Divide a part that is not a wait by the thread's CPU states.
function byCpu(thread, from, to, holds, put) {
	const lane = store().cpu[thread],
		plain = holds ? "held" : holds === false ? "nogil" : "unknown";
	let at = from;
	if (lane)
		lane.each(from, to, (a, b, state, s, i) => {
			const x = max(a, from),
				y = min(b, to);
			if (x > at) put(plain, at, x);
			at = y;
			if (!state) return put(plain, x, y);
			if (state === 1) return put(holds ? "cpu" : "native", x, y);
			if (state === RUNNABLE_STATE) {
				const who = queuedOwners(pinLane("cpu", thread, a));
				return put("runnable", x, y, {who: who ? who.thread : -1, text: who?.text});
			}
			if (state === DISK_STATE) return put("disk", x, y);
			const waker = (s.waker && (s.waker[i] || s.waker[i + 1])) || 0;
			put("asleep", x, y, {who: waker - 1, stack: s.stack ? s.stack[i] : 0, asleep: true});
		});
	if (to > at) put(plain, at, to);
}

// Divide a wait by the holds of other threads.
function byHolder(thread, from, to, gil, put) {
	const {lane, threads} = turns(max(0, gil));
	let at = from;
	lane.each(from, to, (a, b, state, s, i) => {
		if (!state || threads[i] === thread) return;
		if (a > at) put("handoff", at, a);
		put("gil", max(at, a), min(b, to), {who: threads[i]});
		at = min(b, to);
	});
	if (to > at) put("handoff", at, to);
}

// Divide a time by the threads that released the locks for which the thread waited meanwhile;
// between(from, to) divides what is no such wait.
function byReleaser(thread, from, to, put, between) {
	let at = from;
	for (const s of store().released[thread] || [])
		for (let i = max(0, upper(s.time, 0, s.n, from) - 1); i < s.n && s.time[i] < to; i++) {
			const a = max(at, s.time[i]),
				b = min(to, s.time[i] + s.dur[i]);
			if (b <= a) continue;
			if (a > at) between(at, a);
			if (s.by[i] > 1) put("released", a, b, {who: s.by[i] - 2});
			else put(s.by[i] && !pass().locks ? "unlocked" : "unseen", a, b);
			at = b;
		}
	if (to > at) between(at, to);
}

// [{kind, thread, from, to, who, what}]: parts of [from, to) in order, without gaps. If there are
// more than PARTS, the rest is a single part of kind unknown.
export function chainOf(thread, from, to) {
	const out = [],
		lane = store().gil[thread];
	let at = from;
	const put = (kind, a, b, more = {}) => {
		if (b <= a || out.length > PARTS) return;
		out.push({kind, thread, from: a, to: b, who: -1, what: null, ...more});
		at = b;
	};
	if (lane)
		lane.each(from, to, (a, b, state, s, i) => {
			if (out.length > PARTS) return;
			const x = max(a, from),
				y = min(b, to);
			if (x > at) byCpu(thread, at, x, undefined, put);
			if (state === WAIT_STATE && pass().locks)
				byReleaser(thread, x, y, put, (p, q) => put("unseen", p, q));
			else if (state === WAIT_STATE) byHolder(thread, x, y, gilOf(s, i), put);
			else if (state === SWITCH_STATE) put(pass().locks ? "stopped" : "switched", x, y);
			else if (state === FREE_STATE) put("free", x, y);
			else if (state === NONE_STATE && !pass().locks)
				byReleaser(thread, x, y, put, (p, q) => byCpu(thread, p, q, false, put));
			else if (state === HOLD_STATE || state === NONE_STATE)
				byCpu(thread, x, y, state === HOLD_STATE, put);
			else put("unknown", x, y);
		});
	if (out.length <= PARTS) byCpu(thread, at, to, undefined, put);
	else out.push({kind: "unknown", thread, from: at, to, who: -1, what: null});
	name(out);
	return out;
}

// Name the functions of the holders in the longest parts, and the reasons of the longest sleeps.
function name(parts) {
	const wanted = parts.filter(p => p.kind === "gil" || p.asleep);
	wanted.sort((a, b) => b.to - b.from - (a.to - a.from));
	for (const p of wanted.slice(0, NAMED))
		if (p.asleep) sleepOf(p, p.stack);
		else {
			const pin = pinLane("gil", p.who, (p.from + p.to) / 2);
			p.what = holdDoing(p.who, p.from, p.to, pin ? pin.stack : 0);
		}
}

// [{kind, who, what, text, ns, parts, longest}], most time first
export function causesOf(parts) {
	const by = new Map();
	for (const p of parts) {
		const key = [p.kind, p.who, p.text, p.what && p.what.name].join("\0");
		let row = by.get(key);
		if (!row) by.set(key, (row = {...p, ns: 0, parts: [], longest: p}));
		row.ns += p.to - p.from;
		row.parts.push(p);
		if (p.to - p.from > row.longest.to - row.longest.from) row.longest = p;
	}
	return [...by.values()].sort((a, b) => b.ns - a.ns);
}

// The words for a cause, with its thread or program.
export const causeText = row =>
	words.causeBy(row.kind, row.who >= 0 ? threadLabel(row.who) : row.text || "", row.asleep);

export const causeColor = row =>
	row.kind === "gil" || row.kind === "released"
		? threadColor(row.who)
		: row.kind === "cpu" || row.kind === "held"
			? threadColor(row.thread)
			: palette[CAUSES[row.kind]];

// The blocks of a row; those that touch on the screen are merged.
function blocks(row, from, total) {
	const out = [];
	for (const p of row.parts) {
		const a = (p.from - from) / total,
			b = (p.to - from) / total,
			last = out[out.length - 1];
		if (last && a - last[1] < 0.002) last[1] = b;
		else out.push([a, b]);
	}
	return out.map(([a, b]) =>
		h("i", {
			style:
				"left:" +
				(a * 100).toFixed(3) +
				"%;width:" +
				((b - a) * 100).toFixed(3) +
				"%;background:" +
				causeColor(row),
		}),
	);
}

// The waterfall: a row for each cause, a block for each time.
export function chainPanel(p) {
	const total = p.to - p.from,
		rows = causesOf(chainOf(p.thread, p.from, p.to));
	if (rows.length < 2 && p.kind !== "py") return null;
	const rest = rows.splice(ROWS);
	const line = (text, ns, strip, go) =>
		h(
			"li",
			h("span", text),
			h("span.fall", strip),
			h("span.num", fmtDur(ns)),
			h("span.num.soft", fmtPct(ns, total)),
			go || h("span"),
		);
	return h(
		p.kind === "py" ? "div.panel.full" : "div.panel.full.row",
		h("h3", words.whereTimeWent),
		h(
			"ol.chain",
			rows.map(row =>
				line(
					[causeText(row), row.what ? [words.beforePlace, doingText(row.what)] : null],
					row.ns,
					blocks(row, p.from, total),
					jumpTo(words.go, () => goToPart(row.longest)),
				),
			),
			rest.length
				? line(
						soft(words.smallerCauses(rest.length)),
						rest.reduce((n, r) => n + r.ns, 0),
						null,
					)
				: null,
		),
	);
}

function goToPart(part) {
	const waits = part.kind === "gil",
		pin = pinLane("gil", waits ? part.who : part.thread, (part.from + part.to) / 2);
	goToPin(pin || pinLane("cpu", part.thread, part.from));
}

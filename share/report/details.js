// SPDX-License-Identifier: MIT
// The details of the pinned span: exact times, the holders or waiters meanwhile, both stacks, and
// the neighbouring spans.

import {cardButtons} from "./card.js";
import {chainPanel} from "./chain.js";
import {gilText, meta, nobodyText, pass} from "./data.js";
import {$, code, factsList, fill, h, soft, toward} from "./dom.js";
import {emit, inSteps} from "./events.js";
import {functionShow} from "./flame.js";
import {fmtDur, fmtExact, fmtPct} from "./format.js";
import {laneTotals} from "./lod.js";
import {max, min} from "./math.js";
import {
	FRAME_BROKEN,
	FRAME_CUT,
	FRAME_KERNEL,
	FRAME_PYTHON,
	callName,
	callPlace,
	callsAt,
	doingText,
	framesOf,
	holdDoing,
	holdersIn,
	lanePin,
	mainHolder,
	markedFrames,
	nextWait,
	pinHead,
	shortCall,
	timeOfCalls,
	waitersIn,
} from "./pick.js";
import {queuedCpus, queuedPanel} from "./queued.js";
import {replayEnd, replayPanel} from "./replay.js";
import {sampledFrames, sampledPlace} from "./samples.js";
import {searchFor} from "./search.js";
import {FREE_STATE, HOLD_STATE, RUNNABLE_STATE, SWITCH_STATE, WAIT_STATE} from "./states.js";
import {store} from "./store.js";
import {empty, goToPin, jumpTo, shareItem, stackList, threadTag} from "./table.js";
import {palette, threadColor} from "./theme.js";
import {flyToSpan, notes, pinned, setRange} from "./view.js";
import * as words from "./words.js";

const SHARES = 8; // the most rows of a list

function shareList(title, list, total, jump, extra) {
	if (!list.length && !extra) return null;
	const rest = list.slice(SHARES);
	return h(
		"div.panel",
		h("h3", title, rest.length ? words.someThreads(SHARES, list.length) : ""),
		h(
			"ol.shares",
			list.slice(0, SHARES).map(({thread, ns}) =>
				shareItem(
					ns,
					total,
					threadColor(thread),
					threadTag(thread),
					jumpTo(words.go, () => jump(thread)),
				),
			),
			rest.length
				? h(
						"li",
						soft(
							words.otherThreads(
								rest.length,
								fmtDur(rest.reduce((n, r) => n + r.ns, 0)),
							),
						),
					)
				: null,
			extra ? shareItem(extra, total, palette.line, soft(nobodyText())) : null,
		),
	);
}

// The longest stretch of `state` of a thread in [from, to), to jump to.
export function longestIn(thread, from, to, states) {
	let best = null;
	const lane = store().gil[thread];
	lane.each(from, to, (a, b, state, s, i) => {
		const d = min(b, to) - max(a, from);
		if (states.includes(state) && (!best || d > best.d))
			best = {d, at: {s, k: lane.sections.indexOf(s), i}};
	});
	return best && lanePin("gil", thread, best.at);
}

const stackPanel = (title, frames, note) =>
	h("div.panel", h("h3", title), frames.length ? stackList(frames) : empty(note));

function pythonFrames(p) {
	const t = p.kind === "py" ? p.from : (p.from + p.to) / 2;
	const calls = callsAt(p.thread, t).filter((c, d) => p.kind !== "py" || d <= p.depth);
	if (p.kind === "samples") return sampledFrames(p.stack).reverse().map(sampledPlace);
	if (calls.length)
		return calls
			.reverse()
			.map(c => ({name: shortCall(c.name), place: callPlace(c.name), dur: c.to - c.from}));
	return framesOf(p.stack)
		.filter(f => f.flags & FRAME_PYTHON)
		.reverse()
		.map(f => ({name: f.name, place: f.module ? f.module + (f.line ? ":" + f.line : "") : ""}));
}

const nativeFrames = p =>
	markedFrames(p.kind === "samples" ? 0 : p.stack)
		.filter(f => !(f.flags & FRAME_PYTHON))
		.reverse()
		.map(f => ({
			name:
				f.name +
				(f.flags & FRAME_CUT
					? words.frameCut
					: f.flags & FRAME_BROKEN
						? words.frameBroken
						: "") +
				(f.unsure ? words.frameUnsure : ""),
			place: f.module,
			kernel: f.flags & FRAME_KERNEL,
		}));

function flagWords(p) {
	const out = [];
	if (p.kind === "gil" && p.flags & 1) out.push(words.endInferred);
	if (p.kind === "gil" && p.flags & 2) out.push(words.startAssumed);
	if ((p.kind === "gil" && p.flags & 4) || (p.kind === "py" && p.flags & 1))
		out.push(words.notEnded);
	return out.join("; ");
}

function callFacts(p) {
	const name = callName(p.name),
		sum = laneTotalsOf(p.thread, p.from, p.to);
	const d = p.to - p.from,
		id = p.name,
		st = store();
	return [
		[
			words.functionHead,
			code(shortCall(name)),
			" ",
			soft(callPlace(name)),
			" ",
			jumpTo(words.findAllCalls, () => searchFor(shortCall(name))),
			" · ",
			jumpTo(words.callersAndCallees, () => {
				functionShow(name);
				toward("flame");
			}),
		],
		sum && [
			gilText(words.heldIt),
			words.withShare(fmtDur(sum[HOLD_STATE]), fmtPct(sum[HOLD_STATE], d)),
		],
		sum && [
			gilText(words.waitedForIt),
			words.withShare(
				fmtDur(sum[WAIT_STATE] + sum[SWITCH_STATE]),
				fmtPct(sum[WAIT_STATE] + sum[SWITCH_STATE], d),
			),
		],
		[
			words.allItsCalls,
			words.calls(st.nameCount[id] || 0) + ", ",
			totalOf(id),
			words.longestInRecording(fmtDur(st.nameLongest[id] || 0)),
		],
	];
}

const totalFill = inSteps(function* (id, el) {
	el.textContent = fmtDur(yield* timeOfCalls(other => other === id)) + ", ";
});

// The time of all calls of a function, which is filled in once it is known.
function totalOf(id) {
	const el = h("span");
	totalFill(id, el);
	return el;
}

function laneTotalsOf(thread, from, to) {
	const lane = store().gil[thread];
	return lane ? laneTotals(lane, from, to) : null;
}

// The reader's note on this moment. Links and cards contain it, and a flag on the axis marks it.
function noteBox(p) {
	const write = e => {
		const text = e.target.value.trim();
		if (text) notes.set(p.from, text);
		else notes.delete(p.from);
		emit("link");
		emit("search");
	};
	return h("input.note", {
		placeholder: words.note,
		"aria-label": words.noteOnMoment,
		value: notes.get(p.from) || "",
		onchange: write,
	});
}

export function detailsDraw() {
	const box = $("details"),
		p = pinned;
	box.hidden = !p;
	replayEnd();
	if (!p) return;
	const d = p.to - p.from,
		flags = flagWords(p);
	const isWait = p.kind === "gil" && p.state >= WAIT_STATE && p.state !== FREE_STATE,
		isHold = p.kind === "gil" && p.state === HOLD_STATE;
	const facts = [
		[words.thread, threadTag(p.thread), soft(" ", words.tid(pass().threads[p.thread].tid))],
		d && [words.duration, h("b", fmtExact(d))],
		[d ? words.from : words.sampledAt, fmtExact(p.from)],
		d && [words.to, fmtExact(p.to)],
	];
	if (p.kind === "py") facts.push(...callFacts(p));
	if ("cpu" in p && p.cpu >= 0) facts.push([words.cpu, String(p.cpu)]);
	if ("waker" in p && p.waker >= 0) facts.push([words.wokenBy, threadTag(p.waker)]);
	if (p.kind === "cpu" && p.state === RUNNABLE_STATE)
		facts.push([words.queuedOnHead, queuedCpus(p) || words.aCpu]);
	if (flags) facts.push([words.note, flags]);
	const side = [queuedPanel(p)];
	if (isWait) {
		const who = holdersIn(p.from, p.to, p.gil, p.thread);
		side.push(
			shareList(
				gilText(words.holdersMeanwhile),
				who.list,
				d,
				thread => goToPin(longestIn(thread, p.from, p.to, [HOLD_STATE])),
				who.nobody,
			),
		);
		const most = mainHolder(who, d),
			culprit = most && longestIn(most.thread, p.from, p.to, [HOLD_STATE]),
			from = culprit && max(culprit.from, p.from),
			to = culprit && min(culprit.to, p.to),
			what =
				culprit && (to - from) * 2 > d && holdDoing(most.thread, from, to, culprit.stack);
		if (what)
			facts.push([
				words.mostlyBecause,
				threadTag(most.thread),
				words.ranBetween,
				doingText(what),
			]);
		else if (most) facts.push([gilText(words.mostlyFor), most.name]);
	}
	if (isHold) {
		const what = holdDoing(p.thread, p.from, p.to, p.stack);
		if (what) facts.push([words.ran, doingText(what)]);
		side.push(
			shareList(
				gilText(words.waitersMeanwhile),
				waitersIn(p.from, p.to, p.gil, p.thread),
				d,
				thread => goToPin(longestIn(thread, p.from, p.to, [WAIT_STATE, SWITCH_STATE])),
			),
		);
	}
	const noPy = pass().slices_note || words.noCallKnown;
	const python = pythonFrames(p),
		native = nativeFrames(p);
	fill($("details-h"), pinHead(p));
	fill(
		$("details-body"),
		h(
			"div.panels",
			h(
				"div.panel",
				factsList(facts),
				h(
					"p.under",
					store().gil[p.thread] && [
						h("button", {onclick: () => nextWait(-1)}, words.previousWait),
						h("button", {onclick: () => nextWait(1)}, words.nextWait),
					],
					h("button", {onclick: () => flyToSpan(p.from, p.to)}, words.zoomToIt),
					d > 0 &&
						h("button", {onclick: () => setRange(p.from, p.to)}, words.selectItsRange),
				),
				cardButtons(p),
				noteBox(p),
			),
			stackPanel(words.pythonStack, python, noPy),
			side,
			chainPanel(p),
			replayPanel(p),
			native.length || meta.passes.some(q => q.name === "stacks")
				? stackPanel(
						words.nativeStack,
						native,
						pass().name === "stacks" ? words.noNativeStack : words.stackRecordingHas,
					)
				: null,
		),
	);
}

// SPDX-License-Identifier: MIT
// Search in the names of functions and threads: the number and time of the hits, which are marked
// everywhere. The keys n and N step through them.

import {gilKnown, pass, threadLabel} from "./data.js";
import {$, click, listen} from "./dom.js";
import {emit, inSteps, on, whenQuiet} from "./events.js";
import {fmtDur} from "./format.js";
import {openFor, seeTimeline, tlCanvas, tlLayout, unhide} from "./layout.js";
import {floor, max, min} from "./math.js";
import {callPin, callPlace, lanePin, reveal, shortCall, timeOfCalls} from "./pick.js";
import {HOLD_STATE} from "./states.js";
import {store} from "./store.js";
import {upper} from "./tracks.js";
import {hits, passDur, pinned, setPin, setThreadHits, setView, span, view} from "./view.js";
import * as words from "./words.js";

// By id, whether part(name) contains the text; null if no call's name does.
function litNames(low, part) {
	const st = store(),
		lit = new Uint8Array(st.names.slices.length + 1);
	st.names.slices.forEach((name, id) => {
		if (st.nameCount[id] && part(name).toLowerCase().includes(low)) lit[id] = 1;
	});
	return lit.includes(1) ? lit : null;
}

export function searchFor(text) {
	$("search").value = text;
	searchRun();
}

export function searchRun() {
	const text = (hits.text = $("search").value.trim());
	hits.lit = null;
	hits.test = null;
	hits.count = hits.total = 0;
	setThreadHits(null);
	if (text) {
		const low = text.toLowerCase();
		const lit = litNames(low, shortCall) || litNames(low, callPlace);
		const threads = pass()
			.threads.map((t, i) => i)
			.filter(i => threadLabel(i).toLowerCase().includes(low));
		if (lit)
			Object.assign(hits, {
				lit,
				count: store().nameCount.reduce((n, count, id) => n + (lit[id] ? count : 0), 0),
			});
		else if (!searchSpans(low) && threads.length) setThreadHits(i => threads.includes(i));
		$("found").textContent = hits.count
			? (hits.lit ? words.calls : gilKnown() ? words.holdsFound : words.spansFound)(
					hits.count,
				)
			: threads.length
				? words.threads(threads.length)
				: words.nothingFound;
	} else {
		$("found").textContent = "";
	}
	hits.parts = null;
	sumHits();
	$("found-prev").hidden = $("found-next").hidden = !hits.count;
	emit("search");
	emit("filter");
}

// If no such call was recorded: search for holds or sleeps with the name in their stack.
function searchSpans(low) {
	const st = store(),
		lit = new Uint8Array(st.stacks.parent.length);
	st.stacks.parent.forEach((up, id) => {
		lit[id] =
			lit[up] ||
			(id && (st.names.stacks[st.stacks.name[id]] || "").toLowerCase().includes(low));
	});
	hits.test = (s, i) => s.stack && lit[s.stack[i]] && (!gilKnown() || s.state[i] === HOLD_STATE);
	searchLanes().forEach(lane =>
		lane.each(0, passDur(), (from, to, state, s, i) => {
			if (hits.test(s, i)) {
				hits.count++;
				hits.total += to - from;
			}
		}),
	);
	return hits.count;
}

const searchLanes = () => (gilKnown() ? store().gil : store().cpu);

// The time of the hits; and where they are in the whole recording, for the strip: 1 for each of its
// 4096 parts that has a hit.
const sumHits = inSteps(function* () {
	if (!hits.count) return;
	const parts = new Uint8Array(4096),
		width = passDur() / parts.length,
		text = $("found").textContent;
	const mark = (from, to) => parts.fill(1, max(0, floor(from / width)), floor(to / width) + 1);
	if (hits.test)
		for (const lane of searchLanes())
			lane?.each(0, passDur(), (from, to, state, s, i) => hits.test(s, i) && mark(from, to));
	else hits.total = yield* timeOfCalls(id => hits.lit[id], mark);
	hits.parts = parts;
	$("found").textContent = text + " · " + fmtDur(hits.total);
	emit("search");
});

// The next hit (by = ±1) after the pinned one, or after the start of the view.
export function nextHit(by) {
	const best = !hits.count ? null : hits.lit ? nextCall(by) : nextSpan(by);
	if (best) {
		setPin(best);
		showHit(best);
	} else if (hits.count && pinned) {
		// continue at the other end
		setPin(null, true);
		setView(by > 0 ? 0 : passDur() - span(), by > 0 ? span() : passDur());
		nextHit(by);
	}
}

function nextCall(by) {
	const from =
		pinned && pinned.kind === "py" && hits.lit[pinned.name]
			? pinned
			: {from: by > 0 ? view.from - 1 : view.to, depth: 1e9, thread: -1};
	let best = null;
	const before = (a, b) => a.from - b.from || a.thread - b.thread || a.depth - b.depth;
	store().slices.forEach(
		(rows, thread) =>
			rows &&
			rows.forEach((row, depth) => {
				const c = hitInRow(row, thread, depth, from, by);
				if (c && (!best || before(c, best) * by < 0)) best = c;
			}),
	);
	return best;
}

function nextSpan(by) {
	const t = pinned ? pinned.from : by > 0 ? view.from - 1 : view.to;
	let best = null;
	searchLanes().forEach((lane, thread) => {
		const to = lane.step(lane.start(t, by), by, hits.test),
			pin = to && lanePin(gilKnown() ? "gil" : "cpu", thread, to);
		if (pin && (pin.from - t) * by > 0 && (!best || (pin.from - best.from) * by < 0))
			best = pin;
	});
	return best;
}

function showHit(p) {
	unhide(p.thread);
	tlLayout();
	openFor(p);
	reveal(p);
	seeTimeline();
}

function hitInRow(row, thread, depth, from, by) {
	const after = t =>
		by > 0
			? t > from.from ||
				(t === from.from &&
					(thread > from.thread || (thread === from.thread && depth > from.depth)))
			: t < from.from ||
				(t === from.from &&
					(thread < from.thread || (thread === from.thread && depth < from.depth)));
	const list = by > 0 ? row.sections : row.sections.slice().reverse();
	for (const s of list) {
		if (by > 0 ? s.start[s.n - 1] < from.from : s.t0 > from.from) continue;
		let i =
			by > 0
				? max(0, upper(s.start, 0, s.n, from.from) - 1)
				: min(s.n - 1, upper(s.start, 0, s.n, from.from));
		for (; i >= 0 && i < s.n; i += by)
			if (hits.lit[s.name[i]] && after(s.start[i]))
				return callPin(thread, depth, {s, k: row.sections.indexOf(s), i});
	}
	return null;
}

export function searchInit() {
	const box = $("search");
	listen(box, "input", whenQuiet(120, searchRun));
	listen(box, "keydown", e => {
		if (e.key === "Enter") {
			searchRun();
			nextHit(e.shiftKey ? -1 : 1);
		} else if (e.key === "Escape") {
			box.value = "";
			searchRun();
			tlCanvas.focus();
		}
	});
	click("found-next", () => nextHit(1));
	click("found-prev", () => nextHit(-1));
	on("complete pass", () => {
		if (box.value) searchRun();
	});
}

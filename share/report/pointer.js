// SPDX-License-Identifier: MIT
// The mouse on the timeline: hovering shows a tooltip, a click pins, dragging moves, dragging with
// Shift selects, and the wheel with Ctrl zooms.

import {gilText, pass, threadLabel} from "./data.js";
import {$, fill, h, listen, soft} from "./dom.js";
import {emit, on} from "./events.js";
import {fmtDur, fmtPct} from "./format.js";
import {AXIS, GUTTER, timeToX, tl, tlBox, tlCanvas, xToTime} from "./layout.js";
import {laneTotals} from "./lod.js";
import {max, min} from "./math.js";
import {
	callName,
	callPlace,
	doingText,
	holdDoing,
	holdersIn,
	mainHolder,
	pinCall,
	pinLane,
	pinSample,
	pinTime,
	pinTitle,
	stateWords,
	waitersIn,
} from "./pick.js";
import {queuedText} from "./queued.js";
import {sampledFrames, sampledPlace} from "./samples.js";
import {FREE_STATE, HOLD_STATE, WAIT_STATE} from "./states.js";
import {loading, store} from "./store.js";
import {goToLate, taskTip} from "./tasks.js";
import {tlRedraw} from "./timeline.js";
import {turns} from "./turns.js";
import {
	arranged,
	keepThread,
	notes,
	pinned,
	flyToSpan,
	panBy,
	range,
	setPin,
	setRange,
	setView,
	span,
	view,
	zoomAt,
} from "./view.js";
import * as words from "./words.js";

const EDGE = 5; // px around an edge of the range within which the edge can be dragged
const LONG_PRESS_MS = 450; // a finger that is held for this long selects

function tlHit(e) {
	const box = tlCanvas.getBoundingClientRect();
	const x = e.clientX - box.left,
		y = e.clientY - box.top + tlBox.scrollTop;
	const hit = {x, y, t: xToTime(x), row: null, pin: null};
	const inView = y - tlBox.scrollTop;
	if (inView < AXIS) {
		hit.note = [...notes].filter(n => Math.abs(timeToX(n[0]) - x) < 7).map(n => n[1])[0];
		return hit;
	}
	if (inView < tl.top)
		hit.row = tl.rows.find(r => r.fixed && inView >= r.y && inView < r.y + r.h) || null;
	else hit.row = tl.rows.find(r => !r.fixed && y >= r.y && y < r.y + r.h) || null;
	hit.head =
		(inView >= tl.top && tl.rows.find(r => r.head && y >= r.top && y < r.bottom)) || null;
	if (hit.row && x >= GUTTER) hit.pin = pinAt(hit.row, hit.t, span() / (tl.width - GUTTER));
	return hit;
}

// The span under the pointer or, if it is narrower than a pixel, the most informative one near it.
export function pinAt(row, t, dt) {
	if (row.kind === "py") {
		const direct = pinCall(row.thread, row.depth, t);
		if (direct) return direct;
		let best = null,
			seen = 0;
		store().slices[row.thread][row.depth].each(t - 2 * dt, t + 2 * dt, a => {
			if (++seen < 200 && (best === null || Math.abs(a - t) < Math.abs(best - t))) best = a;
		});
		return best === null ? null : pinCall(row.thread, row.depth, best);
	}
	if (row.kind === "owner") {
		const at = loading.complete && turns(row.gil).lane.find(t);
		return at && at.s.state[at.i] ? pinLane("gil", turns(row.gil).threads[at.i], t) : null;
	}
	if (row.kind === "held" || row.kind === "thin") return pinLane("gil", row.thread, t);
	if (row.kind === "slot") {
		t += row.shift || 0;
		const lives = i => pass().threads[i].from_ns <= t && pass().threads[i].to_ns > t;
		const thread = row.threads.find(lives);
		return thread === undefined ? null : pinLane("gil", thread, t);
	}
	if (row.kind === "samples") return pinSample(row.thread, t);
	return row.kind === "gil" || row.kind === "cpu" ? pinLane(row.kind, row.thread, t) : null;
}

const isTasks = hit => hit.row?.kind === "tasks" && hit.x >= GUTTER;

// Whether a click would keep the thread at the top.
const keeps = hit => hit.x < GUTTER && hit.row?.head && hit.row.kind !== "py";

// The number of a crowd's threads in each state.
function crowdTip(row, t) {
	const states = gilText([words.gilStates, words.lockStates]),
		count = states.map(() => 0);
	for (const thread of row.threads) {
		const at = store().gil[thread]?.find(t);
		if (at) count[at.s.state[at.i]]++;
	}
	return [
		h("b", row.text),
		...count.map((n, i) => n && h("span", words.crowdCount(n, states[i]))),
	];
}

function tipText(hit) {
	const p = hit.pin;
	if (isTasks(hit)) return taskTip(hit.row.group, hit.t);
	if (hit.row?.kind === "crowd" && hit.x >= GUTTER) return crowdTip(hit.row, hit.t);
	if (keeps(hit))
		return [
			h("b", threadLabel(hit.head.thread)),
			soft(arranged.kept.includes(hit.head.thread) ? words.releaseHint : words.keepHint),
		];
	if (!p) return hit.note || null;
	const lines = [h("b", pinTitle(p)), h("span", pinTime(p))];
	const dt = span() / (tl.width - GUTTER);
	if (p.kind === "samples") {
		const f = sampledFrames(p.stack).pop();
		if (f) lines.push(h("span", doingText(sampledPlace(f))));
	} else if (p.to - p.from < dt * 2 && p.kind !== "py") {
		const lane = (p.kind === "gil" ? store().gil : store().cpu)[p.thread];
		const sum = laneTotals(lane, hit.t - dt * 2, hit.t + dt * 2);
		const states = stateWords(p);
		lines.push(
			soft(
				words.aroundHere(
					Array.from(sum, (ns, i) => (ns ? states[i] + " " + fmtPct(ns, 4 * dt) : ""))
						.filter(Boolean)
						.join(", "),
				),
			),
		);
	} else if (p.kind === "gil" && p.state >= WAIT_STATE && p.state !== FREE_STATE) {
		const who = mainHolder(holdersIn(p.from, p.to, p.gil, p.thread), p.to - p.from);
		if (who) lines.push(h("span", gilText(words.mainlyFor), h("b", who.name)));
	} else if (p.kind === "gil" && p.state === HOLD_STATE) {
		const what = holdDoing(p.thread, p.from, p.to, p.stack),
			n = waitersIn(p.from, p.to, p.gil, p.thread).length;
		if (what) lines.push(h("span", words.ranBefore, doingText(what)));
		if (n) lines.push(h("span", gilText(words.waitedMeanwhile)(n)));
	}
	if (pinned && p.from !== pinned.from && !hit.row.shift)
		lines.push(
			soft(words.fromPinned(fmtDur(Math.abs(p.from - pinned.from)), p.from < pinned.from)),
		);
	const line = queuedText(p);
	if (line) lines.push(h("span", line));
	if (p.kind === "py") lines.push(soft(callPlace(callName(p.name))));
	if (p.waker >= 0) lines.push(h("span", words.wokenBefore, threadLabel(p.waker)));
	if (p.cpu >= 0) lines.push(soft(words.cpuNumber(p.cpu)));
	return lines;
}

function tipShow(e, hit) {
	const lines = tipText(hit),
		tip = $("tip");
	tip.hidden = !lines;
	if (!lines) return;
	fill(tip, lines);
	const box = tip.getBoundingClientRect();
	tip.style.left = max(4, min(innerWidth - box.width - 8, e.clientX + 14)) + "px";
	tip.style.top =
		(e.clientY + 18 + box.height > innerHeight ? e.clientY - box.height - 12 : e.clientY + 18) +
		"px";
}

function hoverAt(e) {
	tl.hover = tlHit(e);
	tipShow(e, tl.hover);
	tlRedraw();
}

// Act as if the pointer were on a row, at time t.
export function hoverRow(row, t) {
	const box = tlCanvas.getBoundingClientRect();
	hoverAt({
		clientX: box.left + timeToX(t),
		clientY: box.top + row.y + row.h / 2 - tlBox.scrollTop,
	});
}

function gutterClick(hit) {
	if (!hit.head) return;
	const thread = hit.head.thread;
	if (keeps(hit)) return keepThread(thread);
	if (hit.row && hit.row.kind === "py" && (hit.row.more || tl.opened.has(thread))) {
		if (!tl.opened.delete(thread)) tl.opened.add(thread);
		emit("filter");
	}
}

// If x is on an edge of the selected range, the other edge, else null.
function oppositeEdge(x) {
	if (!range || x < GUTTER) return null;
	if (Math.abs(timeToX(range.from) - x) <= EDGE) return range.to;
	return Math.abs(timeToX(range.to) - x) <= EDGE ? range.from : null;
}

// Two fingers: the moment under each finger stays under it.
function pinch(fingers) {
	const [a, b] = [...fingers.values()];
	if (Math.abs(a.x - b.x) < 10) return;
	const per = (b.t - a.t) / (b.x - a.x),
		from = a.t - (a.x - GUTTER) * per;
	if (per > 0) setView(from, from + per * (tl.width - GUTTER));
}

export function pointerInit() {
	let drag = null,
		press = 0;
	const fingers = new Map();
	const xOf = e => e.clientX - tlCanvas.getBoundingClientRect().left;
	const lift = e => {
		fingers.delete(e.pointerId);
		clearTimeout(press);
	};
	listen(tlCanvas, "pointercancel", e => {
		lift(e);
		drag = null;
	});
	listen(tlCanvas, "pointerdown", e => {
		if (e.button !== 0) return;
		const hit = tlHit(e),
			edge = oppositeEdge(hit.x);
		if (edge !== null) hit.t = edge;
		if (e.pointerType === "touch") {
			fingers.set(e.pointerId, {x: hit.x, t: hit.t});
			clearTimeout(press);
			press = setTimeout(() => {
				if (drag && !drag.far) drag.select = true;
			}, LONG_PRESS_MS);
		}
		drag = {
			x: e.clientX,
			y: e.clientY,
			hit,
			from: view.from,
			to: view.to,
			select: e.shiftKey || edge !== null,
			far: false,
			scroll: tlBox.scrollTop,
		};
		tlCanvas.setPointerCapture(e.pointerId);
	});
	listen(tlCanvas, "pointermove", e => {
		if (fingers.has(e.pointerId)) fingers.get(e.pointerId).x = xOf(e);
		if (fingers.size === 2) {
			drag = null;
			pinch(fingers);
			return;
		}
		if (drag) {
			if (Math.abs(e.clientX - drag.x) + Math.abs(e.clientY - drag.y) > 4) drag.far = true;
			if (!drag.far) return;
			$("tip").hidden = true;
			if (drag.select) {
				setRange(drag.hit.t, xToTime(xOf(e)));
			} else {
				const d = ((drag.x - e.clientX) / (tl.width - GUTTER)) * (drag.to - drag.from);
				setView(drag.from + d, drag.to + d);
				tlBox.scrollTop = drag.scroll + drag.y - e.clientY;
			}
			return;
		}
		hoverAt(e);
		tlCanvas.style.cursor =
			tl.hover.x < GUTTER
				? "default"
				: e.shiftKey || oppositeEdge(tl.hover.x) !== null
					? "col-resize"
					: tl.hover.pin || isTasks(tl.hover)
						? "pointer"
						: "grab";
	});
	listen(tlCanvas, "pointerup", e => {
		lift(e);
		if (drag && !drag.far) {
			const hit = tlHit(e);
			if (hit.x < GUTTER) gutterClick(hit);
			else if (isTasks(hit)) goToLate(hit.row.group);
			else setPin(hit.pin);
		}
		drag = null;
	});
	// Another span is under the pointer now.
	on("view", () => {
		$("tip").hidden = true;
		if (tl.hover) Object.assign(tl.hover, {t: xToTime(tl.hover.x), pin: null});
	});
	listen(tlCanvas, "pointerleave", () => {
		tl.hover = null;
		$("tip").hidden = true;
		tlRedraw();
	});
	listen(tlCanvas, "dblclick", e => {
		const hit = tlHit(e);
		if (hit.pin) flyToSpan(hit.pin.from, hit.pin.to);
	});
	listen(
		tlCanvas,
		"wheel",
		e => {
			if (e.ctrlKey || e.metaKey || e.altKey) {
				e.preventDefault();
				zoomAt(tlHit(e).t, Math.exp(max(-0.6, min(0.6, e.deltaY * 0.004))));
				hoverAt(e);
			} else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
				e.preventDefault();
				panBy((e.deltaX || e.deltaY) / tl.width);
			}
		},
		{passive: false},
	);
}

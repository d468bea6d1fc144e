// SPDX-License-Identifier: MIT
// Text and marks on the timeline: axis, names, labels, losses, selections.

import {drawArrows} from "./arrows.js";
import {gilKnown, gilName, gilText, lifeNs, pass, threadLabel, threadShort} from "./data.js";
import {groupKey, litRows} from "./findings.js";
import {fmtAt, fmtDur, fmtPct, niceStep, shorten} from "./format.js";
import {AXIS, GUTTER, PAD, rowOf, timeToX, tl} from "./layout.js";
import {max, min, round} from "./math.js";
import {callName, holdDoing, holdersIn, mainHolder, shortCall} from "./pick.js";
import {samplesAlone} from "./samples.js";
import {HOLD_STATE, WAIT_STATE} from "./states.js";
import {loading, store} from "./store.js";
import {taskName} from "./tasks.js";
import {palette, threadColor} from "./theme.js";
import {gilOf, upper} from "./tracks.js";
import {turns} from "./turns.js";
import {arranged, hits, notes, passDur, pinned, range, shown, span, view} from "./view.js";
import * as words from "./words.js";

function ellipsis(c, text, width) {
	if (c.measureText(text).width <= width) return text;
	let lo = 0,
		hi = text.length;
	while (lo < hi) {
		const mid = (lo + hi + 1) >> 1;
		if (c.measureText(text.slice(0, mid) + "…").width <= width) lo = mid;
		else hi = mid - 1;
	}
	return lo > 0 ? text.slice(0, lo) + "…" : "";
}

// The thread's name or, if there is no room for it, its beginning and end.
function threadFit(c, index, width) {
	const label = threadLabel(index);
	for (let n = label.length, least = /\d$/.test(label) ? 9 : n - 1; n > least; n--)
		if (c.measureText(shorten(label, n)).width <= width) return shorten(label, n);
	return ellipsis(c, threadShort(index), width);
}

const FONT = "12px system-ui, sans-serif";
const SMALL = "11px system-ui, sans-serif";

export function drawOver(c, scroll) {
	c.textBaseline = "middle";
	drawAxis(c);
	const clip = (top, draw) => {
		c.save();
		c.beginPath();
		c.rect(0, top, tl.width, tl.viewHeight - top);
		c.clip();
		draw();
		c.restore();
	};
	clip(tl.top, () => drawRows(c, scroll));
	clip(AXIS, () => {
		for (const row of tl.rows) if (row.fixed) drawRowLabel(c, row, row.y);
		drawLost(c);
		drawSelections(c, scroll);
	});
}

function drawRows(c, scroll) {
	for (const row of tl.rows) {
		const y = row.y - scroll;
		if (row.head && row.bottom - scroll > tl.top && row.top - scroll < tl.viewHeight)
			drawHead(c, row, scroll);
		if (row.fixed || y + row.h < tl.top || y > tl.viewHeight) continue;
		drawRowLabel(c, row, y);
	}
}

function drawAxis(c) {
	const step = niceStep(span() / ((tl.width - GUTTER) / 110));
	c.font = SMALL;
	c.textAlign = "center";
	for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
		const x = timeToX(t);
		if (t < 0 || t > passDur()) continue;
		c.fillStyle = palette.soft;
		if (x > GUTTER + 24 && x < tl.width - 24) c.fillText(fmtAt(t, step), x, 10);
		c.fillRect(round(x), AXIS - 7, 1, 5);
	}
	c.textAlign = "left";
	c.fillText(words.timeAxis, 8, 10);
	for (const t of notes.keys()) {
		const x = timeToX(t);
		if (x < GUTTER || x > tl.width) continue;
		c.fillStyle = palette.hit;
		c.beginPath();
		c.moveTo(x - 5, AXIS - 8);
		c.lineTo(x + 5, AXIS - 8);
		c.lineTo(x, AXIS);
		c.fill();
	}
}

function drawHead(c, row, scroll) {
	const t = pass().threads[row.thread];
	const y = max(row.top - scroll, tl.top - 4);
	c.fillStyle = palette.line;
	c.fillRect(0, round(row.top - scroll), tl.width, 1);
	if (row.top - scroll < tl.top - 40) return;
	c.fillStyle = threadColor(row.thread);
	c.beginPath();
	if (arranged.kept.includes(row.thread)) drawPin(c, 14, y + PAD / 2 + 12, true);
	else if (tl.hover?.head === row && tl.hover.x < GUTTER) drawPin(c, 14, y + PAD / 2 + 12, false);
	else {
		c.arc(14, y + PAD / 2 + 12, 5, 0, 7);
		c.fill();
	}
	const number =
		GUTTER < 200
			? ""
			: !gilKnown()
				? t.states && !samplesAlone()
					? words.onCpuShare(fmtPct(t.states.running_ns, lifeNs(t)))
					: ""
				: t.wait_ns > t.hold_ns
					? gilText(words.waitsFor)(fmtPct(t.wait_ns, lifeNs(t)))
					: t.hold_ns
						? gilText(words.holdsFor)(fmtPct(t.hold_ns, lifeNs(t)))
						: "";
	c.font = SMALL;
	c.textAlign = "right";
	c.fillStyle = palette.soft;
	c.fillText(number, GUTTER - 8, y + PAD / 2 + 12);
	const left = GUTTER - (number ? 42 : 30) - c.measureText(number).width;
	c.textAlign = "left";
	c.font = "600 " + FONT;
	c.fillStyle = palette.ink;
	c.fillText(threadFit(c, row.thread, left), 26, y + PAD / 2 + 12);
}

// The mark of a thread that is kept at the top, or would be.
function drawPin(c, x, y, solid) {
	c.moveTo(x, y + 8);
	c.lineTo(x - 4.4, y - 0.5);
	c.arc(x, y - 3, 5, Math.PI * 0.83, Math.PI * 2.17);
	c.closePath();
	c.strokeStyle = c.fillStyle;
	c.lineWidth = 1.5;
	c.stroke();
	if (solid) c.fill();
	c.fillStyle = palette.paper;
	c.beginPath();
	c.arc(x, y - 3, 1.8, 0, 7);
	if (solid) c.fill();
}

function drawRowLabel(c, row, y) {
	c.font = SMALL;
	c.fillStyle = palette.soft;
	if (row.kind === "owner") {
		c.font = "600 " + FONT;
		c.fillStyle = palette.ink;
		c.fillText(ellipsis(c, words.heldByLane(gilName(row.gil)), GUTTER - 12), 8, y + row.h / 2);
		if (shown.labels !== false) labelOwners(c, row, y);
	} else if (row.kind === "process") {
		c.font = "600 " + SMALL;
		c.fillText(row.text || words.processOf(row.pid), 8, y + row.h / 2 + 2);
	} else if (row.kind === "tasks") {
		c.fillText(ellipsis(c, taskName(row.group), GUTTER - 34), 26, y + row.h / 2);
	} else if (row.kind === "held") {
		c.fillText(
			ellipsis(c, words.heldBy(threadLabel(row.thread)), GUTTER - 34),
			26,
			y + row.h / 2,
		);
		if (shown.labels !== false) labelSpans(c, row, y);
	} else if (row.kind === "crowd") {
		c.font = "600 " + FONT;
		c.fillStyle = palette.ink;
		c.fillText(ellipsis(c, row.text, GUTTER - 34), 26, y + row.h / 2);
	} else if (row.kind === "slot") {
		labelSlot(c, row, y);
	} else if (row.kind === "cpu") {
		if (!row.head) c.fillText(words.cpu, 26, y + row.h / 2);
	} else if (row.kind === "samples") {
		if (!row.head) c.fillText(words.samplesHead, 26, y + row.h / 2);
	} else if (row.kind === "counter") {
		c.fillText(
			ellipsis(c, pass().counters[row.counter] || words.counter, GUTTER - 40),
			26,
			y + row.h / 2,
		);
	} else if (row.kind === "py") {
		const text = row.more
			? row.more > 0
				? words.moreRows(row.more)
				: words.fewerRows
			: row.lead && !row.head && words.pythonCalls;
		if (text) c.fillText(ellipsis(c, text, GUTTER - 34), 26, y + row.h / 2);
		labelCalls(c, row, y);
	} else if (row.kind === "gil" && shown.labels !== false) {
		labelSpans(c, row, y);
	}
	if (row.kind === "gil") drawLife(c, row, y);
}

// Mark the start and the end of a thread.
function drawLife(c, row, y) {
	const {from_ns, to_ns} = pass().threads[row.thread];
	c.fillStyle = palette.soft;
	for (const t of [from_ns, to_ns])
		if (t > view.from && t < view.to && t > 0 && t < passDur())
			c.fillRect(round(timeToX(t)), y + 1, 1, row.h - 2);
}

// Write the names of calls that are wide enough.
function labelCalls(c, row, y) {
	c.font = SMALL;
	wideSpans(store().slices[row.thread][row.depth], 28, (s, i) => {
		const a = max(GUTTER, timeToX(s.start[i])),
			b = min(tl.width, timeToX(s.end[i]));
		const text = b - a < 28 ? "" : ellipsis(c, shortCall(callName(s.name[i])), b - a - 6);
		c.fillStyle = hits.lit && hits.lit[s.name[i]] ? palette.paper : palette.ink;
		if (text) c.fillText(text, a + 3, y + row.h / 2 + 1);
	});
}

// Spans of the lane, or calls of the row, that are at least px wide, at most 400.
function wideSpans(track, px, f) {
	const least = (px / (tl.width - GUTTER)) * span();
	let n = 0,
		looked = 0;
	for (const s of track.sections) {
		if (s.t1 <= view.from || s.t0 >= view.to) continue;
		for (
			let i = max(0, upper(s.start, 0, s.n, view.from) - 1);
			i < s.n && s.start[i] < view.to;
			i++
		) {
			if ((s.end ? s.end[i] : s.start[i + 1]) - s.start[i] >= least) {
				f(s, i);
				if (++n > 400) return;
			} else if (++looked > 4000) {
				return;
			}
		}
	}
}

// Write the first of the texts that fits, on a light background.
function pill(c, texts, x, y, width, ink, paper) {
	const t = texts.find(q => c.measureText(q).width <= width - 14);
	if (!t) return;
	const w = c.measureText(t).width + 8;
	c.fillStyle = paper;
	c.beginPath();
	c.roundRect(x + 3, y - 8, w, 16, 4);
	c.fill();
	c.fillStyle = ink;
	c.fillText(t, x + 7, y + 0.5);
}

// The text of a span's label, which is looked up once, when everything has been read.
function once(s, i, find) {
	if (!loading.complete) return null;
	s.said ||= new Map();
	if (!s.said.has(i)) s.said.set(i, find());
	return s.said.get(i);
}

function labelSpans(c, row, y) {
	const lane = store().gil[row.thread];
	if (!lane) return;
	c.font = SMALL;
	wideSpans(lane, 48, (s, i) => {
		const state = s.state[i];
		if (state !== HOLD_STATE && state !== WAIT_STATE) return;
		const from = s.start[i],
			to = s.start[i + 1];
		const a = max(GUTTER, timeToX(from)),
			b = min(tl.width, timeToX(to));
		if (b - a < 48) return;
		const time = fmtDur(to - from),
			texts = [
				state === HOLD_STATE ? gilText(words.holdsFor)(time) : words.waitsFor[0](time),
				time,
			];
		if (state === HOLD_STATE && b - a > 90) {
			const what = once(s, i, () =>
				holdDoing(row.thread, from, to, s.stack ? s.stack[i] : 0),
			);
			if (what) texts.unshift(words.nameHolds(what.name, time), what.name + " · " + time);
		} else if (b - a > 120) {
			const who = once(s, i, () =>
				mainHolder(holdersIn(from, to, gilOf(s, i), row.thread), to - from),
			);
			if (who)
				texts.unshift(
					gilText(words.waitsForWhom)(time, who.name),
					gilText(words.waitsForShort)(time, who.short),
				);
		}
		pill(c, texts, a, y + row.h / 2, b - a, palette.ink, palette.paper + "e0");
	});
}

// Write the names of threads in a slot if there is room.
function labelSlot(c, row, y) {
	c.font = SMALL;
	c.fillStyle = palette.soft;
	const {shift} = row,
		text = shift === undefined ? words.threads(row.threads.length) : "";
	c.fillText(
		text
			? ellipsis(c, words.slotOf(row.n + 1, text), GUTTER - 34)
			: threadFit(c, row.threads[0], GUTTER - 34),
		26,
		y + row.h / 2,
	);
	for (const thread of row.threads) {
		const {from_ns, to_ns} = pass().threads[thread],
			a = max(GUTTER, timeToX(from_ns - (shift || 0))),
			b = min(tl.width, timeToX(to_ns - (shift || 0)));
		if (text && b - a > 60)
			pill(
				c,
				[threadLabel(thread), threadShort(thread)],
				a,
				y + row.h / 2,
				b - a,
				palette.ink,
				palette.paper + "e0",
			);
	}
}

function labelOwners(c, row, y) {
	if (!loading.complete) return;
	const {lane, threads} = turns(row.gil);
	c.font = "600 " + SMALL;
	c.fillStyle = palette.paper; // a gap between one holder and the next
	wideSpans(lane, 6, (s, i) => {
		const x = timeToX(s.start[i]);
		if (s.state[i] && x > GUTTER) c.fillRect(round(x), y + 1, 1, (row.h - 2) * 0.72);
	});
	wideSpans(lane, 60, (s, i) => {
		if (!s.state[i]) return;
		const thread = threads[i],
			a = max(GUTTER, timeToX(s.start[i])),
			b = min(tl.width, timeToX(s.start[i + 1]));
		if (b - a > 50)
			pill(
				c,
				[threadLabel(thread), threadShort(thread)],
				a,
				y + row.h / 2 - 2,
				b - a,
				palette.ink,
				palette.paper + "e0",
			);
	});
}

function drawLost(c) {
	for (const s of store().lost)
		for (let i = 0; i < s.n; i++) {
			const a = max(GUTTER, timeToX(s.time[i])),
				b = min(tl.width, max(a + 2, timeToX(s.time[i] + s.dur[i])));
			if (b <= GUTTER || a >= tl.width) continue;
			c.fillStyle = palette.hit + "22";
			c.fillRect(a, AXIS, b - a, tl.viewHeight);
			c.fillStyle = palette.hit;
			c.fillRect(a, AXIS, b - a, 2);
		}
}

function outline(c, pin, scroll, color, width) {
	const row = rowOf(pin);
	if (!row) return;
	const shift = row.shift || 0,
		a = max(GUTTER - 2, timeToX(pin.from - shift)),
		b = min(tl.width + 2, timeToX(pin.to - shift));
	if (b < GUTTER || a > tl.width) return;
	c.strokeStyle = color;
	c.lineWidth = width;
	c.strokeRect(a - 0.5, row.y - scroll + 0.5, max(2, b - a) + 1, row.h - 1);
}

// Covers all of a row but the places of the finding that is lit up.
function coverRow(c, top, bottom, places) {
	let x = GUTTER;
	top = max(top, tl.top);
	for (const place of places || []) {
		const a = max(GUTTER, timeToX(place.from)),
			b = min(tl.width, max(a + 3, timeToX(place.to)));
		if (b <= GUTTER || a >= tl.width) continue;
		if (a > x) c.fillRect(x, top, a - x, bottom - top);
		x = max(x, b);
	}
	c.fillRect(x, top, tl.width - x, bottom - top);
}

function drawLit(c, scroll) {
	const rows = litRows();
	if (!rows) return;
	c.fillStyle = palette.paper + "c0";
	for (const row of tl.rows) {
		const places = row.head
			? rows.get(row.thread)
			: row.kind === "thin"
				? rows.get(row.thread) || []
				: row.kind === "tasks"
					? rows.get(groupKey(row.group))
					: (row.kind === "slot" || row.kind === "crowd") &&
						row.threads.flatMap(t => rows.get(t) || []);
		if (row.head || places)
			coverRow(
				c,
				(row.head ? row.top : row.y) - scroll,
				(row.head ? row.bottom : row.y + row.h) - scroll,
				places,
			);
	}
}

function drawSelections(c, scroll) {
	const bound = t => max(GUTTER, min(tl.width, timeToX(t)));
	if (range) {
		const a = bound(range.from),
			b = bound(range.to);
		c.fillStyle = palette.paper + "a8"; // covers the time outside the range
		c.fillRect(GUTTER, AXIS, a - GUTTER, tl.viewHeight);
		c.fillRect(b, AXIS, tl.width - b, tl.viewHeight);
		c.fillStyle = palette.ink;
		c.fillRect(a, AXIS, 1, tl.viewHeight);
		c.fillRect(b - 1, AXIS, 1, tl.viewHeight);
		c.font = "600 " + SMALL;
		if (b - a > 50) {
			c.textAlign = "center";
			c.fillText(fmtDur(range.to - range.from), (a + b) / 2, tl.viewHeight - 12);
			c.textAlign = "left";
		}
	}
	drawLit(c, scroll);
	if (tl.hover && tl.hover.pin) outline(c, tl.hover.pin, scroll, palette.soft, 1);
	if (pinned) outline(c, pinned, scroll, palette.ink, 2);
	if (pinned) drawArrows(c, pinned, scroll);
	if (tl.cursor > view.from && tl.cursor < view.to) {
		c.fillStyle = palette.ink;
		c.fillRect(round(timeToX(tl.cursor)) - 1, AXIS, 2, tl.viewHeight);
	}
	if (tl.hover && tl.hover.x > GUTTER) {
		c.fillStyle = palette.ink + "55";
		c.fillRect(round(tl.hover.x), AXIS, 1, tl.viewHeight);
	}
}

// SPDX-License-Identifier: MIT
// A hand-over, step by step: which threads want the GIL, which one has it, and when it passes from
// one to the next. Everything was recorded, except the moments at which Python asks for a release,
// which are computed and marked.

import {meta, pass, switchInterval, threadLabel} from "./data.js";
import {$, fill, h, rove, say, svg} from "./dom.js";
import {fmtDur, fmtExact, shorten} from "./format.js";
import {tl} from "./layout.js";
import {max, min} from "./math.js";
import {holdDoing, pinLane} from "./pick.js";
import {HOLD_STATE, RUNNABLE_STATE, WAIT_STATE} from "./states.js";
import {store} from "./store.js";
import {palette, threadColor} from "./theme.js";
import {tlRedraw} from "./timeline.js";
import {turns} from "./turns.js";
import * as words from "./words.js";

const TURNS_MAX = 24; // the most holds in one wait; those in the middle are left out
const SHOWN = 6; // the most threads

// The wait to replay: the pinned one, or the one before the pinned hold.
export function waitToReplay(p) {
	if (pass().locks || p.kind !== "gil" || !store().gil[p.thread]) return null;
	if (p.state === WAIT_STATE) return p;
	if (p.state !== HOLD_STATE) return null;
	const wait = p.from > 0 && pinLane("gil", p.thread, p.from - 1);
	return wait && wait.state === WAIT_STATE ? wait : null;
}

// The holds of other threads that overlap the wait, in order.
function holdsDuring(w) {
	const {lane, threads} = turns(max(0, w.gil)),
		out = [];
	lane.each(w.from, w.to, (from, to, state, s, i) => {
		if (state && threads[i] !== w.thread) out.push({thread: threads[i], from, to});
	});
	return out;
}

const ran = x => {
	const pin = pinLane("gil", x.thread, (x.from + x.to) / 2),
		what = holdDoing(x.thread, x.from, x.to, pin ? pin.stack : 0);
	return what ? "," + words.inFunction(what) : "";
};

// How long the thread had been runnable without a CPU when it took the GIL.
function runnableBefore(thread, from, to) {
	const lane = store().cpu[thread];
	let ns = 0;
	if (lane)
		lane.each(from, to, (a, b, state) => {
			if (state === RUNNABLE_STATE) ns += min(b, to) - max(a, from);
		});
	return ns;
}

// [{t, holder (-1: nobody), wants: [thread], text}]
export function stepsOf(w) {
	const me = threadLabel(w.thread),
		holds = holdsDuring(w),
		out = [],
		say = (t, holder, text) => out.push({t, holder, wants: t < w.to ? [w.thread] : [], text});
	const first = holds[0] && holds[0].from <= w.from ? holds[0] : null;
	if (first)
		out.push({
			t: first.from,
			holder: first.thread,
			wants: [],
			text: words.stepHas(threadLabel(first.thread), ran(first)),
		});
	say(w.from, first ? first.thread : -1, words.stepAsks(me));
	const asks = w.from + meta.switch_interval_ns;
	let asked = asks >= w.to;
	const left = holds.length - TURNS_MAX;
	holds.forEach((x, k) => {
		if (left > 0 && k >= TURNS_MAX / 2 && k < TURNS_MAX / 2 + left) {
			if (k === TURNS_MAX / 2) say(x.from, x.thread, words.stepLeftOut(left));
			return;
		}
		const name = threadLabel(x.thread);
		if (x !== first) say(x.from, x.thread, words.stepTakes(name, ran(x)));
		if (!asked && asks < x.to && asks >= x.from) {
			asked = true;
			say(asks, x.thread, words.stepRequest(switchInterval));
		}
		if (x.to >= w.to) return;
		const next = holds[k + 1] ? holds[k + 1].from : w.to;
		say(
			x.to,
			-1,
			words.stepReleases(name, fmtDur(x.to - x.from), next > x.to ? fmtDur(next - x.to) : ""),
		);
	});
	const late = runnableBefore(w.thread, w.from, w.to);
	out.push({
		t: w.to,
		holder: w.thread,
		wants: [],
		text: words.stepGets(me, fmtDur(w.to - w.from), late ? fmtDur(late) : ""),
	});
	return out;
}

// The threads that are shown: those that hold the GIL longest, then the waiting thread.
function castOf(w) {
	const by = new Map();
	for (const x of holdsDuring(w)) by.set(x.thread, (by.get(x.thread) || 0) + x.to - x.from);
	by.delete(w.thread);
	const list = [...by.keys()].sort((a, b) => by.get(b) - by.get(a)).slice(0, SHOWN - 1);
	return [...list, w.thread];
}

const BOX = 150;
const GAP = 14;
const HIGH = 104;

function stage(cast, step, before) {
	const at = thread => {
		const i = cast.indexOf(thread);
		return i < 0
			? [cast.length * (BOX + GAP) * 0.5, HIGH - 12]
			: [i * (BOX + GAP) + BOX / 2, 46];
	};
	const [x, y] = at(step.holder),
		[x0, y0] = before ? at(before.holder) : [x, y];
	const token = svg(
		"g",
		{class: "token", style: "transform:translate(" + x0 + "px," + y0 + "px)"},
		svg("circle", {r: 13, fill: palette.ink}),
		svg("text", {y: 4, "text-anchor": "middle", style: "fill:" + palette.paper}, "GIL"),
	);
	requestAnimationFrame(() => {
		token.style.transform = "translate(" + x + "px," + y + "px)";
	});
	const width = cast.length * (BOX + GAP);
	return svg(
		"svg",
		{viewBox: "0 0 " + width + " " + HIGH, width, height: HIGH, "aria-hidden": "true"},
		cast.map((thread, i) => {
			const has = step.holder === thread,
				wants = step.wants.includes(thread);
			return svg(
				"g",
				{transform: "translate(" + i * (BOX + GAP) + ",0)"},
				svg("rect", {
					x: 1,
					y: 1,
					width: BOX - 2,
					height: 66,
					rx: 8,
					fill: has ? threadColor(thread) : palette.paper,
					stroke: wants ? palette.wait : palette.soft,
					"stroke-width": wants ? 2 : 1,
					"stroke-dasharray": wants ? "6 4" : "none",
				}),
				svg(
					"text",
					{
						x: BOX / 2,
						y: 20,
						"text-anchor": "middle",
						style: has ? "fill:" + palette.paper : "",
					},
					shorten(threadLabel(thread), 20),
				),
				svg(
					"text",
					{x: BOX / 2, y: 84, "text-anchor": "middle"},
					has ? words.stageHas : wants ? words.stageWaits : "",
				),
			);
		}),
		token,
	);
}

let shownAt = null; // {key, n}: the step of the wait that is shown

// The panel of the details, opened by its button.
export function replayPanel(p) {
	const w = waitToReplay(p);
	if (!w) return null;
	const key = w.thread + "." + w.from,
		box = h("div.panel.full", {id: "replay"});
	let steps = null,
		cast = null;
	const show = (n, by) => {
		const step = steps[n],
			outside = step.holder >= 0 && !cast.includes(step.holder);
		shownAt = {key, n};
		tl.cursor = step.t;
		tlRedraw();
		const go = (text, to) =>
			h(
				"button",
				{
					disabled: to < 0 || to >= steps.length,
					onclick: () => {
						show(to, to - n);
						rowOfButtons()[to < n ? 0 : 1].focus();
						say(steps[to].text);
					},
				},
				text,
			);
		fill(
			box,
			h("h3", words.replayTitle),
			stage(outside ? [...cast, step.holder] : cast, step, by ? steps[n - by] : null),
			h("p", h("b", "+" + fmtExact(max(0, step.t - w.from)) + "  "), step.text),
			h(
				"p.under",
				go(words.stepBack, n - 1),
				go(words.stepNext, n + 1),
				h("span.soft", words.stepNumber(n + 1, steps.length)),
			),
		);
		rove(box, (from, k, buttons) => buttons[{ArrowLeft: 0, ArrowRight: 1}[k]]);
	};
	const rowOfButtons = () => box.querySelectorAll("button");
	const begin = n => {
		steps = stepsOf(w);
		cast = castOf(w);
		show(min(n, steps.length - 1), 0);
	};
	if (shownAt && shownAt.key === key) begin(shownAt.n);
	else fill(box, h("button", {onclick: () => begin(0)}, words.replayOpen));
	return box;
}

export function replayEnd() {
	if (tl.cursor === undefined) return;
	tl.cursor = undefined;
	if ($("replay") && shownAt) shownAt = null;
}

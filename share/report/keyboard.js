// SPDX-License-Identifier: MIT
// Keys are identified by their place on the keyboard (event.code), so that they exist in every
// layout.

import {$, click, fill, h, listen, save, saved, say} from "./dom.js";
import {fmtAt, fmtDur} from "./format.js";
import {GUTTER, rowOf, tl, tlCanvas} from "./layout.js";
import {max, min, round} from "./math.js";
import {nextWait, pinSentence} from "./pick.js";
import {hoverRow, pinAt} from "./pointer.js";
import {nextHit} from "./search.js";
import {stripCanvas} from "./strip.js";
import {goToLate, seeTasks} from "./tasks.js";
import {
	flyTo,
	flyToSpan,
	keepThread,
	only,
	panBy,
	passDur,
	pinned,
	range,
	setOnly,
	setPin,
	setRange,
	setView,
	span,
	view,
	zoomAt,
} from "./view.js";
import * as words from "./words.js";

const STEPS = ["gil", "cpu", "py", "samples", "slot", "tasks"];

// The group of tasks that keys or the pointer have reached, if no span is pinned.
const laneAt = () => (!pinned && tl.hover?.row?.kind === "tasks" ? tl.hover.row.group : -1);

// Up and down: pin the span in the middle of the view in the row above or below. In a lane of
// tasks, show the numbers that the pointer would show.
function stepRow(by) {
	const rows = tl.rows.filter(r => STEPS.includes(r.kind)),
		lane = rows.findIndex(r => r.kind === "tasks" && r.group === laneAt());
	if (!rows.length) return;
	const mid =
		pinned && pinned.to > view.from && pinned.from < view.to
			? max(view.from, min(view.to, (pinned.from + pinned.to) / 2))
			: (view.from + view.to) / 2;
	const old = pinned ? rows.indexOf(rowOf(pinned)) : lane >= 0 || by > 0 ? lane : rows.length;
	for (let i = old + by; i >= 0 && i < rows.length; i += by) {
		if (rows[i].kind === "tasks") {
			setPin(null);
			seeTasks(rows[i].group);
			return hoverRow(rows[i], mid);
		}
		const pin = pinAt(rows[i], mid, span() / 500);
		if (pin) return setPin(pin);
	}
}

let fitted = false;
function fitKey() {
	if (pinned && fitted && view.from === 0) flyToSpan(pinned.from, pinned.to);
	else flyTo(0, passDur());
	fitted = true;
}

function escapeKey() {
	if (pinned) setPin(null);
	else if (range) setRange(null);
	else if (only) setOnly(null);
}

export const middle = () =>
	pinned && pinned.from > view.from && pinned.to < view.to
		? (pinned.from + pinned.to) / 2
		: tl.hover && tl.hover.x > GUTTER
			? tl.hover.t
			: (view.from + view.to) / 2;

// Begin a selection in the middle of the view, or move the end of the selection.
let anchor = 0;
function stretchRange(share) {
	if (!range) anchor = middle();
	const end = range ? (range.from === round(anchor) ? range.to : range.from) : anchor;
	setRange(anchor, end + share * span());
}

const ACTIONS = {
	KeyW: () => zoomAt(middle(), 0.7),
	Equal: () => zoomAt(middle(), 0.7),
	NumpadAdd: () => zoomAt(middle(), 0.7),
	KeyS: () => zoomAt(middle(), 1 / 0.7),
	Minus: () => zoomAt(middle(), 1 / 0.7),
	NumpadSubtract: () => zoomAt(middle(), 1 / 0.7),
	KeyA: () => panBy(-0.15),
	KeyD: () => panBy(0.15),
	KeyF: fitKey,
	BracketLeft: () => nextWait(-1),
	BracketRight: () => nextWait(1),
	KeyN: e => nextHit(e.shiftKey ? -1 : 1),
	KeyK: () => pinned && keepThread(pinned.thread),
	KeyT: () => $("theme").click(),
	Escape: escapeKey,
};
const ON_CANVAS = {
	ArrowLeft: e => (e.shiftKey ? stretchRange(-0.02) : panBy(-0.1)),
	ArrowRight: e => (e.shiftKey ? stretchRange(0.02) : panBy(0.1)),
	ArrowUp: () => stepRow(-1),
	ArrowDown: () => stepRow(1),
	Enter: () =>
		pinned
			? flyToSpan(pinned.from, pinned.to)
			: laneAt() >= 0
				? goToLate(laneAt())
				: stepRow(1),
	Home: () => setView(0, span()),
	End: () => setView(passDur() - span(), passDur()),
};

// Keys that write a character act where the timeline or the details have the focus and, unless the
// reader has switched that off, where nothing has it that was reached by keys.
const ANYWHERE = "giltracer-keys";
const isHere = el => !!el.closest?.("#timeline, #details");
const isNowhere = el => el === document.body || !el.matches?.(":focus-visible");

function keyDown(e) {
	if (e.ctrlKey || e.metaKey || e.altKey || $("help").open) return;
	if (e.target.closest && e.target.closest("input,textarea,select")) return;
	if (
		e.key.length === 1 &&
		!isHere(e.target) &&
		!(isNowhere(e.target) && saved(ANYWHERE) !== "off")
	)
		return;
	let act = ACTIONS[e.code];
	if (e.key === "?") act = helpOpen;
	else if (e.key === "/" || e.code === "Slash")
		act = () => {
			$("search").focus({preventScroll: true});
			$("search").select();
		};
	else if (
		!act &&
		(e.target === tlCanvas ||
			e.target === stripCanvas ||
			(e.target === document.body && !/^(Enter|Home|End|Arrow(Up|Down))$/.test(e.code)))
	)
		act = ON_CANVAS[e.code];
	else if (e.code === "Escape" && !pinned && !range && !only) act = null;
	if (!act) return;
	e.preventDefault();
	act(e);
	if (act !== ACTIONS.KeyF) fitted = false;
	say(
		words.showing(fmtDur(span()), fmtAt(view.from, span() / 100)) +
			(pinned
				? ". " + pinSentence(pinned)
				: laneAt() >= 0 && !$("tip").hidden
					? ". " + $("tip").innerText
					: ""),
	);
}

function helpOpen() {
	const list = items =>
		h(
			"dl.keys",
			items.map(([k, text]) =>
				h(
					"div",
					h(
						"dt",
						k.split("  ").flatMap((x, i) => [i ? " " : "", h("kbd", x)]),
					),
					h("dd", text),
				),
			),
		);
	fill(
		$("help-body"),
		h(
			"div.panels",
			h(
				"div.panel",
				h("h3", words.keysTitle),
				list(words.keys),
				h(
					"label",
					h("input", {
						type: "checkbox",
						checked: saved(ANYWHERE) !== "off",
						onchange: e => save(ANYWHERE, e.target.checked ? "on" : "off"),
					}),
					" ",
					words.keysAnywhere,
				),
				h("p.hint", words.pointerHelp),
			),
			h(
				"div.panel",
				h("h3", words.wordsTitle),
				h(
					"dl.words",
					words.glossary.map(([w, text]) => h("div", h("dt", w), h("dd", text))),
				),
			),
		),
	);
	$("help").showModal();
}

export function keyboardInit() {
	listen(document, "keydown", keyDown);
	click("help-open", helpOpen);
}

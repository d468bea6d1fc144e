// SPDX-License-Identifier: MIT
// The lane of holders over the whole recording: the minimap.

import {gilKnown, gilName, pass} from "./data.js";
import {$, h, listen} from "./dom.js";
import {on, perFrame} from "./events.js";
import {marks} from "./findings.js";
import {fmtPct} from "./format.js";
import {max, min, round} from "./math.js";
import {scratchFor} from "./overview.js";
import {paintOwners, paintStates} from "./owners.js";
import {Raster} from "./raster.js";
import {samplesAlone} from "./samples.js";
import {palette, rgba} from "./theme.js";
import {MIN_SPAN, fitView, flyTo, hits, passDur, setView, span, view} from "./view.js";
import * as words from "./words.js";

const STRIP_H = 64;
const strip = {raster: null, gil: null}; // gil: {of: the pass, index}, if one was chosen

export const stripCanvas = $("strip");
const stripPaint = stripCanvas.getContext("2d");
const stripX = t => (t / passDur()) * stripCanvas.clientWidth;

// The GIL that is shown: the one that was chosen, otherwise the one that was held longest.
function stripGil() {
	const {gils} = pass();
	return strip.gil?.of === pass()
		? strip.gil.index
		: gils.reduce((best, g, i) => (g.held_ns > gils[best].held_ns ? i : best), 0);
}

// With several GILs, the choice between them.
export const stripChoice = () =>
	pass().gils.length > 1 &&
	h(
		"select",
		{
			"aria-label": words.gilOfStrip,
			onchange: e => {
				strip.gil = {of: pass(), index: +e.target.value};
				stripDraw();
			},
		},
		pass().gils.map((g, i) =>
			h(
				"option",
				{value: i, selected: i === stripGil() || null},
				words.gilHeld(gilName(i), fmtPct(g.held_ns, passDur())),
			),
		),
	);

function stripDraw() {
	const width = $("strip-box").clientWidth,
		sc = min(3, devicePixelRatio || 1);
	if (width < 10) return;
	const pw = round(width * sc),
		ph = round(STRIP_H * sc);
	if (!strip.raster || strip.raster.w !== pw || strip.raster.h !== ph) {
		stripCanvas.width = pw;
		stripCanvas.height = ph;
		stripCanvas.style.height = STRIP_H + "px";
		strip.raster = new Raster(pw, ph);
	}
	const r = strip.raster,
		s = scratchFor(pw);
	r.px.fill(rgba(palette.dead));
	const top = round(18 * sc);
	r.rect(0, 0, pw, top, rgba(palette.paper));
	if (!samplesAlone())
		(gilKnown() ? paintOwners : paintStates)(
			r,
			s,
			stripGil(),
			0,
			top,
			pw,
			ph - top,
			0,
			passDur() / pw,
			1,
		);
	stripPaint.putImageData(r.image, 0, 0);
	stripPaint.save();
	stripPaint.scale(sc, sc);
	drawHits(stripPaint, width);
	drawCallouts(stripPaint, width);
	stripPaint.restore();
	brushDraw();
}

function drawHits(c, width) {
	if (!hits.parts) return;
	c.fillStyle = palette.hit;
	const w = width / hits.parts.length;
	for (let i = 0; i < hits.parts.length; i++)
		if (hits.parts[i]) c.fillRect(i * w, STRIP_H - 4, max(1, w), 4);
}

// The places of the findings, with the numbers of their list.
function drawCallouts(c, width) {
	c.font = "600 11px system-ui, sans-serif";
	c.textBaseline = "middle";
	c.textAlign = "center";
	const taken = [];
	for (const m of marks()) {
		const x = max(8, min(width - 8, ((m.from + m.to) / 2 / passDur()) * width));
		c.fillStyle = m.number ? palette.ink : palette.accent;
		const a = (m.from / passDur()) * width,
			b = max(a + 2, (m.to / passDur()) * width);
		c.fillRect(a, m.number ? 16 : 4, b - a, m.number ? 2 : 12);
		if (!m.number || taken.some(q => Math.abs(q - x) < 17)) continue;
		taken.push(x);
		c.beginPath();
		c.arc(x, 8, 7.5, 0, 7);
		c.fill();
		c.fillStyle = palette.paper;
		c.fillText(String(m.number), x, 8.5);
	}
	c.textAlign = "left";
}

function brushDraw() {
	const el = $("strip-brush"),
		width = stripCanvas.clientWidth;
	const a = max(0, min(width, stripX(view.from))),
		b = max(0, min(width, stripX(view.to)));
	el.style.left = a + "px";
	el.style.width = max(6, b - a) + "px";
	el.hidden = a <= 0 && b >= width;
	$("strip-box").classList.toggle("whole", el.hidden);
}

function stripPointer() {
	const box = $("strip-box");
	let drag = null;
	const at = e =>
		((e.clientX - stripCanvas.getBoundingClientRect().left) / stripCanvas.clientWidth) *
		passDur();
	listen(box, "pointerdown", e => {
		if (e.button !== 0) return;
		const edge = e.target.parentNode === $("strip-brush") ? e.target.className : "";
		const t = at(e);
		const moves = !edge && e.target === $("strip-brush");
		drag = {t, edge, moves, from: view.from, to: view.to, x: e.clientX, far: false};
		box.setPointerCapture(e.pointerId);
		e.preventDefault();
		stripCanvas.focus({preventScroll: true});
	});
	listen(box, "pointermove", e => {
		if (!drag) return;
		if (Math.abs(e.clientX - drag.x) > 3) drag.far = true;
		if (!drag.far) return;
		const t = at(e);
		if (drag.edge === "w") setView(min(t, drag.to - MIN_SPAN), drag.to);
		else if (drag.edge === "e") setView(drag.from, max(t, drag.from + MIN_SPAN));
		else if (drag.moves) setView(drag.from + t - drag.t, drag.to + t - drag.t);
		else setView(min(t, drag.t), max(t, drag.t));
	});
	listen(box, "pointerup", () => {
		if (drag && !drag.far && !drag.moves && !drag.edge) {
			const half = min(span(), passDur() / 10) / 2;
			flyTo(drag.t - half, drag.t + half);
		}
		drag = null;
	});
	listen(box, "dblclick", () => fitView());
}

export function stripInit() {
	const again = perFrame(stripDraw);
	on("now", stripDraw);
	on("data pass theme lit search", again);
	on("view", perFrame(brushDraw));
	addEventListener("resize", again);
	stripPointer();
	stripDraw();
}

// SPDX-License-Identifier: MIT
// The columns beside the timeline: their edges can be dragged or moved by arrow keys, and the
// details can be at the right. Both are remembered.

import {$, click, h, listen, save, saved} from "./dom.js";
import {max, min, round} from "./math.js";
import * as words from "./words.js";

const LEAST = 240; // px
const STEP = 24;

const first = () => $("details").parentNode;
const isRight = () => first().classList.contains("right");
const nameOf = panel => (panel === $("details") && isRight() ? "--dock" : "--side");

function widen(panel, edge, px) {
	const width = round(max(LEAST, min(first().clientWidth * 0.5, px))),
		name = nameOf(panel);
	first().style.setProperty(name, width + "px");
	edge.ariaValueNow = String(width);
	save("giltracer" + name, String(width));
}

function edgeOf(panel) {
	const edge = h("i.edge", {
		role: "separator",
		"aria-orientation": "vertical",
		"aria-label": words.widthOf,
		"aria-valuenow": 360,
		tabindex: 0,
	});
	const at = () => panel.getBoundingClientRect(),
		side = () => (nameOf(panel) === "--dock" ? -1 : 1);
	listen(edge, "pointerdown", e => {
		edge.setPointerCapture(e.pointerId);
		e.preventDefault();
	});
	listen(edge, "pointermove", e => {
		if (!edge.hasPointerCapture(e.pointerId)) return;
		widen(panel, edge, side() > 0 ? e.clientX - at().left : at().right - e.clientX);
	});
	listen(edge, "keydown", e => {
		const by = {ArrowLeft: -STEP, ArrowRight: STEP}[e.key];
		if (!by) return;
		e.preventDefault();
		e.stopPropagation();
		widen(panel, edge, at().width + by * side());
	});
	panel.append(edge);
}

function dock(right) {
	first().classList.toggle("right", right);
	$("details-dock").ariaPressed = String(right);
}

export function dockInit() {
	for (const name of ["--side", "--dock"])
		if (+saved("giltracer" + name) >= LEAST)
			first().style.setProperty(name, saved("giltracer" + name) + "px");
	edgeOf($("findings"));
	edgeOf($("details"));
	dock(saved("giltracer-dock") === "right");
	click("details-dock", () => {
		dock(!isRight());
		save("giltracer-dock", isRight() ? "right" : "left");
	});
}

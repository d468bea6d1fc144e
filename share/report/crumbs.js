// SPDX-License-Identifier: MIT
// The parts that the reader zoomed in from, each within the one before it, as a way back.

import {$, fill, h} from "./dom.js";
import {on, whenQuiet} from "./events.js";
import {fmtAt, fmtDur} from "./format.js";
import {flyTo, passDur, span, view} from "./view.js";
import * as words from "./words.js";

const CRUMBS = 6; // the most that are shown
const NARROWER = 0.8; // of the part before: less is a step of its own

let crumbs = []; // [{from, to}], the whole recording first

const holds = (a, b) => {
	const slack = (a.to - a.from) / 1000;
	return a.from - slack <= b.from && b.to <= a.to + slack;
};

function crumbsDraw() {
	const now = {from: view.from, to: view.to},
		whole = {from: 0, to: passDur()};
	if (crumbs[0]?.to !== whole.to) crumbs = [whole];
	const last = () => crumbs[crumbs.length - 1],
		isStep = () => holds(last(), now) && span() < NARROWER * (last().to - last().from);
	while (crumbs.length > 1 && !isStep()) crumbs.pop();
	if (isStep()) crumbs.push(now);
	if (crumbs.length > CRUMBS) crumbs.splice(1, 1);
	$("crumbs").hidden = crumbs.length < 2;
	fill(
		$("crumbs"),
		crumbs.map((c, i) =>
			h(
				"button.link",
				{
					title: words.crumbTitle(
						fmtAt(c.from, (c.to - c.from) / 100),
						fmtAt(c.to, (c.to - c.from) / 100),
					),
					"aria-current": i === crumbs.length - 1 && "true",
					onclick: () => flyTo(c.from, c.to),
				},
				i ? fmtDur(c.to - c.from) : words.wholeCrumb,
			),
		),
	);
}

export function crumbsInit() {
	on("view pass", whenQuiet(350, crumbsDraw));
}

// SPDX-License-Identifier: MIT
// The findings beside the timeline. C wrote the list; here each lights up its places, and leads to
// them: the one that cost most, then the next.

import {meta, pass, passIndex, report} from "./data.js";
import {$, h, listen} from "./dom.js";
import {emit} from "./events.js";
import {fmtAt} from "./format.js";
import {seeTimeline, unhide} from "./layout.js";
import {max} from "./math.js";
import {pinLane} from "./pick.js";
import {loading, store} from "./store.js";
import {flyToSpan, passDur, setPass, setPin} from "./view.js";
import * as words from "./words.js";

const mainPass = meta.main_pass || 0;
const list = report.findings || [];
let lit = -1; // the finding under the pointer or with the focus

// A tid can be used again: the place is of the thread that lived then.
function threadOf(place) {
	const {threads} = pass();
	const at = threads.findIndex(
		t => t.tid === place.tid && t.from_ns <= place.from_ns && place.from_ns < t.to_ns,
	);
	return at < 0 ? threads.findIndex(t => t.tid === place.tid) : at;
}

// The rows of a place: its thread, or "g" and the index of a group of tasks.
export const groupKey = group => "g" + group;
const keyOf = place => ("tid" in place ? threadOf(place) : groupKey(place.task_group));

// The places of a finding by row, each list by time: Map of [{from, to}, …]. Null if none is lit.
let rows = null;
export function litRows() {
	if (lit < 0 || passIndex !== mainPass) return null;
	if (rows) return rows;
	rows = new Map();
	for (const p of list[lit].places) {
		const key = keyOf(p);
		if (!rows.has(key)) rows.set(key, []);
		rows.get(key).push({from: p.from_ns, to: p.to_ns});
	}
	for (const places of rows.values()) places.sort((a, b) => a.from - b.from);
	return rows;
}

// What the whole recording shows: the places of the finding that is lit, or else the first place of
// each: [{from, to, number}]
export const marks = () =>
	passIndex !== mainPass
		? []
		: lit >= 0
			? list[lit].places.map(p => ({from: p.from_ns, to: p.to_ns, number: 0}))
			: list.flatMap(({places: [p]}, i) =>
					p ? [{from: p.from_ns, to: p.to_ns, number: i + 1}] : [],
				);

function light(i) {
	if (i === lit) return;
	lit = list[i] && list[i].places.length ? i : -1;
	rows = null;
	emit("lit");
}

function goTo(finding, k) {
	const place = finding.places[k];
	light(-1);
	setPass(mainPass);
	if (!place) return;
	if ("tid" in place) {
		const thread = threadOf(place),
			cpu = finding.kind === "few-cpus" || finding.kind === "quota";
		unhide(thread);
		if (loading.complete)
			setPin(
				pinLane(
					cpu && store().cpu[thread] ? "cpu" : "gil",
					thread,
					(place.from_ns + place.to_ns) / 2,
				),
			);
	} else setPin(null);
	flyToSpan(place.from_ns, place.to_ns);
	seeTimeline();
}

// Leads to the next place, and says which one it is.
function stepper(finding) {
	let k = 0;
	const n = finding.places.length,
		say = () => {
			button.textContent = words.placeOf(
				k,
				n,
				fmtAt(finding.places[k].from_ns, max(1e6, passDur() / 1000)),
			);
		};
	const button = h("button.link", {
		onclick: e => {
			e.stopPropagation();
			goTo(finding, k);
			say();
			k = (k + 1) % n;
		},
	});
	if (n) say();
	return n ? h("p.where", button) : null;
}

function open(items, at) {
	items.forEach((li, i) => {
		li.classList.toggle("open", i === at);
		li.querySelector("h3 button").setAttribute("aria-expanded", String(i === at));
	});
}

export function findingsInit() {
	const ol = document.querySelector("#verdict .findings");
	if (!ol) return;
	// Those after them are gone from this recording.
	const items = /** @type {HTMLElement[]} */ ([...ol.children].slice(0, list.length));
	$("findings").hidden = false;
	$("findings-body").append(ol);
	items.forEach((li, i) => {
		const finding = list[i];
		const h3 = li.querySelector("h3"),
			show = () => {
				open(items, i);
				goTo(finding, 0);
			};
		h3.replaceChildren(
			h("button.title", {"aria-expanded": "false", onclick: show}, h3.textContent),
		);
		li.style.setProperty("--share", Math.min(100, finding.percent) + "%");
		li.append(stepper(finding) || "");
		listen(li, "click", e => e.target.closest("button") || show());
		listen(li, "pointerenter", () => light(i));
		listen(li, "pointerleave", () => light(-1));
		listen(li, "focusin", () => light(i));
		listen(li, "focusout", () => light(-1));
	});
	open(items, 0);
}

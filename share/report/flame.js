// SPDX-License-Identifier: MIT
// Draws the flame graph that flametree.js builds.

import {$, fill, h, rove} from "./dom.js";
import {emit, on, whenQuiet} from "./events.js";
import {flameBuild, flameModes, reshape} from "./flametree.js";
import {fmtDur, fmtPct, plural} from "./format.js";
import {max} from "./math.js";
import {hasSamples} from "./samples.js";
import {sandwichShow} from "./sandwich.js";
import {loading, store} from "./store.js";
import {empty} from "./table.js";
import {nameHash, palette, sliceColors} from "./theme.js";
import {hits, partWords} from "./view.js";

// The graph that is shown. key: of the function that is shown between its callers and callees.
export const flame = {mode: "off-gil", root: null, key: "", python: false, merged: false};

// Show the section if there is data for it. It is drawn only when it is in view.
function flameOffer() {
	const st = store();
	$("flame").hidden =
		!loading.complete ||
		!flameModes().length ||
		!(st.calls > 0 || st.stacks.parent.length > 1 || hasSamples());
}

// The result of flameBuild(), with the tree in the shape that is shown.
export function flameTree() {
	const modes = flameModes();
	if (!modes.some(([m]) => m === flame.mode)) flame.mode = modes[0][0];
	const built = flameBuild(flame.mode);
	return {...built, modes, shown: reshape(built.root, flame)};
}

function flameDraw() {
	if ($("flame").hidden) return;
	const {modes, root, total, part, samples, whole, shown} = flameTree();
	flame.root = shown;
	const redraw = change => () => {
		change();
		flameDraw();
		emit("link");
	};
	const toggle = (pressed, text, title, change) =>
		h("button", {"aria-pressed": String(pressed), title, onclick: redraw(change)}, text);
	fill(
		$("flame-modes"),
		modes.map(([m, text]) =>
			toggle(m === flame.mode, text, null, () => {
				flame.mode = m;
			}),
		),
		SHAPES.map(([key, text, title]) =>
			toggle(!!flame[key], text, title, () => {
				flame[key] = !flame[key];
			}),
		),
	);
	$("flame-note").textContent =
		"Time " +
		partWords() +
		" (" +
		fmtDur(part.to - part.from) +
		"): " +
		(samples === undefined ? "" : "estimated from " + plural(samples, "sample") + ", about ") +
		fmtDur(total) +
		(whole
			? ""
			: ", of which the longest spans, " +
				fmtPct(root.ns, total) +
				", are drawn: a shorter range shows all") +
		". Width is time; callers above, callees below. Click a frame to zoom in." +
		(hits.text ? " Found: " + fmtDur(litTime(flame.root)) + "." : "");
	flameShow(flame.root);
	sandwichShow(flame.key, flame.python);
}

export function functionShow(key) {
	flame.key = key;
	flameOffer();
	sandwichShow(key, flame.python);
	emit("link");
}

const SHAPES = [
	[
		"python",
		"Python only",
		"Without native frames: their time is that of the Python call they ran in",
	],
	["merged", "Merge threads", "All threads as one"],
	["inverted", "Inverted", "Innermost functions first"],
];

// The time in frames that match the search; a match within another one does not count again.
function litTime(node) {
	if (isLit(node)) return node.ns;
	return [...node.kids.values()].reduce((n, kid) => n + litTime(kid), 0);
}
const isLit = node => hits.text !== "" && node.name.toLowerCase().includes(hits.text.toLowerCase());

function frameButton(node, focus, x, w, top) {
	const text = node === flame.root ? "all shown" : node.name;
	const label = text + ", " + fmtDur(node.ns) + ", " + fmtPct(node.ns, flame.root.ns);
	const color = top === 0 ? palette.none : sliceColors[nameHash(text) % sliceColors.length];
	return h(
		"button.frame",
		{
			title: label,
			"aria-label": label,
			onclick: () => {
				flameShow(node === focus ? flame.root : node);
				functionShow(node === focus ? "" : node.key);
			},
			style:
				"left:" +
				(x * 100).toFixed(4) +
				"%;width:" +
				(w * 100).toFixed(4) +
				"%;top:" +
				top +
				"px;background:" +
				(isLit(node) ? palette.hit + ";color:" + palette.paper : color),
		},
		text,
	);
}

const FRAME_H = 19;

function flameShow(focus) {
	const out = [],
		family = new Map(); // by button: {up, kids}
	const place = (node, x, w, depth, up) => {
		if (w < 0.0008 || depth > 60 || out.length > 3000) return;
		const button = frameButton(node, focus, x, w, depth * FRAME_H);
		out.push(button);
		family.set(button, {up, depth, kids: []});
		if (up) family.get(up).kids.push(button);
		let at = x;
		for (const kid of [...node.kids.values()].sort((a, b) => b.ns - a.ns)) {
			const kw = (w * kid.ns) / node.ns;
			place(kid, at, kw, depth + 1, button);
			at += kw;
		}
	};
	if (focus.ns > 0) place(focus, 0, 1, 0, null);
	const box = $("flame-body");
	const depths = [...family.values()].map(f => f.depth);
	box.style.height = (max(0, ...depths) + 1) * FRAME_H + "px";
	fill(box, out.length ? out : empty("Nothing of this kind here."));
	rove(box, (from, key) => {
		const {up, kids} = family.get(from),
			row = up ? family.get(up).kids : [from];
		const by = {ArrowLeft: -1, ArrowRight: 1}[key];
		return key === "ArrowUp"
			? up
			: key === "ArrowDown"
				? kids[0]
				: by && row[row.indexOf(from) + by];
	});
}

export function flameInit() {
	const later = whenQuiet(400, () => {
		if (flameSeen) flameDraw();
	});
	let flameSeen = false;
	new IntersectionObserver(
		list => {
			flameSeen = list[list.length - 1].isIntersecting;
			if (flameSeen) later();
		},
		{rootMargin: "200px"},
	).observe($("flame"));
	on("now", flameDraw);
	on("view range filter theme search flame-read", later);
	on("complete pass", () => {
		flameOffer();
		later();
	});
}

// SPDX-License-Identifier: MIT
// Draws the flame graph that flametree.js builds.

import {$, fill, h, rove} from "./dom.js";
import {atOnce, emit, inSteps, on, whenQuiet} from "./events.js";
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
export function* flameTree() {
	const modes = flameModes();
	if (!modes.some(([m]) => m === flame.mode)) flame.mode = modes[0][0];
	const built = yield* flameBuild(flame.mode);
	return {...built, modes, shown: reshape(built.root, flame)};
}

const flameDraw = inSteps(flameFill);

function* flameFill() {
	if ($("flame").hidden) return;
	const {modes, root, part, samples, shown} = yield* flameTree();
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
		fmtDur(root.ns) +
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
const FRAMES = 3000; // the most that are drawn
const LEVELS = 60;
const THIN = 0.0008; // of the width

// {drawn: [{node, x, w, depth, up}], callers first; left: frames that are not drawn}
function framesIn(focus) {
	const all = [];
	let left = 0;
	const place = (node, x, w, depth, up) => {
		if (w < THIN || depth >= LEVELS) left++;
		else up = all[all.push({node, x, w, depth, up}) - 1];
		let at = x;
		for (const kid of [...node.kids.values()].sort((a, b) => b.ns - a.ns)) {
			const kw = (w * kid.ns) / node.ns;
			place(kid, at, kw, depth + 1, up);
			at += kw;
		}
	};
	if (focus.ns > 0) place(focus, 0, 1, 0, null);
	const drawn = all.sort((a, b) => b.w - a.w || a.depth - b.depth).slice(0, FRAMES);
	return {drawn, left: left + all.length - drawn.length};
}

function flameShow(focus) {
	const family = new Map(), // by button: {up, kids}
		buttons = new Map(), // by frame
		{drawn, left} = framesIn(focus);
	for (const f of drawn) {
		const button = frameButton(f.node, focus, f.x, f.w, f.depth * FRAME_H),
			up = f.up && buttons.get(f.up);
		buttons.set(f, button);
		family.set(button, {up, depth: f.depth, kids: []});
		if (up) family.get(up).kids.push(button);
	}
	const out = [...family.keys()];
	$("flame-left").textContent = left
		? "Not drawn, because they are too narrow or too deep: " +
			plural(left, "frame") +
			". Click a frame to see those above it."
		: "";
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
	on("now", () => atOnce(flameFill()));
	on("view range filter theme search flame-read", later);
	on("complete pass", () => {
		flameOffer();
		later();
	});
}

// SPDX-License-Identifier: MIT
// Draws the flame graphs: those that flametree.js builds of a part, and those of meeting.js.

import {$, fill, h, rove} from "./dom.js";
import {atOnce, emit, inSteps, on, whenQuiet} from "./events.js";
import {flameBuild, flameModes, reshape} from "./flametree.js";
import {fmtDur, fmtPct} from "./format.js";
import {FRAME_H, frameButton, framesIn, isLit} from "./frames.js";
import {max} from "./math.js";
import {libraryShown, meetingModes, meetingShow, toggleLibrary} from "./meeting.js";
import {hasSamples} from "./samples.js";
import {sandwichShow} from "./sandwich.js";
import {loading, store} from "./store.js";
import {empty} from "./table.js";
import {palette} from "./theme.js";
import {hits, partWords, range} from "./view.js";
import * as words from "./words.js";

// The graph that is shown. key: of the function that is shown between its callers and callees.
// mode "": the first one that is offered.
export const flame = {mode: "", root: null, key: "", python: false, merged: false};

// Show the section if there is data for it. It is drawn only when it is in view.
function flameOffer() {
	const st = store();
	$("flame").hidden =
		!loading.complete ||
		!modesOffered().length ||
		!(st.calls > 0 || st.stacks.parent.length > 1 || hasSamples());
}

// Waiting, of the whole recording, is shown with what was executed meanwhile.
const modesOffered = () => {
	const whole = meetingModes();
	return [
		...whole,
		...flameModes().filter(
			([m]) => m !== "off-gil" || range || !whole.some(([w]) => w === "meet-gil"),
		),
	];
};

const modeNow = () => {
	const modes = modesOffered();
	return (modes.find(([m]) => m === flame.mode) || modes[0])[0];
};

// The result of flameBuild(), with the tree in the shape that is shown.
export function* flameTree() {
	const modes = flameModes(),
		mode = (modes.find(([m]) => m === modeNow()) || modes[0])[0],
		built = yield* flameBuild(mode);
	return {...built, mode, shown: reshape(built.root, flame)};
}

const flameDraw = inSteps(flameFill);

export function flameChoose(mode) {
	flame.mode = mode;
	flameDraw();
	emit("link");
}

function* flameFill() {
	if ($("flame").hidden) return;
	const mode = modeNow(),
		whole = meetingModes().some(([m]) => m === mode);
	const redraw = change => () => {
		change();
		flameDraw();
		emit("link");
	};
	const toggle = (pressed, text, title, change) =>
		h("button", {"aria-pressed": String(pressed), title, onclick: redraw(change)}, text);
	fill(
		$("flame-modes"),
		modesOffered().map(([m, text]) =>
			toggle(m === mode, text, null, () => {
				flame.mode = m;
			}),
		),
		whole
			? toggle(libraryShown(), words.libraryFrames, words.libraryFramesHelp, toggleLibrary)
			: SHAPES.map(([key, text, title]) =>
					toggle(!!flame[key], text, title, () => {
						flame[key] = !flame[key];
					}),
				),
	);
	if (whole) return meetingShow(mode, flameDraw);
	const {root, part, samples, shown} = yield* flameTree();
	flame.root = shown;
	$("flame-note").textContent = words.flameNote({
		part: partWords(),
		dur: fmtDur(part.to - part.from),
		samples,
		ns: fmtDur(root.ns),
		found: hits.text && fmtDur(litTime(flame.root)),
	});
	flameShow(flame.root);
	sandwichShow(flame.key, flame.python);
}

export function functionShow(key) {
	flame.key = key;
	flameOffer();
	if (!meetingModes().some(([m]) => m === modeNow())) sandwichShow(key, flame.python);
	emit("link");
}

const SHAPES = [
	["python", words.pythonOnly, words.pythonOnlyHelp],
	["merged", words.mergeThreads, words.mergeThreadsHelp],
	["inverted", words.inverted, words.invertedHelp],
];

// The time in frames that match the search; a match within another one does not count again.
function litTime(node) {
	if (isLit(node)) return node.ns;
	return [...node.kids.values()].reduce((n, kid) => n + litTime(kid), 0);
}

function flameShow(focus) {
	const family = new Map(), // by button: {up, kids}
		buttons = new Map(), // by frame
		{drawn, left} = framesIn(focus);
	for (const f of drawn) {
		const {node} = f,
			text = node === flame.root ? words.allShown : node.name,
			up = f.up && buttons.get(f.up);
		const button = frameButton({
			text,
			label: text + ", " + fmtDur(node.ns) + ", " + fmtPct(node.ns, flame.root.ns),
			...f,
			top: f.depth * FRAME_H,
			color: f.depth === 0 && palette.none,
			onclick: () => {
				flameShow(node === focus ? flame.root : node);
				functionShow(node === focus ? "" : node.key);
			},
		});
		buttons.set(f, button);
		family.set(button, {up, depth: f.depth, kids: []});
		if (up) family.get(up).kids.push(button);
	}
	const out = [...family.keys()];
	$("flame-left").textContent = left ? words.notDrawn(left) : "";
	const box = $("flame-body");
	const depths = [...family.values()].map(f => f.depth);
	box.style.height = (max(0, ...depths) + 1) * FRAME_H + "px";
	fill(box, out.length ? out : empty(words.nothingOfThisKind));
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

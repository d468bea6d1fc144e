// SPDX-License-Identifier: MIT
// The frames of flame graphs, as buttons.

import {h} from "./dom.js";
import {nameHash, palette, sliceColors} from "./theme.js";
import {hits} from "./view.js";

export const isLit = node =>
	hits.text !== "" && node.name.toLowerCase().includes(hits.text.toLowerCase());

// A frame at x with width w, both shares of the whole, and top in pixels.
export function frameButton({text, label, x, w, top, color = null, onclick}) {
	const percent = share => (share * 100).toFixed(4) + "%",
		paint = isLit({name: text})
			? palette.hit + ";color:" + palette.paper
			: color || sliceColors[nameHash(text) % sliceColors.length];
	return h(
		"button.frame",
		{
			title: label,
			"aria-label": label,
			onclick,
			style: `left:${percent(x)};width:${percent(w)};top:${top}px;background:${paint}`,
		},
		text,
	);
}

export const FRAME_H = 19;
const FRAMES = 3000; // the most that are drawn
const LEVELS = 60;
const THIN = 0.0008; // of the width

// {drawn: [{node, x, w, depth, up}], callers first; left: frames that are not drawn}
/** @returns {{drawn: FlameFrame[], left: number}} */
export function framesIn(focus, levels = LEVELS) {
	const all = [];
	let left = 0;
	const place = (node, x, w, depth, up) => {
		if (w < THIN || depth >= levels) left++;
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

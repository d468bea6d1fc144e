// SPDX-License-Identifier: MIT
// Turns columns into pixels. A column of a state lane is a stack of its states, and the height of
// each is its share. The rounding error is carried to the next column, so that the lane's pixels
// add up to its times.

import {floor, max, min, round} from "./math.js";
import {mix, palette, rgba, sliceColors, sliceIndex, threadColor} from "./theme.js";

export class Raster {
	constructor(width, height) {
		this.w = width;
		this.h = height;
		this.image = new ImageData(width, height);
		this.px = new Uint32Array(this.image.data.buffer);
	}

	rect(x, y, w, h, color) {
		for (let j = max(0, y), e = min(this.h, y + h); j < e; j++)
			this.px.fill(color, j * this.w + x, j * this.w + min(this.w, x + w));
	}

	/*
	 * cols: the time in each of `states` in each column. order: states from the bottom up.
	 * pens[state]: [colour, stripe colour, width of the stripes, their steps along and down], or
	 * null for the lane's background. marks: columns in which the state `mark` gets at least a
	 * pixel.
	 */
	lane(x0, y0, w, h, cols, states, dt, order, pens, ground, dead, marks, mark, scale) {
		const {px, w: stride} = this;
		const top = max(0, y0),
			bottom = min(this.h, y0 + h);
		if (top >= bottom) return;
		const kinds = order.length + 1; // the last kind is the time outside the thread's life
		const want = new Float64Array(kinds),
			carry = new Float64Array(kinds);
		const n = new Int32Array(kinds),
			times = new Float64Array(kinds);
		const period = 6 * scale,
			stripes = stripesFor(w + period * h, period);
		for (let x = 0; x < w; x++) {
			let alive = 0,
				sole = -1;
			for (let k = 0; k + 1 < kinds; k++) {
				const time = (times[k] = cols[x * states + order[k]]);
				alive += time;
				if (time >= dt) sole = k;
			}
			// The most frequent case: a single state fills the column.
			if (sole >= 0 && alive === times[sole] && !(marks && marks[x])) {
				this.column(
					x0 + x,
					x,
					y0,
					h,
					top,
					bottom,
					pens[order[sole]],
					ground,
					stripes,
					scale,
				);
				continue;
			}
			times[kinds - 1] = max(0, dt - alive);
			let used = 0;
			for (let k = 0; k < kinds; k++) {
				const time = times[k];
				want[k] = (time / dt) * h + carry[k];
				n[k] = time > 0 ? max(0, floor(want[k] + 1e-9)) : 0;
				if (marks && marks[x] && order[k] === mark && n[k] < scale) n[k] = scale;
				used += n[k];
			}
			while (used < h) {
				let best = -1;
				for (let k = 0; k < kinds; k++) {
					if (
						(times[k] > 0 || (k + 1 === kinds && alive <= 0)) &&
						(best < 0 || want[k] - n[k] > want[best] - n[best])
					)
						best = k;
				}
				if (best < 0) best = kinds - 1;
				n[best]++;
				used++;
			}
			while (used > h) {
				let worst = -1;
				for (let k = 0; k < kinds; k++) {
					const least = marks && marks[x] && order[k] === mark ? scale : 0;
					if (n[k] > least && (worst < 0 || want[k] - n[k] < want[worst] - n[worst]))
						worst = k;
				}
				if (worst < 0) break;
				n[worst]--;
				used--;
			}
			let y = y0 + h;
			for (let k = 0; k < kinds; k++) {
				carry[k] = max(-h, min(h, want[k] - n[k]));
				if (!n[k]) continue;
				const pen = k + 1 < kinds ? pens[order[k]] : null;
				const color = k + 1 < kinds ? (pen ? pen[0] : ground) : dead,
					wide = pen && pen[2] ? pen[2] * scale : 0;
				const first = y - n[k],
					end = min(y, bottom);
				y = first;
				let j = max(first, top),
					at = j * stride + x0 + x;
				if (!wide) for (; j < end; j++, at += stride) px[at] = color;
				else {
					const down = (pen[4] + period) % period;
					for (
						let q = x * pen[3] + (j - y0) * down;
						j < end;
						j++, at += stride, q += down
					)
						px[at] = stripes[q] >= wide ? pen[1] : color;
				}
			}
		}
	}

	// A column of one state.
	column(at, x, y0, h, top, bottom, pen, ground, stripes, scale) {
		const px = this.px,
			stride = this.w,
			color = pen ? pen[0] : ground,
			wide = pen && pen[2] ? pen[2] * scale : 0,
			down = wide ? (pen[4] + 6 * scale) % (6 * scale) : 0;
		let y = max(y0, top),
			q = wide ? x * pen[3] + (y - y0) * down : 0;
		for (let e = min(y0 + h, bottom), p = y * stride + at; y < e; y++, p += stride, q += down)
			px[p] = wide && stripes[q] >= wide ? pen[1] : color;
	}

	// A row of calls: one line of pixels, which is copied for the height of the row.
	calls(x0, y0, w, h, cover, name, edge, ground, lit, litColor) {
		const top = max(0, y0),
			bottom = min(this.h, y0 + h);
		if (top >= bottom) return;
		const line = this.px.subarray(top * this.w + x0, top * this.w + x0 + w);
		for (let x = 0; x < w; x++) {
			if (name[x] < 0) line[x] = ground;
			else if (lit && lit[name[x]]) line[x] = litColor;
			else
				line[x] = shade(
					name[x],
					lit ? cover[x] * 0.4 : edge[x] && cover[x] > 0.999 ? 0.45 : cover[x],
				);
		}
		for (let y = top + 1; y < bottom; y++)
			this.px.copyWithin(y * this.w + x0, top * this.w + x0, top * this.w + x0 + w);
	}
}

// The position of a pixel in the period of its stripes, by its steps along and down.
let stripeTable = null;
function stripesFor(n, period) {
	if (!stripeTable || stripeTable.length < n || stripeTable.period !== period) {
		stripeTable = Uint8Array.from({length: n + 64}, (_, i) => i % period);
		stripeTable.period = period;
	}
	return stripeTable;
}

// The colour of a function, from faint (0) to full (1).
let shades = null;
function shade(id, strength) {
	if (!shades || shades.of !== sliceColors) {
		shades = sliceColors.map(hex =>
			Uint32Array.from({length: 17}, (_, i) =>
				rgba(mix(palette.paper, hex, 0.22 + (0.78 * i) / 16)),
			),
		);
		shades.of = sliceColors;
	}
	return shades[sliceIndex(id)][round(min(1, strength) * 16)];
}

// The directions of stripes, as steps along and down.
const UP = [1, 1];
const DOWN = [1, -1];
const UPRIGHT = [1, 0];
const LEVEL = [0, 1];
const penOf = (color, other, wide, to) =>
	other ? [rgba(color), rgba(other), wide, ...to] : [rgba(color), 0, 0];

export function gilPens(thread) {
	const p = palette;
	return [
		penOf(p.unknown, p.unknownAlt, 2, DOWN),
		null,
		penOf(threadColor(thread)),
		penOf(p.wait, p.waitAlt, 3, UP),
		penOf(p.wait, p.swwaitAlt, 3, LEVEL),
		penOf(p.freewait, p.none, 2, UPRIGHT),
	];
}

export function cpuPens() {
	const p = palette;
	return [
		penOf(p.unknown, p.unknownAlt, 2, DOWN),
		penOf(p.running),
		penOf(p.runnable, p.runnableAlt, 3, DOWN),
		penOf(p.sleeping),
		penOf(p.disk, p.diskAlt, 3, UPRIGHT),
		penOf(p.gilsleep, p.gilsleepAlt, 3, UP),
	];
}

// From the bottom: hold, no GIL, unknown; waits come last, at the top.
export const GIL_ORDER = [2, 1, 0, 5, 4, 3];
export const CPU_ORDER = [1, 3, 0, 4, 2, 5];

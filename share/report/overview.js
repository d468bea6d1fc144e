// SPDX-License-Identifier: MIT
// Columns of a track from the overview, until the track has been read, and buffers for columns.

import {meta, overview, passIndex} from "./data.js";
import {floor, max} from "./math.js";
import {FREE_STATE, GIL_STATES, HOLD_STATE, NONE_STATE, WAIT_STATE} from "./states.js";

let scratch = null;
export function scratchFor(w) {
	if (!scratch || scratch.w !== w)
		scratch = {
			w,
			cols: new Float64Array(w * 6),
			marks: new Uint8Array(w),
			cover: new Float32Array(w),
			name: new Int32Array(w),
			edge: new Uint8Array(w),
			wide: new Float64Array(w * 16),
		};
	return scratch;
}

const SIXBITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

export const coarseOf = thread =>
	overview.pass === passIndex && (overview.threads || []).find(o => o.thread === thread);

export function coarseColumns(of, t0, dt, w, cols) {
	const bucket = meta.passes[overview.pass].dur_ns / overview.buckets;
	cols.fill(0, 0, w * GIL_STATES);
	for (let x = 0; x < w; x++) {
		const b = floor((t0 + (x + 0.5) * dt) / bucket);
		if (b < 0 || b >= overview.buckets) continue;
		for (const [state, text] of [
			[NONE_STATE, of.no],
			[HOLD_STATE, of.hold],
			[WAIT_STATE, of.wait],
			[FREE_STATE, of.free_wait],
		])
			cols[x * GIL_STATES + state] = (max(0, SIXBITS.indexOf(text[b])) / 63) * dt;
	}
	return cols;
}

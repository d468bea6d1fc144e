// SPDX-License-Identifier: MIT
// A lane coloured by holder, with gaps where no thread holds the GIL, and a dark overlay whose
// height is the share of threads that wait.

import {pass} from "./data.js";
import {laneColumns} from "./lod.js";
import {max, min, round} from "./math.js";
import {coarseColumns, coarseOf} from "./overview.js";
import {CPU_ORDER, cpuPens} from "./raster.js";
import {GIL_STATES, HOLD_STATE, WAIT_STATE} from "./states.js";
import {loading, store} from "./store.js";
import {mix, palette, rankColor, rankOf, ranks, rgba} from "./theme.js";
import {turns, waitColumns} from "./turns.js";

// Paint the holders in each column from the bottom up, in the order of their colours, with error
// diffusion as in lanes. Until everything has been read, they come from the overview.
export function paintOwners(r, s, gil, x0, y, w, hgt, t0, dt) {
	if (!loading.complete || !store().gil.length)
		return paintCoarseOwners(r, s, x0, y, w, hgt, t0, dt);
	const states = ranks() + 1,
		cols = laneColumns(turns(gil).lane, t0, dt, w, -1, new Float64Array(w * states));
	drawOwners(r, states, cols, waitColumns(gil, t0, dt, w), x0, y, w, hgt, t0, dt);
}

function paintCoarseOwners(r, s, x0, y, w, hgt, t0, dt) {
	const states = ranks() + 1,
		cols = new Float64Array(w * states),
		waits = new Float64Array(w);
	pass().threads.forEach((t, thread) => {
		const of = coarseOf(thread);
		if (!of) return;
		const own = coarseColumns(of, t0, dt, w, s.cols);
		for (let x = 0; x < w; x++) {
			cols[x * states + 1 + rankOf(thread)] += own[x * GIL_STATES + HOLD_STATE];
			waits[x] += own[x * GIL_STATES + WAIT_STATE];
		}
	});
	drawOwners(r, states, cols, waits, x0, y, w, hgt, t0, dt);
}

// Without GIL events: paint the CPU states of all threads together.
export function paintStates(r, s, gil, x0, y, w, hgt, t0, dt, unit) {
	const lanes = store().cpu.filter(lane => lane && lane.sections.length),
		sum = new Float64Array(w * 6);
	for (const lane of lanes) {
		laneColumns(lane, t0, dt, w, -1, s.cols);
		for (let i = 0; i < w * 6; i++) sum[i] += s.cols[i];
	}
	r.lane(
		x0,
		y,
		w,
		hgt,
		sum,
		6,
		dt * max(1, lanes.length),
		CPU_ORDER,
		cpuPens(),
		rgba(palette.none),
		rgba(palette.dead),
		null,
		-1,
		unit,
	);
}

function drawOwners(r, states, cols, waits, x0, y, w, hgt, t0, dt) {
	const order = Array.from({length: states - 1}, (_, i) => i + 1);
	const dead = rgba(palette.dead),
		pens = [null, ...order.map(k => [rgba(rankColor(k - 1)), 0, 0])];
	const owners = round(hgt * 0.72);
	for (let x = 0; x < w; x++) cols[x * states] = 0; // draw nothing where no thread holds the GIL
	r.lane(x0, y, w, owners, cols, states, dt, order, pens, 0, dead, null, -1, 1);
	const ink = rgba(mix(palette.paper, palette.ink, 0.8));
	const most = max(1, pass().threads.filter(t => t.wait_ns > 0).length);
	r.rect(x0, y + owners, w, hgt - owners, dead);
	for (let x = 0; x < w; x++) {
		const share = waits[x] / dt / most;
		const high = share > 0 ? max(1, round(min(1, share) * (hgt - owners - 1))) : 0;
		for (let q = 0; q < high; q++) r.px[(y + owners + 1 + q) * r.w + x0 + x] = ink;
	}
}

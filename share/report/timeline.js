// SPDX-License-Identifier: MIT
// The timeline: rows of all threads for the part in view, on one canvas.

import {pass} from "./data.js";
import {$, listen} from "./dom.js";
import {on, perFrame} from "./events.js";
import {drawOver} from "./labels.js";
import {AXIS, GUTTER, rowOf, setGutter, tl, tlBox, tlCanvas, tlFollow, tlLayout} from "./layout.js";
import {gilColumns, laneColumns, markColumns, rowColumns} from "./lod.js";
import {floor, max, min, round} from "./math.js";
import {coarseColumns, coarseOf, scratchFor} from "./overview.js";
import {paintOwners} from "./owners.js";
import {CPU_ORDER, GIL_ORDER, Raster, cpuPens, gilPens} from "./raster.js";
import {paintSamples} from "./samples.js";
import {GIL_STATES, WAIT_STATE} from "./states.js";
import {store} from "./store.js";
import {paintTasks} from "./tasks.js";
import {palette, rgba} from "./theme.js";
import {upper} from "./tracks.js";
import {hits, pinned, span, view} from "./view.js";

const BELOW = 58; // the height of the hint and the frame below the lanes
const tlPaint = tlCanvas.getContext("2d");
// On a wide screen, the timeline ends where the first screen does.
function heightInSight() {
	const top = tlBox.getBoundingClientRect().top + scrollY;
	return round(innerWidth < 1000 ? innerHeight * 0.72 : innerHeight - top - BELOW);
}

function tlResize() {
	const width = tlBox.clientWidth;
	setGutter(width < 600 ? 104 : 212);
	const height = max(160, min(tl.height, max(innerWidth < 1000 ? 320 : 200, heightInSight())));
	const scale = min(3, devicePixelRatio || 1);
	tlBox.style.height = height + "px";
	if (width === tl.width && height === tl.viewHeight && scale === tl.scale && tl.raster) return;
	tl.width = width;
	tl.viewHeight = height;
	tl.scale = scale;
	tlCanvas.width = round(width * scale);
	tlCanvas.height = round(height * scale);
	tlCanvas.style.width = width + "px";
	tlCanvas.style.height = height + "px";
	tl.raster = new Raster(tlCanvas.width, tlCanvas.height);
}

function tlDraw() {
	const began = performance.now();
	if (tlBox.clientWidth < GUTTER + 10)
		// there is no layout: the timeline is hidden
		return;
	tlResize();
	const sc = tl.scale,
		r = tl.raster,
		c = tlPaint;
	const x0 = round(GUTTER * sc),
		w = r.w - x0;
	if (w < 10) return;
	const dt = span() / w,
		scroll = tlBox.scrollTop;
	const s = scratchFor(w);
	r.px.fill(rgba(palette.paper));
	const paint = (row, top) => {
		const y = round(top * sc),
			hgt = round(row.h * sc);
		if (y + hgt >= AXIS * sc && y <= r.h) paintRow(row, r, s, x0, y, w, hgt, dt, sc);
	};
	for (const row of tl.rows) if (!row.fixed) paint(row, row.y - scroll);
	r.rect(0, 0, r.w, round(tl.top * sc), rgba(palette.paper));
	for (const row of tl.rows) if (row.fixed) paint(row, row.y);
	c.putImageData(r.image, 0, 0);
	c.save();
	c.scale(sc, sc);
	drawOver(c, scroll);
	c.restore();
	tl.drawMs.push(performance.now() - began);
	if (tl.drawMs.length > 600) tl.drawMs.shift();
}

function paintRow(row, r, s, x0, y, w, hgt, dt, sc) {
	const st = store(),
		unit = max(1, round(sc));
	const dead = rgba(palette.dead),
		ground = rgba(palette.none);
	if (row.kind === "owner") {
		paintOwners(r, s, row.gil, x0, y + unit, w, hgt - 2 * unit, view.from, dt);
	} else if (row.kind === "gil" || row.kind === "held") {
		paintGil(row.thread, r, s, x0, y + unit, w, hgt - 2 * unit, view.from, dt, unit);
	} else if (row.kind === "thin") {
		paintGil(row.thread, r, s, x0, y, w, hgt, view.from, dt, unit);
	} else if (row.kind === "crowd") {
		paintCrowd(row.threads, r, x0, y + unit, w, hgt - 2 * unit, dt, unit);
	} else if (row.kind === "slot") {
		r.rect(x0, y + unit, w, hgt - 2 * unit, dead);
		for (const thread of row.threads)
			paintLife(thread, r, s, x0, y + unit, w, hgt - 2 * unit, dt, unit, row.shift || 0);
	} else if (row.kind === "cpu") {
		laneColumns(st.cpu[row.thread], view.from, dt, w, -1, s.cols);
		r.lane(
			x0,
			y + unit,
			w,
			hgt - 2 * unit,
			s.cols,
			6,
			dt,
			CPU_ORDER,
			cpuPens(),
			ground,
			dead,
			null,
			-1,
			unit,
		);
	} else if (row.kind === "py") {
		rowColumns(
			st.slices[row.thread][row.depth],
			view.from,
			dt,
			w,
			s.cover,
			s.name,
			s.edge,
			hits.lit,
		);
		r.calls(
			x0,
			y + unit,
			w,
			hgt - unit,
			s.cover,
			s.name,
			s.edge,
			rgba(palette.dead),
			hits.lit,
			rgba(palette.hit),
		);
	} else if (row.kind === "tasks") {
		paintTasks(row, r, s, x0, y + unit, w, hgt - 2 * unit, dt, unit, dead);
	} else if (row.kind === "samples") {
		paintSamples(row, r, x0, y + unit, w, hgt - 2 * unit, dt, unit);
	} else if (row.kind === "counter") {
		paintCounter(row, r, s, x0, y + unit, w, hgt - 2 * unit, dt);
	}
}

function paintGil(thread, r, s, x0, y, w, hgt, t0, dt, unit) {
	const lane = store().gil[thread];
	if (!lane) return paintCoarse({thread}, r, s, x0, y, w, hgt, dt, unit);
	const cols = gilColumns(thread, t0, dt, w, -1),
		marks = markColumns(lane, t0, dt, w, s.marks);
	const ground = rgba(palette.none),
		dead = rgba(palette.dead);
	r.lane(
		x0,
		y,
		w,
		hgt,
		cols,
		GIL_STATES,
		dt,
		GIL_ORDER,
		gilPens(thread),
		ground,
		dead,
		marks,
		WAIT_STATE,
		unit,
	);
}

// Paint the number of threads in each state as its share of the height.
function paintCrowd(threads, r, x0, y, w, hgt, dt, unit) {
	const sum = new Float64Array(w * GIL_STATES);
	for (const thread of threads)
		if (store().gil[thread])
			gilColumns(thread, view.from, dt, w, -1).forEach((ns, i) => {
				sum[i] += ns;
			});
	r.lane(
		x0,
		y,
		w,
		hgt,
		sum,
		GIL_STATES,
		dt * threads.length,
		GIL_ORDER,
		gilPens(threads[0]),
		rgba(palette.none),
		rgba(palette.dead),
		null,
		-1,
		unit,
	);
}

// Paint a thread in a slot, only in the columns in which it lives.
function paintLife(thread, r, s, x0, y, w, hgt, dt, unit, shift) {
	const {from_ns, to_ns} = pass().threads[thread];
	const a = max(0, floor((from_ns - shift - view.from) / dt)),
		b = min(w, Math.ceil((to_ns - shift - view.from) / dt));
	if (b <= a || !store().gil[thread]) return;
	paintGil(thread, r, s, x0 + a, y, b - a, hgt, view.from + shift + a * dt, dt, unit);
	if (b - a > 3) r.rect(x0 + a, y, unit, hgt, rgba(palette.ink));
}

// Until the lane has been read: paint the overview's shares.
function paintCoarse(row, r, s, x0, y, w, hgt, dt, unit) {
	const of = coarseOf(row.thread);
	if (!of) return r.rect(x0, y, w, hgt, rgba(palette.dead));
	r.lane(
		x0,
		y,
		w,
		hgt,
		coarseColumns(of, view.from, dt, w, s.cols),
		GIL_STATES,
		dt,
		GIL_ORDER,
		gilPens(row.thread),
		rgba(palette.none),
		rgba(palette.dead),
		null,
		-1,
		unit,
	);
}

function paintCounter(row, r, s, x0, y, w, hgt, dt) {
	const sums = s.wide;
	sums.fill(0, 0, w);
	let most = 0;
	for (const sec of row.sections)
		for (
			let i = max(0, upper(sec.time, 0, sec.n, view.from));
			i < sec.n && sec.time[i] < view.to;
			i++
		) {
			const x = floor((sec.time[i] - view.from) / dt);
			if (x >= 0 && x < w && (sums[x] += sec.value[i]) > most) most = sums[x];
		}
	r.rect(x0, y, w, hgt, rgba(palette.dead));
	for (let x = 0; x < w && most > 0; x++) {
		const n = sums[x] ? max(1, round((sums[x] / most) * hgt)) : 0;
		if (n) r.rect(x0 + x, y + hgt - n, 1, n, rgba(palette.other));
	}
}

// Scroll to the row of the pinned span, above the details. The page itself is scrolled only if the
// timeline is visible.
export function pinInSight() {
	const row = pinned && rowOf(pinned),
		{top, left} = tlBox.getBoundingClientRect(),
		details = $("details").getBoundingClientRect(),
		dock = details.right > left ? details.top : innerHeight; // beside or over the timeline
	if (!row) return;
	const room = min(tlBox.clientHeight, dock - top);
	if (row.y < tlBox.scrollTop + tl.top || row.y + row.h > tlBox.scrollTop + room)
		tlBox.scrollTop = max(0, row.y - tl.top - 60);
	const under = top + row.y + row.h - tlBox.scrollTop - dock;
	if (under > 0 && top < dock - AXIS && dock < innerHeight) scrollBy(0, under + 8);
}

export const tlRedraw = perFrame(tlDraw);
export function tlInit() {
	const draw = () => {
			tlLayout();
			tlDraw();
		},
		again = perFrame(draw);
	on("data pass filter pin", again);
	on("now", draw);
	on("range search theme lit", tlRedraw);
	on(
		"view",
		perFrame(() => {
			tlFollow();
			tlDraw();
		}),
	);
	listen(tlBox, "scroll", tlRedraw);
	new ResizeObserver(again).observe(tlBox);
	addEventListener("resize", again);
	tlLayout();
	tlDraw();
}

// SPDX-License-Identifier: MIT
// The timeline: rows of all threads for the part in view, on one canvas.

let GUTTER = 212; // less on a small screen, where shares have no room beside the names
const AXIS = 26;
const GIL_H = 24, CPU_H = 10, CALL_H = 15, COUNTER_H = 20, OWNER_H = 22, PAD = 8;
const DEPTH_FEW = 6; // rows of calls of a thread until it is opened

const tl = {rows: [], height: 0, scale: 1, width: 0, viewHeight: 0, raster: null, opened: new Set(), hover: null, drawMs: []};

const tlCanvas = $("tl"), tlBox = $("tl-box");
const tlPaint = tlCanvas.getContext("2d");

// Threads in the order of the timeline: by the wait that they had and that they caused.
function rowsThreads() {
	return timelineOrder().filter(i => (!only || only.has(i)) && (!threadHits || threadHits(i)));
}

const LANES_MAX = 40; // threads with rows until all are asked for

// See to it that a thread has its rows.
function unhide(thread) {
	if (only && !only.has(thread))
		setOnly(null);
	if (!tl.all && rowsThreads().indexOf(thread) >= LANES_MAX) {
		tl.all = true;
		emit("filter");
		tlLayout();
	}
}

function tlLayout() {
	const rows = [], st = store(), threads = rowsThreads(), fold = !tl.all && threads.length > LANES_MAX;
	$("all-threads").hidden = !fold;
	$("all-threads").textContent = "Show all " + threads.length + " threads, not just " + LANES_MAX;
	let y = AXIS;
	const add = row => {
		row.y = y;
		rows.push(row);
		y += row.h;
	};
	(gilKnown() ? pass().gils : []).forEach((g, gil) => {
		if (pass().gils.length <= 4 || g.wanted_ns > 0)
			add({kind: "owner", gil, h: OWNER_H});
	});
	y += PAD / 2;
	for (const thread of fold ? threads.slice(0, LANES_MAX) : threads) {
		const top = y;
		y += PAD / 2;
		const first = rows.length;
		if (shown.gil && gilKnown())
			add({kind: "gil", thread, h: GIL_H});
		if (shown.cpu && st.cpu[thread])
			add({kind: "cpu", thread, h: gilKnown() ? CPU_H : GIL_H});
		if (shown.counters && st.counters[thread])
			st.counters[thread].forEach((sections, counter) => add({kind: "counter", thread, counter, sections, h: COUNTER_H}));
		const calls = st.slices[thread];
		if (shown.py && calls && calls.length) {
			y += 2;
			const depth = tl.opened.has(thread) ? calls.length : Math.min(calls.length, DEPTH_FEW);
			for (let d = 0; d < depth; d++)
				add({kind: "py", thread, depth: d, h: CALL_H, more: d === depth - 1 ? calls.length - depth : 0});
		}
		if (rows.length === first)
			add({kind: "name", thread, h: GIL_H});
		rows[first].head = true;
		y += PAD / 2;
		rows[first].top = top;
		rows[first].bottom = y;
	}
	tl.rows = rows;
	tl.height = y + 6;
	$("tl-space").style.height = tl.height + "px";
}

function tlResize() {
	const width = tlBox.clientWidth;
	GUTTER = width < 600 ? 104 : 212;
	document.documentElement.style.setProperty("--gutter", GUTTER + 1 + "px");
	const height = Math.max(160, Math.min(tl.height, Math.max(320, Math.round(innerHeight * 0.72))));
	const scale = Math.min(3, devicePixelRatio || 1);
	tlBox.style.height = height + "px";
	if (width === tl.width && height === tl.viewHeight && scale === tl.scale && tl.raster)
		return;
	tl.width = width;
	tl.viewHeight = height;
	tl.scale = scale;
	tlCanvas.width = Math.round(width * scale);
	tlCanvas.height = Math.round(height * scale);
	tlCanvas.style.width = width + "px";
	tlCanvas.style.height = height + "px";
	tl.raster = new Raster(tlCanvas.width, tlCanvas.height);
}

const timeToX = t => GUTTER + (t - view.from) / span() * (tl.width - GUTTER);
const xToTime = x => view.from + (x - GUTTER) / (tl.width - GUTTER) * span();

let scratch = null;
function scratchFor(w) {
	if (!scratch || scratch.w !== w)
		scratch = {w, cols: new Float64Array(w * 6), marks: new Uint8Array(w), cover: new Float32Array(w), name: new Int32Array(w), edge: new Uint8Array(w), wide: new Float64Array(w * 16)};
	return scratch;
}

function tlDraw() {
	const began = performance.now();
	if (tlBox.clientWidth < GUTTER + 10) // not laid out: hidden, or on its way out
		return;
	tlResize();
	const sc = tl.scale, r = tl.raster, c = tlPaint;
	const x0 = Math.round(GUTTER * sc), w = r.w - x0;
	if (w < 10)
		return;
	const dt = span() / w, scroll = tlBox.scrollTop;
	const s = scratchFor(w);
	r.px.fill(rgba(palette.paper));
	for (const row of tl.rows) {
		const y = Math.round((row.y - scroll) * sc), hgt = Math.round(row.h * sc);
		if (y + hgt < AXIS * sc || y > r.h)
			continue;
		paintRow(row, r, s, x0, y, w, hgt, dt, sc);
	}
	r.rect(0, 0, r.w, Math.round(AXIS * sc), rgba(palette.paper));
	c.putImageData(r.image, 0, 0);
	c.save();
	c.scale(sc, sc);
	drawOver(c, scroll);
	c.restore();
	tl.drawMs.push(performance.now() - began);
	if (tl.drawMs.length > 600)
		tl.drawMs.shift();
}

function paintRow(row, r, s, x0, y, w, hgt, dt, sc) {
	const st = store(), unit = Math.max(1, Math.round(sc));
	const dead = rgba(palette.dead), ground = rgba(palette.none);
	if (row.kind === "owner") {
		paintOwners(r, s, row.gil, x0, y + unit, w, hgt - 2 * unit, view.from, dt);
	} else if (row.kind === "gil") {
		const lane = st.gil[row.thread];
		if (!lane)
			return paintCoarse(row, r, s, x0, y + unit, w, hgt - 2 * unit, dt, unit);
		const cols = gilColumns(row.thread, view.from, dt, w, -1);
		markColumns(lane, view.from, dt, w, s.marks);
		r.lane(x0, y + unit, w, hgt - 2 * unit, cols, 5, dt, GIL_ORDER, gilPens(row.thread), ground, dead, s.marks, WAIT_STATE, unit);
	} else if (row.kind === "cpu") {
		laneColumns(st.cpu[row.thread], view.from, dt, w, -1, s.cols);
		r.lane(x0, y + unit, w, hgt - 2 * unit, s.cols, 6, dt, CPU_ORDER, cpuPens(), ground, dead, null, -1, unit);
	} else if (row.kind === "py") {
		rowColumns(st.slices[row.thread][row.depth], view.from, dt, w, s.cover, s.name, s.edge, hits.lit);
		r.calls(x0, y + unit, w, hgt - unit, s.cover, s.name, s.edge, rgba(palette.dead), hits.lit, rgba(palette.hit));
	} else if (row.kind === "counter") {
		paintCounter(row, r, s, x0, y + unit, w, hgt - 2 * unit, dt);
	}
}

// Until the lane has been read: the overview's shares.
function paintCoarse(row, r, s, x0, y, w, hgt, dt, unit) {
	const of = coarseOf(row.thread);
	if (!of)
		return r.rect(x0, y, w, hgt, rgba(palette.dead));
	r.lane(x0, y, w, hgt, coarseColumns(of, view.from, dt, w, s.cols), 5, dt, GIL_ORDER, gilPens(row.thread), rgba(palette.none), rgba(palette.dead), null, -1, unit);
}

const SIXBITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const coarseOf = thread => overview.pass === passIndex && (overview.threads || []).find(o => o.thread === thread);

function coarseColumns(of, t0, dt, w, cols) {
	const bucket = meta.passes[overview.pass].dur_ns / overview.buckets;
	cols.fill(0, 0, w * 5);
	for (let x = 0; x < w; x++) {
		const b = Math.floor((t0 + (x + 0.5) * dt) / bucket);
		if (b < 0 || b >= overview.buckets)
			continue;
		[of.no, of.hold, of.wait].forEach((text, k) => { cols[x * 5 + 1 + k] = Math.max(0, SIXBITS.indexOf(text[b])) / 63 * dt; });
	}
	return cols;
}

function paintCounter(row, r, s, x0, y, w, hgt, dt) {
	const sums = s.wide;
	sums.fill(0, 0, w);
	let max = 0;
	for (const sec of row.sections)
		for (let i = Math.max(0, upper(sec.time, 0, sec.n, view.from)); i < sec.n && sec.time[i] < view.to; i++) {
			const x = Math.floor((sec.time[i] - view.from) / dt);
			if (x >= 0 && x < w && (sums[x] += sec.value[i]) > max)
				max = sums[x];
		}
	r.rect(x0, y, w, hgt, rgba(palette.dead));
	for (let x = 0; x < w && max > 0; x++) {
		const n = sums[x] ? Math.max(1, Math.round(sums[x] / max * hgt)) : 0;
		if (n)
			r.rect(x0 + x, y + hgt - n, 1, n, rgba(palette.other));
	}
}

function rowOf(pin) {
	return tl.rows.find(row => row.kind === pin.kind && row.thread === pin.thread && (pin.kind !== "py" || row.depth === pin.depth));
}

// Scroll to the row of the pinned span, above the details; the page only if the timeline is in sight.
function pinInSight() {
	const row = pinned && rowOf(pinned), top = tlBox.getBoundingClientRect().top, dock = $("details").getBoundingClientRect().top;
	if (!row)
		return;
	const room = Math.min(tl.viewHeight, dock - top);
	if (row.y < tlBox.scrollTop + AXIS || row.y + row.h > tlBox.scrollTop + room)
		tlBox.scrollTop = Math.max(0, row.y - AXIS - 60);
	const under = top + row.y + row.h - tlBox.scrollTop - dock;
	if (under > 0 && top < dock - AXIS && dock < innerHeight)
		scrollBy(0, under + 8);
}

const tlRedraw = perFrame(tlDraw);
function drawNow() {
	tlLayout();
	tlDraw();
	stripDraw();
}

function tlInit() {
	const again = perFrame(() => { tlLayout(); tlDraw(); });
	on("data pass filter", again);
	on("view pin range search theme", tlRedraw);
	tlBox.addEventListener("scroll", tlRedraw);
	new ResizeObserver(again).observe(tlBox);
	addEventListener("resize", again);
	tlLayout();
	tlDraw();
}

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
		paintOwners(r, s, row.gil, x0, y + unit, w, hgt - 2 * unit, view.from, dt, unit);
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
	const of = overview.pass === passIndex && (overview.threads || []).find(o => o.thread === row.thread);
	if (!of)
		return r.rect(x0, y, w, hgt, rgba(palette.dead));
	coarseColumns(of, view.from, dt, w, s.cols);
	r.lane(x0, y, w, hgt, s.cols, 5, dt, GIL_ORDER, gilPens(row.thread), rgba(palette.none), rgba(palette.dead), null, -1, unit);
}

const SIXBITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const sixBits = new Map(Array.from(SIXBITS, (ch, i) => [ch, i]));

function coarseColumns(of, t0, dt, w, cols) {
	const bucket = meta.passes[overview.pass].dur_ns / overview.buckets;
	cols.fill(0, 0, w * 5);
	for (let x = 0; x < w; x++) {
		const b = Math.floor((t0 + (x + 0.5) * dt) / bucket);
		if (b < 0 || b >= overview.buckets)
			continue;
		cols[x * 5 + 1] = (sixBits.get(of.no[b]) || 0) / 63 * dt;
		cols[x * 5 + 2] = (sixBits.get(of.hold[b]) || 0) / 63 * dt;
		cols[x * 5 + 3] = (sixBits.get(of.wait[b]) || 0) / 63 * dt;
	}
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
	row.max = max;
	r.rect(x0, y, w, hgt, rgba(palette.dead));
	for (let x = 0; x < w && max > 0; x++) {
		const n = sums[x] ? Math.max(1, Math.round(sums[x] / max * hgt)) : 0;
		if (n)
			r.rect(x0 + x, y + hgt - n, 1, n, rgba(palette.other));
	}
}

function ellipsis(c, text, width) {
	if (c.measureText(text).width <= width)
		return text;
	let lo = 0, hi = text.length;
	while (lo < hi) {
		const mid = (lo + hi + 1) >> 1;
		if (c.measureText(text.slice(0, mid) + "…").width <= width)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo > 0 ? text.slice(0, lo) + "…" : "";
}

// The thread's name, or its ends, as there is room.
function threadFit(c, index, width) {
	const label = threadLabel(index);
	for (let n = label.length, least = /\d$/.test(label) ? 9 : n - 1; n > least; n--)
		if (c.measureText(shorten(label, n)).width <= width)
			return shorten(label, n);
	return ellipsis(c, threadShort(index), width);
}

const FONT = "12px system-ui, sans-serif", SMALL = "11px system-ui, sans-serif";

function drawOver(c, scroll) {
	c.textBaseline = "middle";
	drawAxis(c);
	c.save();
	c.beginPath();
	c.rect(0, AXIS, tl.width, tl.viewHeight - AXIS);
	c.clip();
	drawLost(c);
	for (const row of tl.rows) {
		const y = row.y - scroll;
		if (row.head && row.bottom - scroll > AXIS && row.top - scroll < tl.viewHeight)
			drawHead(c, row, scroll);
		if (y + row.h < AXIS || y > tl.viewHeight)
			continue;
		drawRowLabel(c, row, y);
	}
	drawSelections(c, scroll);
	c.restore();
}

function drawAxis(c) {
	const step = niceStep(span() / ((tl.width - GUTTER) / 110));
	c.font = SMALL;
	c.textAlign = "center";
	for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
		const x = timeToX(t);
		if (t < 0 || t > passDur())
			continue;
		c.fillStyle = palette.soft;
		if (x > GUTTER + 24 && x < tl.width - 24)
			c.fillText(fmtAt(t, step), x, 10);
		c.fillRect(Math.round(x), AXIS - 7, 1, 5);
	}
	c.textAlign = "left";
	c.fillText("time →", 8, 10);
}

function drawHead(c, row, scroll) {
	const t = pass().threads[row.thread];
	const y = Math.max(row.top - scroll, AXIS - 4);
	c.fillStyle = palette.line;
	c.fillRect(0, Math.round(row.top - scroll), tl.width, 1);
	if (row.top - scroll < AXIS - 40)
		return;
	c.fillStyle = threadColor(row.thread);
	c.beginPath();
	c.arc(14, y + PAD / 2 + 12, 5, 0, 7);
	c.fill();
	const number = GUTTER < 200 ? "" : !gilKnown() ? "on CPU " + fmtPct(t.states ? t.states.running_ns : 0, t.states && t.total_ns - t.states.unknown_ns) : t.wait_ns > t.hold_ns ? gilText("waits ", "blocked ") + fmtPct(t.wait_ns, knownNs(t)) : t.hold_ns ? gilText("holds ", "stops others ") + fmtPct(t.hold_ns, knownNs(t)) : "";
	c.font = SMALL;
	c.textAlign = "right";
	c.fillStyle = palette.soft;
	c.fillText(number, GUTTER - 8, y + PAD / 2 + 12);
	const left = GUTTER - (number ? 42 : 30) - c.measureText(number).width;
	c.textAlign = "left";
	c.font = "600 " + FONT;
	c.fillStyle = palette.ink;
	c.fillText(threadFit(c, row.thread, left), 26, y + PAD / 2 + 12);
}

function drawRowLabel(c, row, y) {
	c.font = SMALL;
	c.fillStyle = palette.soft;
	if (row.kind === "owner") {
		c.font = "600 " + FONT;
		c.fillStyle = palette.ink;
		c.fillText(ellipsis(c, gilName(row.gil) + " held by", GUTTER - 12), 8, y + row.h / 2);
		if (shown.labels !== false)
			labelOwners(c, row, y);
	} else if (row.kind === "cpu") {
		if (!row.head)
			c.fillText("CPU", 26, y + row.h / 2);
	} else if (row.kind === "counter") {
		c.fillText(ellipsis(c, pass().counters[row.counter] || "counter", GUTTER - 40), 26, y + row.h / 2);
	} else if (row.kind === "py") {
		if (row.depth === 0 && !row.head)
			c.fillText("Python calls", 26, y + row.h / 2);
		else if (row.more > 0)
			c.fillText("+ " + row.more + " deeper ▾", 26, y + row.h / 2);
		else if (row.depth === DEPTH_FEW && tl.opened.has(row.thread))
			c.fillText("fewer ▴", 26, y + row.h / 2);
		labelCalls(c, row, y);
	} else if (row.kind === "gil" && shown.labels !== false) {
		labelSpans(c, row, y);
	}
}

// Names in the calls that are wide enough.
function labelCalls(c, row, y) {
	const calls = store().slices[row.thread][row.depth], least = 28 / (tl.width - GUTTER) * span();
	let last = -1, looked = 0;
	c.font = SMALL;
	c.fillStyle = palette.ink;
	for (const s of calls.sections) {
		if (s.t1 <= view.from || s.t0 >= view.to)
			continue;
		for (let i = Math.max(0, upper(s.start, 0, s.n, view.from) - 1); i < s.n && s.start[i] < view.to; i++) {
			if (s.end[i] - s.start[i] < least) {
				if (++looked > 4000)
					break;
				continue;
			}
			const a = Math.max(GUTTER, timeToX(s.start[i])), b = Math.min(tl.width, timeToX(s.end[i]));
			if (b - a < 28 || a < last)
				continue;
			last = b;
			const text = ellipsis(c, shortCall(callName(s.name[i])), b - a - 6);
			if (text)
				c.fillText(text, a + 3, y + row.h / 2 + 1);
		}
	}
}

// Spans of the lane that are at least px wide, at most 400.
function wideSpans(lane, px, f) {
	const least = px / (tl.width - GUTTER) * span();
	let n = 0, looked = 0;
	for (const s of lane.sections) {
		if (s.t1 <= view.from || s.t0 >= view.to)
			continue;
		for (let i = Math.max(0, upper(s.start, 0, s.n, view.from) - 1); i < s.n && s.start[i] < view.to; i++) {
			if (s.start[i + 1] - s.start[i] >= least) {
				f(s, i);
				if (++n > 400)
					return;
			} else if (++looked > 4000) {
				return;
			}
		}
	}
}

// The first of the texts that fits, on a light ground.
function pill(c, texts, x, y, width, ink, paper) {
	const t = texts.find(q => c.measureText(q).width <= width - 14);
	if (!t)
		return;
	const w = c.measureText(t).width + 8;
	c.fillStyle = paper;
	c.beginPath();
	c.roundRect(x + 3, y - 8, w, 16, 4);
	c.fill();
	c.fillStyle = ink;
	c.fillText(t, x + 7, y + 0.5);
}

function labelSpans(c, row, y) {
	const lane = store().gil[row.thread];
	if (!lane)
		return;
	c.font = SMALL;
	wideSpans(lane, 48, (s, i) => {
		const state = s.state[i];
		if (state !== HOLD_STATE && state !== WAIT_STATE)
			return;
		const from = s.start[i], to = s.start[i + 1];
		const a = Math.max(GUTTER, timeToX(from)), b = Math.min(tl.width, timeToX(to));
		if (b - a < 48)
			return;
		const time = fmtDur(to - from), texts = [(state === HOLD_STATE ? gilText("holds ", "stops others ") : "waits ") + time, time];
		if (state === HOLD_STATE && b - a > 90) {
			const what = doing(row.thread, from, to, s.stack ? s.stack[i] : 0);
			if (what)
				texts.unshift(what.name + " · holds " + time, what.name + " · " + time);
		} else if (b - a > 120) {
			const who = holdersIn(from, to, -1, row.thread).list[0];
			if (who)
				texts.unshift("waits " + time + gilText(" for ", " until let go by ") + threadLabel(who.thread), "waits " + time + gilText(" for ", ", let go by ") + threadShort(who.thread));
		}
		pill(c, texts, a, y + row.h / 2, b - a, palette.ink, palette.paper + "e0");
	});
}

function labelOwners(c, row, y) {
	c.font = "600 " + SMALL;
	store().gil.forEach((lane, thread) => {
		wideSpans(lane, 60, (s, i) => {
			if (s.state[i] !== HOLD_STATE || s.gils[(s.cls[i] - 2) / 5] !== row.gil + 1)
				return;
			const a = Math.max(GUTTER, timeToX(s.start[i])), b = Math.min(tl.width, timeToX(s.start[i + 1]));
			if (b - a > 50)
				pill(c, [threadLabel(thread), threadShort(thread)], a, y + row.h / 2 - 2, b - a, palette.ink, palette.paper + "e0");
		});
	});
}

function drawLost(c) {
	for (const s of store().lost)
		for (let i = 0; i < s.n; i++) {
			const a = Math.max(GUTTER, timeToX(s.time[i])), b = Math.min(tl.width, Math.max(a + 2, timeToX(s.time[i] + s.dur[i])));
			if (b <= GUTTER || a >= tl.width)
				continue;
			c.fillStyle = palette.hit + "22";
			c.fillRect(a, AXIS, b - a, tl.viewHeight);
			c.fillStyle = palette.hit;
			c.fillRect(a, AXIS, b - a, 2);
		}
}

function rowOf(pin) {
	return tl.rows.find(row => row.kind === pin.kind && row.thread === pin.thread && (pin.kind !== "py" || row.depth === pin.depth));
}

// Scroll to the row of the pinned span, above the details; the page only if the timeline is being read.
function pinInSight() {
	const row = pinned && rowOf(pinned), top = tlBox.getBoundingClientRect().top, dock = $("details").getBoundingClientRect().top;
	if (!row)
		return;
	const room = Math.min(tl.viewHeight, dock - top);
	if (row.y < tlBox.scrollTop + AXIS || row.y + row.h > tlBox.scrollTop + room)
		tlBox.scrollTop = Math.max(0, row.y - AXIS - 60);
	const under = top + row.y + row.h - tlBox.scrollTop - dock;
	if (under > 0 && top < innerHeight / 3 && dock < innerHeight)
		scrollBy(0, under + 8);
}

function outline(c, pin, scroll, color, width) {
	const row = rowOf(pin);
	if (!row)
		return;
	const a = Math.max(GUTTER - 2, timeToX(pin.from)), b = Math.min(tl.width + 2, timeToX(pin.to));
	if (b < GUTTER || a > tl.width)
		return;
	c.strokeStyle = color;
	c.lineWidth = width;
	c.strokeRect(a - 0.5, row.y - scroll + 0.5, Math.max(2, b - a) + 1, row.h - 1);
}

function drawSelections(c, scroll) {
	const bound = t => Math.max(GUTTER, Math.min(tl.width, timeToX(t)));
	if (range) {
		const a = bound(range.from), b = bound(range.to);
		c.fillStyle = palette.paper + "a8"; // what is outside
		c.fillRect(GUTTER, AXIS, a - GUTTER, tl.viewHeight);
		c.fillRect(b, AXIS, tl.width - b, tl.viewHeight);
		c.fillStyle = palette.ink;
		c.fillRect(a, AXIS, 1, tl.viewHeight);
		c.fillRect(b - 1, AXIS, 1, tl.viewHeight);
		c.font = "600 " + SMALL;
		if (b - a > 50) {
			c.textAlign = "center";
			c.fillText(fmtDur(range.to - range.from), (a + b) / 2, tl.viewHeight - 12);
			c.textAlign = "left";
		}
	}
	if (tl.hover && tl.hover.pin)
		outline(c, tl.hover.pin, scroll, palette.soft, 1);
	if (pinned)
		outline(c, pinned, scroll, palette.ink, 2);
	if (tl.hover && tl.hover.x > GUTTER) {
		c.fillStyle = palette.ink + "55";
		c.fillRect(Math.round(tl.hover.x), AXIS, 1, tl.viewHeight);
	}
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

// SPDX-License-Identifier: MIT
// The ownership strip: one lane coloured by holder, gaps where nobody holds, a dark overlay as high as the
// share of threads that wait. Over the whole recording it is the minimap as well.

const STRIP_H = 64;
const strip = {raster: null, ghost: null};

// Holders from the bottom up in one column, in the order of the threads, by error diffusion as lanes; until these have
// been read, from the overview.
function paintOwners(r, s, gil, x0, y, w, hgt, t0, dt) {
	const st = store().gil, read = [...st.keys()].filter(i => st[i] && st[i].sections.length);
	const threads = read.length ? read : pass().threads.map((t, i) => i).filter(coarseOf);
	const groups = ownerGroups(threads), n = groups.length;
	const cols = new Float64Array(w * n), waits = new Float64Array(w);
	for (const thread of threads) {
		const own = read.length ? gilColumns(thread, t0, dt, w, pass().gils.length > 1 ? gil : -1) : coarseColumns(coarseOf(thread), t0, dt, w, s.cols);
		const g = groups.findIndex(q => q.threads.has(thread));
		for (let x = 0; x < w; x++) {
			cols[x * n + g] += own[x * 5 + HOLD_STATE];
			waits[x] += own[x * 5 + WAIT_STATE] + own[x * 5 + SWITCH_STATE];
		}
	}
	if (n)
		drawOwners(r, groups, cols, waits, x0, y, w, hgt, dt);
}

// Where the GIL was not watched: the states of all threads together.
function paintStates(r, s, gil, x0, y, w, hgt, t0, dt, unit) {
	const lanes = store().cpu.filter(lane => lane && lane.sections.length), sum = new Float64Array(w * 6);
	for (const lane of lanes) {
		laneColumns(lane, t0, dt, w, -1, s.cols);
		for (let i = 0; i < w * 6; i++)
			sum[i] += s.cols[i];
	}
	r.lane(x0, y, w, hgt, sum, 6, dt * Math.max(1, lanes.length), CPU_ORDER, cpuPens(), rgba(palette.none), rgba(palette.dead), null, -1, unit);
}

// Threads by colour: those of their own, then the grey rest.
function ownerGroups(threads) {
	const out = [], rest = new Set();
	for (const t of threads) {
		if (holderRank[t] >= 0)
			out.push({rank: holderRank[t], color: rgba(threadColor(t)), threads: new Set([t])});
		else
			rest.add(t);
	}
	out.sort((a, b) => a.rank - b.rank);
	if (rest.size)
		out.push({rank: 99, color: rgba(palette.other), threads: rest});
	return out;
}

function drawOwners(r, groups, cols, waits, x0, y, w, hgt, dt) {
	const n = groups.length;
	const order = groups.map((g, i) => i);
	const pens = groups.map(g => [g.color, 0, 0]);
	const owners = Math.round(hgt * 0.72);
	r.lane(x0, y, w, owners, cols, n, dt, order, pens, 0, rgba(palette.dead), null, -1, 1);
	const ink = rgba(mix(palette.paper, palette.ink, 0.8));
	const most = Math.max(1, pass().threads.filter(t => t.wait_ns > 0).length);
	r.rect(x0, y + owners, w, hgt - owners, rgba(palette.dead));
	for (let x = 0; x < w; x++) {
		const share = waits[x] / dt / most;
		const high = share > 0 ? Math.max(1, Math.round(Math.min(1, share) * (hgt - owners - 1))) : 0;
		for (let q = 0; q < high; q++)
			r.px[(y + owners + 1 + q) * r.w + x0 + x] = ink;
	}
}

const stripCanvas = $("strip"), stripPaint = stripCanvas.getContext("2d");
const stripX = t => t / passDur() * stripCanvas.clientWidth;

function stripDraw() {
	const width = $("strip-box").clientWidth, sc = Math.min(3, devicePixelRatio || 1);
	if (width < 10)
		return;
	const pw = Math.round(width * sc), ph = Math.round(STRIP_H * sc);
	if (!strip.raster || strip.raster.w !== pw || strip.raster.h !== ph) {
		stripCanvas.width = pw;
		stripCanvas.height = ph;
		stripCanvas.style.height = STRIP_H + "px";
		strip.raster = new Raster(pw, ph);
	}
	const r = strip.raster, s = scratchFor(pw);
	r.px.fill(rgba(palette.dead));
	const top = Math.round(18 * sc), gils = pass().gils;
	const busiest = gils.reduce((best, g, i) => g.held_ns > (gils[best] || {held_ns: -1}).held_ns ? i : best, 0);
	r.rect(0, 0, pw, top, rgba(palette.paper));
	(gilKnown() ? paintOwners : paintStates)(r, s, busiest, 0, top, pw, ph - top, 0, passDur() / pw, 1);
	stripPaint.putImageData(r.image, 0, 0);
	stripPaint.save();
	stripPaint.scale(sc, sc);
	drawHits(stripPaint, width);
	drawCallouts(stripPaint, width);
	stripPaint.restore();
	brushDraw();
}

function drawHits(c, width) {
	if (!hits.parts)
		return;
	c.fillStyle = palette.hit;
	const w = width / hits.parts.length;
	for (let i = 0; i < hits.parts.length; i++)
		if (hits.parts[i])
			c.fillRect(i * w, STRIP_H - 4, Math.max(1, w), 4);
}

// The worst moments, numbered as in the list above.
function drawCallouts(c, width) {
	c.font = "600 11px system-ui, sans-serif";
	c.textBaseline = "middle";
	c.textAlign = "center";
	let taken = [];
	(gilKnown() ? moments : []).forEach((m, i) => {
		const x = Math.max(8, Math.min(width - 8, (m.from + m.to) / 2 / passDur() * width));
		c.fillStyle = palette.ink;
		const a = m.from / passDur() * width, b = Math.max(a + 2, m.to / passDur() * width);
		c.fillRect(a, 16, b - a, 2);
		if (taken.some(q => Math.abs(q - x) < 17))
			return;
		taken.push(x);
		c.beginPath();
		c.arc(x, 8, 7.5, 0, 7);
		c.fill();
		c.fillStyle = palette.paper;
		c.fillText(String(i + 1), x, 8.5);
	});
	c.textAlign = "left";
}

function brushDraw() {
	const el = $("strip-brush"), width = stripCanvas.clientWidth;
	const a = Math.max(0, Math.min(width, stripX(view.from))), b = Math.max(0, Math.min(width, stripX(view.to)));
	el.style.left = a + "px";
	el.style.width = Math.max(6, b - a) + "px";
	el.hidden = a <= 0 && b >= width;
	$("strip-box").classList.toggle("whole", el.hidden);
}

function stripPointer() {
	const box = $("strip-box");
	let drag = null;
	const at = e => (e.clientX - stripCanvas.getBoundingClientRect().left) / stripCanvas.clientWidth * passDur();
	box.addEventListener("pointerdown", e => {
		if (e.button !== 0)
			return;
		const edge = e.target.parentNode === $("strip-brush") ? e.target.className : "";
		const t = at(e);
		const moves = !edge && e.target === $("strip-brush");
		drag = {t, edge, moves, from: view.from, to: view.to, x: e.clientX, far: false};
		box.setPointerCapture(e.pointerId);
		e.preventDefault();
		stripCanvas.focus({preventScroll: true});
	});
	box.addEventListener("pointermove", e => {
		if (!drag)
			return;
		if (Math.abs(e.clientX - drag.x) > 3)
			drag.far = true;
		if (!drag.far)
			return;
		const t = at(e);
		if (drag.edge === "w")
			setView(Math.min(t, drag.to - MIN_SPAN), drag.to);
		else if (drag.edge === "e")
			setView(drag.from, Math.max(t, drag.from + MIN_SPAN));
		else if (drag.moves)
			setView(drag.from + t - drag.t, drag.to + t - drag.t);
		else
			setView(Math.min(t, drag.t), Math.max(t, drag.t));
	});
	box.addEventListener("pointerup", () => {
		if (drag && !drag.far && !drag.moves && !drag.edge) {
			const half = Math.min(span(), passDur() / 10) / 2;
			flyTo(drag.t - half, drag.t + half);
		}
		drag = null;
	});
	box.addEventListener("dblclick", () => fitView());
}

function stripInit() {
	const again = perFrame(stripDraw);
	on("data pass theme moments search", again);
	on("view", perFrame(brushDraw));
	addEventListener("resize", again);
	stripPointer();
	stripDraw();
}

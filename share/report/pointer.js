// SPDX-License-Identifier: MIT
// The mouse on the timeline: hover tells, click pins, drag moves, Shift+drag selects, Ctrl+wheel zooms.

function tlHit(e) {
	const box = tlCanvas.getBoundingClientRect();
	const x = e.clientX - box.left, y = e.clientY - box.top + tlBox.scrollTop;
	const hit = {x, y, t: xToTime(x), row: null, pin: null};
	if (y - tlBox.scrollTop < AXIS)
		return hit;
	hit.row = tl.rows.find(r => y >= r.y && y < r.y + r.h) || null;
	hit.head = tl.rows.find(r => r.head && y >= r.top && y < r.bottom) || null;
	if (hit.row && x >= GUTTER)
		hit.pin = pinAt(hit.row, hit.t, span() / (tl.width - GUTTER));
	return hit;
}

// The span under the pointer; where it is thinner than a pixel, the most telling one near it.
function pinAt(row, t, dt) {
	if (row.kind === "py") {
		const direct = pinCall(row.thread, row.depth, t);
		if (direct)
			return direct;
		let best = null, seen = 0;
		store().slices[row.thread][row.depth].each(t - 2 * dt, t + 2 * dt, a => {
			if (++seen < 200 && (best === null || Math.abs(a - t) < Math.abs(best - t)))
				best = a;
		});
		return best === null ? null : pinCall(row.thread, row.depth, best);
	}
	if (row.kind === "owner") {
		for (const [thread, lane] of store().gil.entries()) {
			const at = lane && lane.find(t);
			if (at && at.s.state[at.i] === HOLD_STATE && at.s.gils[(at.s.cls[at.i] - 2) / 5] === row.gil + 1)
				return lanePin("gil", thread, at);
		}
		return null;
	}
	return row.kind === "gil" || row.kind === "cpu" ? pinLane(row.kind, row.thread, t) : null;
}

function tipText(hit) {
	const p = hit.pin;
	if (!p)
		return null;
	const lines = [h("b", {}, pinTitle(p)), h("span", {}, fmtDur(p.to - p.from), soft("  at " + fmtAt(p.from, span() / 1000)))];
	const dt = span() / (tl.width - GUTTER);
	if (p.to - p.from < dt * 2 && p.kind !== "py") {
		const lane = (p.kind === "gil" ? store().gil : store().cpu)[p.thread];
		const sum = laneTotals(lane, hit.t - dt * 2, hit.t + dt * 2);
		const words = stateWords(p);
		lines.push(soft("around here: " + Array.from(sum, (ns, i) => ns ? words[i] + " " + fmtPct(ns, 4 * dt) : "").filter(Boolean).join(", ")));
	} else if (p.kind === "gil" && p.state >= WAIT_STATE) {
		const who = holdersIn(p.from, p.to, p.gil, p.thread).list[0];
		if (who)
			lines.push(h("span", {}, gilText("mostly for ", "mostly until let go by "), h("b", {}, threadLabel(who.thread))));
	} else if (p.kind === "gil" && p.state === HOLD_STATE) {
		const what = doing(p.thread, p.from, p.to, p.stack), n = waitersIn(p.from, p.to, p.gil, p.thread).length;
		if (what)
			lines.push(h("span", {}, "ran ", doingText(what)));
		if (n)
			lines.push(h("span", {}, plural(n, "thread") + gilText(" waited", " stood")));
	}
	const line = queuedText(p);
	if (line)
		lines.push(h("span", {}, line));
	if (p.kind === "py")
		lines.push(soft(callPlace(callName(p.name))));
	if (p.waker >= 0)
		lines.push(h("span", {}, "woken by ", threadLabel(p.waker)));
	if (p.cpu >= 0)
		lines.push(soft("CPU " + p.cpu));
	return lines;
}

function tipShow(e, hit) {
	const lines = tipText(hit), tip = $("tip");
	tip.hidden = !lines;
	if (!lines)
		return;
	fill(tip, lines);
	const box = tip.getBoundingClientRect();
	tip.style.left = Math.max(4, Math.min(innerWidth - box.width - 8, e.clientX + 14)) + "px";
	tip.style.top = (e.clientY + 18 + box.height > innerHeight ? e.clientY - box.height - 12 : e.clientY + 18) + "px";
}

function gutterClick(hit) {
	if (!hit.head)
		return;
	const thread = hit.head.thread;
	if (hit.row && hit.row.kind === "py" && (hit.row.more > 0 || tl.opened.has(thread))) {
		if (!tl.opened.delete(thread))
			tl.opened.add(thread);
		emit("filter");
	}
}

function pointerInit() {
	let drag = null;
	tlCanvas.addEventListener("pointerdown", e => {
		if (e.button !== 0)
			return;
		const hit = tlHit(e);
		drag = {x: e.clientX, y: e.clientY, hit, from: view.from, to: view.to, select: e.shiftKey, far: false, scroll: tlBox.scrollTop};
		tlCanvas.setPointerCapture(e.pointerId);
	});
	tlCanvas.addEventListener("pointermove", e => {
		if (drag) {
			if (Math.abs(e.clientX - drag.x) + Math.abs(e.clientY - drag.y) > 4)
				drag.far = true;
			if (!drag.far)
				return;
			$("tip").hidden = true;
			if (drag.select) {
				setRange(drag.hit.t, xToTime(e.clientX - tlCanvas.getBoundingClientRect().left));
			} else {
				const d = (drag.x - e.clientX) / (tl.width - GUTTER) * (drag.to - drag.from);
				setView(drag.from + d, drag.to + d);
				tlBox.scrollTop = drag.scroll + drag.y - e.clientY;
			}
			return;
		}
		tl.hover = tlHit(e);
		tlCanvas.style.cursor = tl.hover.x < GUTTER ? "default" : e.shiftKey ? "col-resize" : tl.hover.pin ? "pointer" : "grab";
		tipShow(e, tl.hover);
		tlRedraw();
	});
	tlCanvas.addEventListener("pointerup", e => {
		if (drag && !drag.far) {
			const hit = tlHit(e);
			if (hit.x < GUTTER)
				gutterClick(hit);
			else
				setPin(hit.pin);
		}
		drag = null;
	});
	tlCanvas.addEventListener("pointerleave", () => {
		tl.hover = null;
		$("tip").hidden = true;
		tlRedraw();
	});
	tlCanvas.addEventListener("dblclick", e => {
		const hit = tlHit(e);
		if (hit.pin)
			flyToSpan(hit.pin.from, hit.pin.to);
	});
	tlCanvas.addEventListener("wheel", e => {
		if (e.ctrlKey || e.metaKey || e.altKey) {
			e.preventDefault();
			zoomAt(tlHit(e).t, Math.exp(Math.max(-0.6, Math.min(0.6, e.deltaY * 0.004))));
		} else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
			e.preventDefault();
			panBy((e.deltaX || e.deltaY) / tl.width);
		}
	}, {passive: false});
}

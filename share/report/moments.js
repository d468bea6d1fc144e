// SPDX-License-Identifier: MIT
// "Look here first": the holds that kept others waiting most, with who, what, when and for how long.

const MOMENTS = 3;
let moments = [];

// Before the lanes are there: the longest single overlaps of the blame table.
function momentsEarly() {
	const best = new Map();
	for (const b of pass().blame) {
		if (!isThread(b.holder) || !(b.longest_ns > 0))
			continue;
		const old = best.get(b.holder);
		if (!old || b.longest_ns > old.to - old.from)
			best.set(b.holder, {thread: b.holder, from: b.longest_at_ns, to: b.longest_at_ns + b.longest_ns, caused: b.longest_ns, waiters: 1, what: null});
	}
	return [...best.values()];
}

// Once they are: holds by the wait that they caused.
function momentsExact() {
	const out = [];
	store().gil.forEach((lane, thread) => {
		for (const s of lane.sections)
			for (const i of s.topHolds.subarray(0, 40))
				out.push({thread, from: s.start[i], to: s.start[i + 1], gil: s.gils[(s.cls[i] - 2) / 5] - 1, stack: s.stack ? s.stack[i] : 0});
	});
	out.sort((a, b) => b.to - b.from - (a.to - a.from));
	out.length = Math.min(out.length, 60);
	for (const m of out) {
		const w = waitersIn(m.from, m.to, m.gil, m.thread);
		m.waiters = w.length;
		m.caused = w.reduce((sum, x) => sum + x.ns, 0);
	}
	return out.filter(m => m.caused > 0);
}

function momentsDraw() {
	if (!gilKnown()) {
		moments = [];
		$("moments").hidden = true;
		return;
	}
	const list = loading.complete && store().gil.length ? momentsExact() : momentsEarly();
	list.sort((a, b) => b.caused - a.caused || a.from - b.from);
	moments = [];
	const ordinary = m => m.to - m.from < 2 * meta.switch_interval_ns;
	for (const m of list) // holds of ordinary length are nothing to look at beside a real hog, or if they cost nobody a millisecond
		if (moments.length < MOMENTS && m.to - m.from >= 100e3 && !(ordinary(m) && (moments.length || m.caused < 1e6)))
			moments.push(m);
	if (loading.complete)
		for (const m of moments)
			m.what = doing(m.thread, m.from, m.to, m.stack);
	$("moments").hidden = !moments.length;
	$("moments-h").textContent = moments.length && ordinary(moments[0]) ? gilText("The hold that kept others waiting most", "The longest stop of the others") : "Look here first";
	fill($("moments-list"), moments.map((m, i) => {
		const d = m.to - m.from, long = !ordinary(m);
		return h("li", {}, h("button", {class: "moment", onclick: () => goToPin(pinLane("gil", m.thread, (m.from + m.to) / 2))},
			h("span", {class: "n", "aria-hidden": "true"}, String(i + 1)),
			h("span", {class: "what"},
				h("b", {}, h("i", {class: "dot", style: "background:" + threadColor(m.thread)}), threadLabel(m.thread)),
				gilText(" held the GIL for ", " stopped the others for "), h("b", {class: "big"}, fmtDur(d)), " at ", h("b", {}, fmtAt(m.from, Math.max(1e6, passDur() / 1000))),
				m.what ? [" in ", doingText(m.what)] : null),
			soft(plural(m.waiters, "thread") + gilText(" waited", " stood") + (m.waiters > 1 ? ", " + fmtDur(m.caused) + " in all" : "") + (long || pass().locks ? "" : ". About as Python intends: it asks to let go after " + switchInterval))));
	}));
	emit("moments");
}

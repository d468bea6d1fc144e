// SPDX-License-Identifier: MIT
// The blame matrix: a row holds, a column waits, a cell is the wait charged.

const MATRIX_MAX = 12;

function blameDraw() {
	const p = pass(), sum = new Map();
	const key = (holder, waiter) => holder + ":" + waiter;
	const byHolder = new Map(), byWaiter = new Map();
	let most = 0;
	for (const b of p.blame) {
		if (!(b.wait_ns > 0))
			continue;
		sum.set(key(b.holder, b.waiter), (sum.get(key(b.holder, b.waiter)) || 0) + b.wait_ns);
		byHolder.set(b.holder, (byHolder.get(b.holder) || 0) + b.wait_ns);
		byWaiter.set(b.waiter, (byWaiter.get(b.waiter) || 0) + b.wait_ns);
		most = Math.max(most, b.wait_ns);
	}
	if (!sum.size) {
		fill($("blame-body"), h("p", {class: "empty"}, "No thread waited for the GIL."));
		return;
	}
	const rank = map => [...map.keys()].filter(k => k !== HANDOVER && k !== CANNOT_TELL).sort((a, b) => map.get(b) - map.get(a));
	const holders = rank(byHolder).slice(0, MATRIX_MAX), waiters = rank(byWaiter).slice(0, MATRIX_MAX);
	const cell = (holder, waiter) => {
		const ns = sum.get(key(holder, waiter)) || 0;
		if (!ns)
			return h("td", {class: "num zero"}, holder === waiter ? "" : "0");
		const share = ns / most;
		return h("td", {class: "num heat", style: "--heat:" + share.toFixed(3)},
			h("button", {type: "button", title: fmtExact(ns), onclick: () => pickBlame(holder, waiter),
				"data-ns": ns}, fmtDur(ns)));
	};
	const head = w => h("th", {scope: "col", title: threadLabel(w)}, h("span", {class: "clip"}, h("i", {class: "dot", style: "background:" + threadColor(w)}), shorten(threadShort(w), 9)));
	const rows = holders.map(g => h("tr", {}, h("th", {scope: "row"}, threadTag(g)), waiters.map(w => cell(g, w)),
		h("td", {class: "num sum"}, fmtDur(byHolder.get(g)))));
	const apart = [[HANDOVER, "nobody (handover)", "The GIL was free; the waiter had not run yet"], [CANNOT_TELL, "cannot be told", "Records are missing"]];
	for (const [who, text, title] of apart)
		if (byHolder.has(who))
			rows.push(h("tr", {class: "handover"}, h("th", {scope: "row", title}, text), waiters.map(w => cell(who, w)),
				h("td", {class: "num sum"}, fmtDur(byHolder.get(who)))));
	const left = rank(byHolder).length - holders.length + rank(byWaiter).length - waiters.length;
	fill($("blame-body"), h("table", {class: "matrix"},
		h("caption", {class: "visually-hidden"}, "Time that the column's thread waited while the row's thread held the GIL"),
		h("thead", {}, h("tr", {}, h("td", {class: "corner"}, "holds ↓ waits →"), waiters.map(head), h("th", {scope: "col", class: "num"}, "caused"))),
		h("tbody", {}, rows)),
		left > 0 ? h("p", {class: "hint"}, plural(left, "smaller entry", "smaller entries") + " not shown; the JSON has all.") : null);
}

// Show those two, and the longest stretch in which one waited for the other.
function pickBlame(holder, waiter) {
	setOnly(holder === HANDOVER || holder === CANNOT_TELL ? [waiter] : [holder, waiter]);
	const best = pass().blame.filter(b => b.holder === holder && b.waiter === waiter).sort((a, b) => b.longest_ns - a.longest_ns)[0];
	if (best && best.longest_ns > 0) {
		setPin(pinLane("gil", waiter, best.longest_at_ns));
		flyToSpan(best.longest_at_ns, best.longest_at_ns + best.longest_ns);
	}
	$("timeline").scrollIntoView({block: "start", behavior: "smooth"});
}

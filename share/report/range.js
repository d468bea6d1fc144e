// SPDX-License-Identifier: MIT
// The selected range: the time of its threads, who kept whom waiting in it, and in which functions.

const RANGE_HOLDS = 300000, RANGE_NAMED = 5000; // holds looked at, and functions looked up

// Holds in the part, by GIL, in time order; null if they are too many.
function rangeHolds(part) {
	const out = [];
	let n = 0;
	store().gil.forEach((lane, thread) => lane.each(part.from, part.to, (from, to, state, s, i) => {
		if (state === HOLD_STATE && n++ < RANGE_HOLDS)
			(out[s.gils[(s.cls[i] - HOLD_STATE) / 5]] ||= []).push({thread, from, to, stack: s.stack ? s.stack[i] : 0, caused: 0});
	}));
	out.forEach(list => list.sort((a, b) => a.from - b.from));
	return n > RANGE_HOLDS ? null : out;
}

// Each wait of the threads shown, divided among the holds, which learn what they caused: as the document's blame has it
// for the whole recording, with nobody for what cannot be told. [{waiter, holder, ns}]
function rangeBlame(part, holds) {
	const out = [];
	for (const waiter of rowsThreads().filter(i => store().gil[i])) {
		const sum = new Map(), add = (holder, ns) => { if (ns > 0) sum.set(holder, (sum.get(holder) || 0) + ns); };
		store().gil[waiter].each(part.from, part.to, (a, b, state, s, i) => {
			const from = Math.max(a, part.from), to = Math.min(b, part.to);
			if (pass().locks && state >= WAIT_STATE) {
				const who = releasersIn(from, to, waiter);
				who.list.forEach(w => add(w.thread, w.ns));
				add(HANDOVER, who.nobody);
			} else if (state === WAIT_STATE) {
				const list = holds[s.gils[(s.cls[i] - state) / 5]] || [];
				let left = to - from;
				for (let k = Math.max(0, lastAtOrBefore(list.length, j => list[j].from, from)); k < list.length && list[k].from < to; k++) {
					const hold = list[k], ns = hold.thread === waiter ? 0 : Math.min(to, hold.to) - Math.max(from, hold.from);
					if (ns <= 0)
						continue;
					hold.caused += ns;
					left -= ns;
					add(hold.thread, ns);
				}
				add(HANDOVER, left);
			}
		});
		sum.forEach((ns, holder) => out.push({waiter, holder, ns}));
	}
	return out;
}

// What ran in the holds that others waited for: [{what, threads, caused, held, holds, longest}]
function rangeFunctions(part, holds) {
	const by = new Map();
	holds.flat().filter(x => x.caused > 0).sort((a, b) => b.caused - a.caused).forEach((hold, n) => {
		const what = n < RANGE_NAMED ? doing(hold.thread, hold.from, hold.to, hold.stack) : null, key = what ? what.name + "\0" + what.place : "";
		if (!by.has(key))
			by.set(key, {what, threads: new Set(), caused: 0, held: 0, holds: 0, longest: hold});
		const row = by.get(key);
		row.threads.add(hold.thread);
		row.caused += hold.caused;
		row.held += Math.min(hold.to, part.to) - Math.max(hold.from, part.from);
		row.holds++;
		if (hold.to - hold.from > row.longest.to - row.longest.from)
			row.longest = hold;
	});
	return [...by.values()];
}

function rangeThreadsTable(part) {
	const d = part.to - part.from, known = gilKnown(), st = store();
	const sumOf = (lanes, i, states) => lanes[i] ? laneTotals(lanes[i], part.from, part.to) : new Float64Array(states);
	const rows = rowsThreads().map(i => ({i, gil: sumOf(st.gil, i, 5), cpu: sumOf(st.cpu, i, 6)})).filter(r => (known ? r.gil : r.cpu).some(x => x > 0));
	const col = (head, csv, f) => rows.some(f) && tally(head, csv, f, r => fmtDur(f(r)) + " (" + fmtPct(f(r), d) + ")");
	const columns = [
		whoColumn(r => r.i),
		...(known ? [col(gilText("Holds", "Stops others"), "hold_ns", r => r.gil[2]), col(gilText("Waits", "Blocked"), "wait_ns", r => r.gil[3] + r.gil[4]), col(gilText("No GIL", "Free"), "no_gil_ns", r => r.gil[1]), col("Unknown", "unknown_ns", r => r.gil[0])] : []),
		...(st.cpu.length ? STATE_COLUMNS.slice(0, known ? 2 : 6).map(([key, head], k) => col(head, key + "_ns", r => r.cpu[(k + 1) % 6])) : []),
	].filter(Boolean);
	return makeTable(columns, rows, {caption: "Time per thread", sort: Math.max(1, columns.findIndex(c => c.csv === "wait_ns")), limit: 12});
}

function rangeBlameTable(rows) {
	const waited = new Map();
	for (const r of rows)
		waited.set(r.waiter, (waited.get(r.waiter) || 0) + r.ns);
	return makeTable([
		{head: gilText("Held", "Let go"), csv: "holder", value: r => holderName(r.holder), cell: r => r.holder === HANDOVER ? soft(nobodyText()) : threadTag(r.holder)},
		whoColumn(r => r.waiter, gilText("Waited", "Blocked"), "waiter"),
		tally("For", "wait_ns", r => r.ns, r => fmtDur(r.ns)),
		tally("Of its wait", "share", r => r.ns / waited.get(r.waiter), r => fmtPct(r.ns, waited.get(r.waiter))),
	], rows, {caption: gilText("Who kept whom waiting", "Who was blocked until whom"), sort: 2, limit: 8});
}

function rangeFunctionsTable(rows) {
	const jump = x => jumpTo(fmtDur(x.to - x.from), () => goToPin(pinLane("gil", x.thread, x.from)));
	return makeTable([
		{head: "Held by", csv: "function", value: r => r.what ? r.what.name : "?", cell: r => r.what ? doingText(r.what) : soft("not known")},
		{head: "Thread", value: r => [...r.threads].map(threadLabel).join(" "), cell: r => r.threads.size > 1 ? plural(r.threads.size, "thread") : threadTag(r.longest.thread)},
		tally("Wait caused", "wait_caused_ns", r => r.caused, r => fmtDur(r.caused)),
		tally("Holds", "holds", r => r.holds, r => fmtCount(r.holds)),
		tally("Held", "hold_ns", r => r.held, r => fmtDur(r.held)),
		tally("Longest", "longest_hold_ns", r => r.longest.to - r.longest.from, r => jump(r.longest)),
	], rows, {caption: "What held the GIL while others waited", sort: 2, limit: 8});
}

function rangeDraw() {
	$("range").hidden = !range;
	if (!range)
		return;
	const holds = gilKnown() ? rangeHolds(range) : [], blame = gilKnown() && holds ? rangeBlame(range, holds) : [];
	const functions = blame.length && !pass().locks ? rangeFunctions(range, holds) : [];
	fill($("range-h"), "Selected range · " + fmtDur(range.to - range.from));
	fill($("range-body"), h("p", {class: "hint"}, "From " + fmtExact(range.from) + " to " + fmtExact(range.to) + ": " + fmtExact(range.to - range.from) + (holds ? "" : ". Select less to see who waited for whom.")),
		rangeThreadsTable(range), h("div", {class: "panels"}, blame.length ? rangeBlameTable(blame) : null, functions.length ? rangeFunctionsTable(functions) : null));
}

function rangeInit() {
	$("range-zoom").addEventListener("click", () => range && flyTo(range.from, range.to));
	$("range-clear").addEventListener("click", () => setRange(null));
	on("range pass filter complete", whenQuiet(60, rangeDraw));
}

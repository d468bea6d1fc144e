// SPDX-License-Identifier: MIT
// Totals of the selected range, per thread.

function rangeDraw() {
	$("range").hidden = !range;
	if (!range)
		return;
	const d = range.to - range.from;
	const rows = rowsThreads().map(i => ({i, sum: store().gil[i] ? laneTotals(store().gil[i], range.from, range.to) : new Float64Array(5)}))
		.filter(r => r.sum.some(x => x > 0));
	fill($("range-h"), "Selected range · " + fmtDur(d));
	const col = (head, csv, f) => ({head, csv, num: true, value: r => f(r.sum), cell: r => fmtDur(f(r.sum)) + " (" + fmtPct(f(r.sum), d) + ")"});
	fill($("range-body"), h("p", {class: "hint"}, "From " + fmtExact(range.from) + " to " + fmtExact(range.to) + ": " + fmtExact(d)),
		makeTable([
			{head: "Thread", value: r => threadLabel(r.i), cell: r => threadTag(r.i)},
			col(gilText("Holds", "Stops others"), "hold_ns", s => s[2]), col(gilText("Waits", "Blocked"), "wait_ns", s => s[3] + s[4]), col(gilText("No GIL", "Free"), "no_gil_ns", s => s[1]), col("Unknown", "unknown_ns", s => s[0]),
		], rows, {caption: "Time per thread in the selected range", hideCaption: true, sort: 2, limit: 12}));
}

function rangeInit() {
	$("range-zoom").addEventListener("click", () => range && flyTo(range.from, range.to));
	$("range-clear").addEventListener("click", () => setRange(null));
	const later = whenQuiet(60, rangeDraw);
	on("range pass filter complete", later);
}

// SPDX-License-Identifier: MIT
// Tables of the longest waits and holds, of calls that keep the GIL, and what else the recording says.

const LIST = 100;

function collectTop(key) {
	const out = [];
	store().gil.forEach((lane, thread) => {
		for (const [k, s] of lane.sections.entries())
			for (const i of s[key])
				out.push(lanePin("gil", thread, {s, k, i}));
	});
	out.sort((a, b) => b.to - b.from - (a.to - a.from) || a.from - b.from);
	return out.slice(0, LIST);
}

function waitsDraw() {
	const rows = collectTop("topWaits").map(p => ({p, who: holdersIn(p.from, p.to, p.gil, p.thread)}));
	for (const r of rows.slice(0, 30))
		r.what = r.who.list.length ? whatHeld(r) : null;
	const named = rows.some(r => r.what);
	fill($("waits-body"), rows.length ? makeTable([
		tally("Waited", "wait_ns", r => r.p.to - r.p.from, r => jumpTo(fmtDur(r.p.to - r.p.from), () => goToPin(r.p))),
		{head: "Thread", value: r => threadLabel(r.p.thread), cell: r => threadTag(r.p.thread)},
		{head: gilText("Mostly for", "Mostly until let go by"), csv: "holder", value: r => r.who.list[0] ? threadLabel(r.who.list[0].thread) : "nobody", cell: r => r.who.list[0] ? threadTag(r.who.list[0].thread) : soft(gilText("nobody (handover)", "not seen"))},
		named && {head: "which ran", csv: "function", value: r => r.what ? r.what.name : "", cell: r => r.what ? h("code", {title: r.what.name + " " + r.what.place}, r.what.name) : ""},
		tally("At", "at_ns", r => r.p.from, r => fmtAt(r.p.from, 1e6)),
	].filter(Boolean), rows, {caption: gilText("The longest waits for the GIL", "The longest waits"), hideCaption: true, sort: 0, limit: 10, onrow: r => goToPin(r.p)}) : h("p", {class: "empty"}, gilText("No thread waited for the GIL.", "No thread was blocked.")));
}

// What the main holder ran in the longest stretch of this wait.
function whatHeld(r) {
	const pin = longestIn(r.who.list[0].thread, r.p.from, r.p.to, [HOLD_STATE]);
	return pin ? doing(pin.thread, Math.max(pin.from, r.p.from), Math.min(pin.to, r.p.to), pin.stack) : null;
}

function holdsDraw() {
	const rows = collectTop("topHolds").map(p => {
		const w = waitersIn(p.from, p.to, p.gil, p.thread);
		return {p, waiters: w.length, caused: w.reduce((sum, x) => sum + x.ns, 0)};
	});
	for (const r of rows.slice(0, 30))
		r.what = doing(r.p.thread, r.p.from, r.p.to, r.p.stack);
	const named = rows.some(r => r.what);
	fill($("holds-body"), rows.length ? makeTable([
		{head: gilText("Held", "Stopped"), csv: "hold_ns", num: true, value: r => r.p.to - r.p.from, cell: r => jumpTo(fmtDur(r.p.to - r.p.from), () => goToPin(r.p))},
		{head: "Thread", value: r => threadLabel(r.p.thread), cell: r => threadTag(r.p.thread)},
		named && {head: "ran", csv: "function", value: r => r.what ? r.what.name : "", cell: r => r.what ? h("code", {title: r.what.name + " " + r.what.place}, r.what.name) : ""},
		tally("Wait caused", "wait_caused_ns", r => r.caused, r => r.caused ? fmtDur(r.caused) : "–", "Summed over the threads that waited"),
		tally("At", "at_ns", r => r.p.from, r => fmtAt(r.p.from, 1e6)),
	].filter(Boolean), rows, {caption: gilText("The longest holds of the GIL", "The longest stops"), hideCaption: true, sort: 0, limit: 10, onrow: r => goToPin(r.p)}) : h("p", {class: "empty"}, gilText("No thread held the GIL.", "No thread stopped the others.")));
}

// The longest hold of a row of the document, whose times are those of the main recording.
function goToHold(r) {
	const main = meta.main_pass || 0;
	setPass(main);
	const thread = pass().threads.findIndex(t => t.tid === r.tid);
	goToPin(pinLane("gil", thread, r.longest_hold_at_ns));
}

// Rows of the document by function, whatever threads ran it.
function byFunction(rows) {
	const by = new Map();
	for (const r of rows) {
		const key = [r.function || r.native, r.file].join("\0"), old = r.function ? by.get(key) : null;
		if (!old) {
			by.set(r.function ? key : r, {...r, tids: [r.tid]});
			continue;
		}
		old.tids.push(r.tid);
		if (r.longest_hold_ns > old.longest_hold_ns)
			Object.assign(old, {longest_hold_ns: r.longest_hold_ns, longest_hold_at_ns: r.longest_hold_at_ns, tid: r.tid});
		old.native = old.native || r.native;
		for (const k of ["wait_caused_ns", "holds", "hold_ns", "held_off_cpu_ns", "gain_ns"])
			old[k] = k === "gain_ns" && !(Number.isFinite(r[k]) && Number.isFinite(old[k])) ? null : (old[k] || 0) + (r[k] || 0);
	}
	return [...by.values()];
}

// A caller that tells something: not of this file, nor what starts and feeds all threads.
const telling = r => r.caller && r.caller.function && r.caller.file !== r.file && !/\/lib\/python.*\/(threading\.py|runpy\.py|concurrent\/|multiprocessing\/|asyncio\/)/.test(r.caller.file) ? r.caller : null;

// Where threads are blocked, or block others, in a recording without a GIL.
function blockedDraw() {
	const rows = report.blocked || [], place = r => (r.file || "") + (r.line ? ":" + r.line : "");
	const what = r => r.what === "lock" ? (/^_thread\./.test(r.of) ? "waits for a " + r.of : r.of ? "waits for the lock of a " + r.of : "waits for a lock") : r.what === "stopped" ? "stands: another thread stopped it" : "stops the others";
	$("hogs").hidden = !rows.length;
	fill($("hogs-h"), "Where threads are blocked");
	$("hogs-hint").textContent = "All waits of a function are one row; the line is that of the longest.";
	fill($("patterns"), null);
	fill($("hogs-body"), rows.length ? makeTable([
		{head: "Function", csv: "function", value: r => r.function || "?", cell: r => [code(r.function || "?", place(r)), r.file ? soft(" " + baseName(place(r))) : null]},
		{head: "What", csv: "what", value: what},
		tally("Times", "count", r => r.count, r => fmtCount(r.count)),
		tally("Time", "total_ns", r => r.total_ns, r => fmtDur(r.total_ns)),
		tally("Longest", "longest_ns", r => r.longest_ns, r => fmtDur(r.longest_ns)),
	], rows, {caption: "Where threads are blocked", hideCaption: true, sort: 3, limit: 15}) : null);
}

// What the recorder found itself: calls that kept the GIL when they were asked to let go, else whatever
// held it while others waited.
function hogsDraw() {
	if (pass().locks)
		return blockedDraw();
	const hogs = report.hogs || [], seen = new Set(), all = report.patterns || [];
	const patterns = all.filter(p => p.code !== "hog" && (!p.code || !seen.has(p.code)) && seen.add(p.code));
	const rows = byFunction(hogs.length ? hogs : (report.functions || []).filter(r => r.function));
	const gains = rows.some(r => Number.isFinite(r.gain_ns));
	$("hogs").hidden = !rows.length && !patterns.length;
	fill($("hogs-h"), hogs.length ? "Calls that keep the GIL" : "Functions that held the GIL while others waited");
	$("hogs-hint").textContent = hogs.length ? "Asked to let go, as Python does after " + fmtDur(meta.switch_interval_ns).replace(".00", "") + ", they went on: C code, or one long instruction." +
		(gains ? " What letting go would save is an estimate: the recording replayed on the CPUs it had, all else as long as it was." : "") :
		"Where holds ended that others waited for. None of them kept it longer than Python intends.";
	const nameOf = tid => {
		const i = pass().threads.findIndex(t => t.tid === tid);
		return i >= 0 ? threadTag(i) : "tid " + tid;
	};
	fill($("patterns"), patterns.map(p => {
		const more = all.filter(q => q.code === p.code).length - 1;
		return h("div", {class: "pattern"}, h("b", {}, p.title || p.code || ""), " ", p.text || "", p.code && more ? " (and " + more + " more like it)" : "", p.advice ? h("p", {}, p.advice) : null);
	}));
	const place = r => (r.file || "") + (r.line ? ":" + r.line : "");
	const columns = [
		{head: hogs.length ? "Function" : "Held until", csv: "function", value: r => r.function || r.native || "?", cell: r => [
			code(r.function || r.native || "?", place(r)), r.file ? soft(" " + baseName(place(r))) : null,
			r.native && r.function ? [" in ", code(r.native)] : null,
			telling(r) ? h("div", {class: "soft", title: place(r.caller)}, "called by ", code(r.caller.function), r.caller.file ? " (" + baseName(place(r.caller)) + ")" : "") : null]},
		{head: "Thread", csv: "tid", value: r => r.tids.join(" "), cell: r => r.tids.length > 1 ? plural(r.tids.length, "thread") : nameOf(r.tid)},
		tally("Wait caused", "wait_caused_ns", r => r.wait_caused_ns, r => fmtDur(r.wait_caused_ns)),
		tally("Holds", "holds", r => r.holds, r => fmtCount(r.holds)),
		tally("Held", "hold_ns", r => r.hold_ns, r => fmtDur(r.hold_ns)),
		{head: "Longest", csv: "longest_hold_ns", num: true, value: r => r.longest_hold_ns, cell: r => Number.isFinite(r.longest_hold_at_ns) ?
			jumpTo(fmtDur(r.longest_hold_ns), () => goToHold(r)) : fmtDur(r.longest_hold_ns)},
	];
	const off = r => r.held_off_cpu_ns || 0;
	if (rows.some(off))
		columns.push(tally("Off CPU", "held_off_cpu_ns", off, r => off(r) ? fmtDur(off(r)) : "–", "Held while the holder was not on a CPU: it slept, or had to wait for one"));
	if (rows.some(r => Number.isFinite(r.gain_ns)))
		columns.push(tally("Would save", "gain_ns", r => r.gain_ns || 0, r => Number.isFinite(r.gain_ns) ? fmtDur(r.gain_ns) : "?", "Would save about this much waiting had it let go of the GIL. An estimate: the recording replayed on the CPUs it had, with these calls letting go of the GIL and all else as long as it was"));
	fill($("hogs-body"), rows.length ? makeTable(columns, rows, {caption: "Calls that kept the GIL while others waited", hideCaption: true, sort: 2, limit: 15}) : null);
}

function aboutDraw() {
	const p = pass(), py = report.python || {}, items = [];
	const add = (term, value) => { if (value !== undefined && value !== null && value !== "") items.push([term, String(value)]); };
	add("Program", (meta.command || []).join(" "));
	add("Python", [py.implementation, py.version, py.free_threaded ? "(free-threaded)" : "", py.executable].filter(Boolean).join(" "));
	add("Recorded", meta.created);
	add("Host", [meta.host, meta.cpus ? plural(meta.cpus, "CPU") : ""].filter(Boolean).join(" · "));
	add("Recording shown", p.name + (meta.passes.length > 1 ? " (one of " + meta.passes.length + " runs, never mixed)" : ""));
	add("Length", fmtExact(p.dur_ns));
	add("Events", p.events !== undefined ? fmtCount(p.events) + (p.lost ? ", " + fmtCount(p.lost) + " lost" : ", none lost") : "");
	add("Python calls", p.slices ? fmtCount(p.slices) : p.slices_note);
	if (p.slices && p.slices_note)
		add("Calls, note", p.slices_note);
	p.gils.forEach((g, i) => add(p.gils.length > 1 ? "GIL " + (i + 1) : "GIL", "held " + fmtPct(g.held_ns, p.dur_ns) + " of the time, wanted " + fmtPct(g.wanted_ns, p.dur_ns) + ", handover " + fmtDur(g.handover_ns)));
	add("giltracer", report.giltracer || meta.giltracer);
	const notes = [...(report.caveats || []), ...(meta.notes || [])].filter((c, i, all) => c.count !== 0 && all.findIndex(o => o.text === c.text && (o.pass || c.pass) === c.pass) === i);
	fill($("about-body"), factsList(items), notes.length ? h("ul", {class: "caveats"}, notes.map(c => h("li", {}, c.pass && meta.passes.length > 1 ? c.pass + " pass: " : "", c.text || c.code, c.count > 1 ? soft(" (" + fmtCount(c.count) + ")") : null))) : null);
}

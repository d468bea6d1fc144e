// SPDX-License-Identifier: MIT
// Spans that a person points at, and what can be said about them.

const GIL_WORDS = ["unknown", "no GIL", "holds the GIL", "waits for the GIL", "gave the GIL up, waits to be switched"];
const LOCK_WORDS = ["unknown", "free", "stops the others", "waits for a lock", "stands, because another thread stopped it"];
const CPU_WORDS = ["unknown", "running", "in line for a CPU", "asleep", "uninterruptible (disk)", "asleep for the GIL"];

function pinLane(kind, thread, t) {
	const lane = (kind === "gil" ? store().gil : store().cpu)[thread];
	const at = lane && lane.find(t);
	return at ? lanePin(kind, thread, at) : null;
}

function lanePin(kind, thread, at) {
	const {s, i} = at;
	return {
		kind, thread, at, from: s.start[i], to: s.start[i + 1], state: s.state[i],
		gil: kind === "gil" ? s.gils[(s.cls[i] - s.state[i]) / 5] - 1 : -1,
		flags: s.flags ? s.flags[i] : 0,
		stack: s.stack ? s.stack[i] : 0,
		cpu: s.cpu && s.state[i] === 1 ? s.cpu[i] - 1 : -1,
		waker: s.waker && s.waker[i] ? s.waker[i] - 1 : -1,
	};
}

function pinCall(thread, depth, t) {
	const row = (store().slices[thread] || [])[depth];
	const at = row && row.find(t);
	if (!at)
		return null;
	const {s, i} = at;
	return {kind: "py", thread, depth, at, from: s.start[i], to: s.end[i], name: s.name[i], flags: s.flags ? s.flags[i] : 0};
}

const callName = id => store().names.slices[id] || "?";

// "work (/a/b/hog.py:12)" -> "work"
function shortCall(text) {
	const m = /^(.*?) \((.*):(\d+)\)$/.exec(text);
	return m ? m[1] : text;
}

function callPlace(text) {
	const m = /^(.*?) \((.*):(\d+)\)$/.exec(text);
	return m ? m[2].replace(/^.*\//, "") + ":" + m[3] : "";
}

// Python calls around t, outermost first: {name, from, to}.
function callsAt(thread, t) {
	const out = [];
	for (const row of store().slices[thread] || []) {
		const at = row.find(t);
		if (!at)
			break;
		out.push({id: at.s.name[at.i], name: callName(at.s.name[at.i]), from: at.s.start[at.i], to: at.s.end[at.i]});
	}
	return out;
}

// Frames of a stack id, outermost first.
function framesOf(id) {
	const st = store().stacks, names = store().names.stacks, out = [];
	for (let n = 0; id && n < 1000; id = st.parent[id], n++)
		out.push({name: names[st.name[id]] || "?", module: names[st.module[id]] || "", line: st.line[id], flags: st.flags[id]});
	return out.reverse();
}
const FRAME_KERNEL = 1, FRAME_PYTHON = 2, FRAME_CUT = 32, FRAME_BROKEN = 128, FRAME_MISMATCH = 256;

// The calls that each ran for more than half of [from, to), outermost first.
function mainCalls(thread, from, to) {
	const out = [];
	for (const row of store().slices[thread] || []) {
		let longest = 0, id = -1, seen = 0;
		row.each(from, to, (a, b, name) => {
			if (++seen > 5000)
				return;
			const d = Math.min(b, to) - Math.max(a, from);
			if (d > longest) {
				longest = d;
				id = name;
			}
		});
		if (longest * 2 <= to - from)
			break;
		out.push(callName(id));
	}
	return out;
}

// What a thread was doing in a span: {name, place}, or null. A traced call tells more than the frame that a
// probe saw; a call into C has the place of its caller.
function doing(thread, from, to, stack) {
	const calls = mainCalls(thread, from, to), call = calls[calls.length - 1];
	if (call) {
		const outer = calls.filter(c => callPlace(c)).pop();
		return {name: shortCall(call), place: callPlace(call) || (outer ? "in " + shortCall(outer) + ", " + callPlace(outer) : "")};
	}
	const f = stack ? framesOf(stack).filter(x => x.flags & FRAME_PYTHON).pop() : null;
	return f ? {name: f.name, place: f.module + (f.line ? ":" + f.line : "")} : null;
}

// As elements: the name, and the place after it.
const doingText = d => d ? [h("code", {title: d.name + " " + d.place}, d.name), d.place ? h("span", {class: "soft", title: d.place}, " " + d.place.replace(/\S*\//g, "")) : null] : [];

// A lock does not say who has it: until whose release the thread was blocked in [from, to), as holdersIn.
function releasersIn(from, to, thread) {
	const by = new Map();
	for (const s of store().released[thread] || [])
		for (let i = Math.max(0, upper(s.time, 0, s.n, from) - 1); i < s.n && s.time[i] < to; i++) {
			const ns = Math.min(to, s.time[i] + s.dur[i]) - Math.max(from, s.time[i]);
			if (ns > 0)
				by.set(s.by[i], (by.get(s.by[i]) || 0) + ns);
		}
	const list = [...by.keys()].filter(k => k > 1).map(k => ({thread: k - 2, ns: by.get(k)})).sort((a, b) => b.ns - a.ns);
	return {list, nobody: (by.get(0) || 0) + (by.get(1) || 0)};
}

// Who held the GIL in [from, to): [{thread, ns}] most first, and nobody's time.
function holdersIn(from, to, gil, except) {
	const out = [];
	let held = 0;
	if (pass().locks)
		return releasersIn(from, to, except);
	store().gil.forEach((lane, thread) => {
		if (thread === except)
			return;
		const ns = laneTotals(lane, from, to, gil)[HOLD_STATE];
		if (ns > 0)
			out.push({thread, ns});
		held += ns;
	});
	out.sort((a, b) => b.ns - a.ns);
	return {list: out, nobody: Math.max(0, to - from - held)};
}

// Who waited for the GIL in [from, to), or stood because it was stopped.
function waitersIn(from, to, gil, except) {
	const out = [];
	store().gil.forEach((lane, thread) => {
		if (thread === except)
			return;
		const sum = laneTotals(lane, from, to, gil);
		const ns = (pass().locks ? 0 : sum[WAIT_STATE]) + sum[SWITCH_STATE];
		if (ns > 0)
			out.push({thread, ns});
	});
	out.sort((a, b) => b.ns - a.ns);
	return out;
}

const stateWords = p => p.kind === "gil" ? gilText(GIL_WORDS, LOCK_WORDS) : CPU_WORDS;

function pinTitle(p) {
	if (p.kind === "py")
		return shortCall(callName(p.name));
	return threadLabel(p.thread) + " " + stateWords(p)[p.state];
}

function pinSentence(p) {
	return pinTitle(p) + " for " + fmtDur(p.to - p.from) + ", from " + fmtAt(p.from, span() / 1000);
}

// The next or previous wait of the pinned thread, or the first thread's.
function nextWait(by) {
	const thread = pinned ? pinned.thread : rowsThreads()[0];
	const lane = store().gil[thread];
	if (!lane)
		return;
	const isWait = (s, i) => s.state[i] === WAIT_STATE || (pass().locks && s.state[i] === SWITCH_STATE);
	const to = lane.step(pinned && pinned.kind === "gil" ? pinned.at : lane.start(pinned ? pinned.from : (view.from + view.to) / 2, by), by, isWait);
	if (!to)
		return say("No " + (by > 0 ? "later" : "earlier") + " wait of " + threadLabel(thread));
	const pin = lanePin("gil", thread, to);
	setPin(pin);
	reveal(pin);
}

// Bring a span into view, keeping the zoom if it fits.
function reveal(p) {
	const d = p.to - p.from;
	if (p.from >= view.from && p.to <= view.to && d > span() / 400)
		return;
	if (d < span() * 0.9 && d > span() / 400) {
		const mid = (p.from + p.to) / 2;
		flyTo(mid - span() / 2, mid + span() / 2);
	} else {
		flyToSpan(p.from, p.to);
	}
}

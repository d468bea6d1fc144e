// SPDX-License-Identifier: MIT
// The JSON documents of the page, and what is said about threads in them.

const readJson = id => JSON.parse($(id).textContent || "{}");
const report = readJson("gt-report");
const meta = readJson("gt-meta");
const overview = readJson("gt-overview");

// Which recording is shown; see view.js for which part of it.
let passIndex = meta.main_pass || 0;
const pass = () => meta.passes[passIndex];

// Shares are of what is known, as in the terminal's table.
const knownNs = t => t.total_ns - t.unknown_ns;

const HANDOVER = null, CANNOT_TELL = -1; // holders that are no thread

function threadName(index) {
	const t = pass().threads[index];
	if (!t)
		return "thread " + index;
	return t.name || (t.main ? "main" : "thread " + t.tid);
}

// Names are not unique: pools call all of theirs alike.
function threadLabel(index) {
	const t = pass().threads[index];
	const name = threadName(index);
	if (!t)
		return name;
	if (pass().threads.some((o, i) => i !== index && threadName(i) === name))
		return name + (t.main ? " (main)" : " " + t.tid);
	return name;
}

// The least that tells a thread from the others.
function threadShort(index) {
	const t = pass().threads[index], label = threadLabel(index);
	return t && label !== threadName(index) ? (t.main ? "main" : String(t.tid)) : label;
}

// Indices, most wait first, then most hold; threads that never touched the GIL last.
function threadOrder(p) {
	const key = t => [t.wait_ns, t.hold_ns, t.total_ns];
	return p.threads.map((t, i) => i).sort((a, b) => {
		const x = key(p.threads[a]), y = key(p.threads[b]);
		return y[0] - x[0] || y[1] - x[1] || y[2] - x[2] || a - b;
	});
}

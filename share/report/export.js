// SPDX-License-Identifier: MIT
// Exports of the selected range, otherwise of the part in view, for the threads shown.

import {meta, pass, threadName} from "./data.js";
import {$, click, listen, saveAs} from "./dom.js";
import {atOnce, emit, inSteps} from "./events.js";
import {flameTree} from "./flame.js";
import {fmtCount, fmtDur, fmtPct} from "./format.js";
import {tlCanvas} from "./layout.js";
import {max, min} from "./math.js";
import {callName} from "./pick.js";
import {store} from "./store.js";
import {csvField} from "./table.js";
import {upper} from "./tracks.js";
import {passDur, range, rowsThreads, view} from "./view.js";
import * as words from "./words.js";

const exportPart = () => range || {from: max(0, view.from), to: min(passDur(), view.to)};
const GIL_KEYS = ["unknown", "no-gil", "hold", "wait", "switch-wait"];
const CPU_KEYS = ["unknown", "running", "runnable", "sleeping", "uninterruptible", "gil-sleep"];

// The spans of the threads shown in the part: f(track, kind, thread, names, depth) for each track.
function exportTracks(f) {
	const st = store();
	for (const thread of rowsThreads()) {
		if (st.gil[thread]) f(st.gil[thread], "gil", thread, i => GIL_KEYS[i], "");
		if (st.cpu[thread]) f(st.cpu[thread], "cpu", thread, i => CPU_KEYS[i], "");
		(st.slices[thread] || []).forEach((row, depth) => f(row, "py", thread, callName, depth));
	}
}

// {s, first, last}: the spans of a track in the part, by section.
const sectionsIn = (track, part) =>
	track.sections
		.filter(s => s.t1 > part.from && s.t0 < part.to)
		.map(s => ({
			s,
			first: max(0, upper(s.start, 0, s.n, part.from) - 1),
			last: upper(s.start, 0, s.n, part.to - 1),
		}));

function exportCount() {
	const part = exportPart();
	let n = 0;
	exportTracks(track => {
		for (const {first, last} of sectionsIn(track, part)) n += last - first;
	});
	return n;
}

// Call f({kind, thread, from, to, what, depth}) for each span in the part. Yields their number
// between steps.
function* exportEach(f) {
	const part = exportPart(),
		all = [];
	let n = 0;
	exportTracks((...track) => all.push(track));
	for (const [track, kind, thread, nameOf, depth] of all)
		for (const {s, first, last} of sectionsIn(track, part))
			for (let i = first; i < last; i++) {
				const from = s.start[i],
					to = s.end ? s.end[i] : s.start[i + 1];
				if (++n % 2000 === 0) yield n;
				if (to > part.from)
					f({kind, thread, from, to, what: nameOf((s.name || s.state)[i]), depth});
			}
}

// Collects text in pieces that the browser may keep on disk.
function pieces(type) {
	const parts = [];
	let text = "",
		size = 0;
	return {
		size: () => size,
		add(s) {
			text += s;
			size += s.length;
			if (text.length > 1 << 20) {
				parts.push(new Blob([text]));
				text = "";
			}
		},
		blob() {
			parts.push(text);
			return new Blob(parts, {type});
		},
	};
}

// Chrome's trace format, in µs. The lanes of a thread are exported as further threads, because
// their spans overlap its calls.
function* exportJson(out) {
	const p = pass();
	const us = ns => (ns / 1000).toFixed(3);
	out.add('{"displayTimeUnit":"ns","traceEvents":[\n');
	let first = true;
	const add = o => {
		out.add((first ? "" : ",\n") + o);
		first = false;
	};
	const tid = {
		py: i => p.threads[i].tid,
		gil: i => p.threads[i].tid + 1e7,
		cpu: i => p.threads[i].tid + 2e7,
	};
	for (const i of rowsThreads())
		for (const [kind, suffix] of [
			["py", ""],
			["gil", " GIL"],
			["cpu", " CPU"],
		])
			add(
				JSON.stringify({
					name: "thread_name",
					ph: "M",
					pid: p.threads[i].pid,
					tid: tid[kind](i),
					args: {name: threadName(i) + suffix},
				}),
			);
	yield* exportEach(e => {
		if (e.kind === "gil" && e.what === "no-gil") return;
		add(
			'{"name":' +
				JSON.stringify(e.what) +
				',"cat":"' +
				e.kind +
				'","ph":"X","pid":' +
				p.threads[e.thread].pid +
				',"tid":' +
				tid[e.kind](e.thread) +
				',"ts":' +
				us(e.from) +
				',"dur":' +
				us(e.to - e.from) +
				"}",
		);
	});
	out.add("\n]}\n");
}

function* exportCsv(out) {
	const p = pass();
	out.add("kind,pid,tid,thread,start_ns,end_ns,dur_ns,depth,what\n");
	yield* exportEach(e => {
		const t = p.threads[e.thread];
		out.add(
			[
				e.kind,
				t.pid,
				t.tid,
				csvField(threadName(e.thread)),
				e.from,
				e.to,
				e.to - e.from,
				e.depth,
				csvField(e.what),
			].join(",") + "\n",
		);
	});
}

// The stacks of the flame graph that is shown, for flamegraph.pl, inferno and speedscope.
function exportFolded() {
	const out = pieces("text/plain");
	const put = (node, path) => {
		let own = node.ns;
		for (const kid of node.kids.values()) {
			const frame = kid.key.replace(/\0.*/, "").replace(/;/g, ":").replace(/\s+/g, " ");
			own -= kid.ns;
			put(kid, path ? path + ";" + frame : frame);
		}
		own = Math.round(own);
		if (own > 0 && path) out.add(path + " " + own + "\n");
	};
	put(atOnce(flameTree()).shown, "");
	return out.blob();
}

const LARGE = 100e6; // bytes: ask before

// Write in steps. After the first ones, the size is estimated; a large one needs consent.
const exportRun = inSteps(function* (name, type, write, done) {
	const out = pieces(type),
		all = exportCount();
	let asked = false;
	for (const n of write(out)) {
		const size = (out.size() / n) * all;
		$("export-scope").textContent = words.writing(fmtBytes(size), fmtPct(n, all));
		if (!asked && size > LARGE) {
			if (!confirm(words.largeFile(fmtBytes(size)))) return done();
			asked = true;
		}
		yield;
	}
	saveAs(name, out.blob());
	done();
});

const fmtBytes = n => (n < 1e6 ? "1" : fmtCount(Math.round(n / 1e6))) + "\u00a0MB";

export function exportInit() {
	const menu = $("export-menu");
	const name = ext =>
		"giltracer-" +
		((meta.command || [])[0] || "trace")
			.replace(/^.*\//, "")
			.replace(/[^\w.-]/g, "_")
			.slice(0, 60) +
		"." +
		ext;
	listen(menu, "toggle", () => {
		const part = exportPart();
		$("export-scope").textContent = words.exportScope(
			!!range,
			fmtDur(part.to - part.from),
			rowsThreads().length,
		);
		$("export-folded").hidden = $("flame").hidden;
	});
	const done = () => {
		menu.open = false;
	};
	click("export-json", () => exportRun(name("json"), "application/json", exportJson, done));
	click("export-csv", () => exportRun(name("csv"), "text/csv", exportCsv, done));
	listen(menu, "keydown", e => {
		if (e.key !== "Escape" || !menu.open) return;
		e.stopPropagation();
		exportRun.stop();
		done();
		menu.querySelector("summary").focus();
	});
	click("export-folded", () => {
		saveAs(name("folded"), exportFolded());
		done();
	});
	click("export-png", () => {
		emit("now");
		tlCanvas.toBlob(blob => saveAs(name("png"), blob), "image/png");
		done();
	});
	listen(document, "click", e => {
		if (!menu.contains(e.target)) done();
	});
}

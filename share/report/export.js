// SPDX-License-Identifier: MIT
// Exports of the selected range, otherwise of the part in view, for the threads shown.

import {meta, pass, threadName} from "./data.js";
import {$, click, listen, saveAs} from "./dom.js";
import {atOnce, emit} from "./events.js";
import {flameTree} from "./flame.js";
import {fmtDur, plural} from "./format.js";
import {tlCanvas} from "./layout.js";
import {max, min} from "./math.js";
import {callName} from "./pick.js";
import {store} from "./store.js";
import {csvField} from "./table.js";
import {passDur, range, rowsThreads, view} from "./view.js";

const exportPart = () => range || {from: max(0, view.from), to: min(passDur(), view.to)};
const GIL_KEYS = ["unknown", "no-gil", "hold", "wait", "switch-wait"];
const CPU_KEYS = ["unknown", "running", "runnable", "sleeping", "uninterruptible", "gil-sleep"];

// Call f({kind, thread, from, to, what, depth}) for each span in the part.
function exportEach(f) {
	const part = exportPart(),
		st = store();
	for (const thread of rowsThreads()) {
		if (st.gil[thread])
			st.gil[thread].each(part.from, part.to, (from, to, state) =>
				f({kind: "gil", thread, from, to, what: GIL_KEYS[state], depth: ""}),
			);
		if (st.cpu[thread])
			st.cpu[thread].each(part.from, part.to, (from, to, state) =>
				f({kind: "cpu", thread, from, to, what: CPU_KEYS[state], depth: ""}),
			);
		(st.slices[thread] || []).forEach((row, depth) =>
			row.each(part.from, part.to, (from, to, name) =>
				f({kind: "py", thread, from, to, what: callName(name), depth}),
			),
		);
	}
}

// Collects text in pieces, so that no string reaches the engine's limit.
function pieces(type) {
	const parts = [];
	let text = "";
	return {
		add(s) {
			text += s;
			if (text.length > 1 << 20) {
				parts.push(text);
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
function exportJson() {
	const out = pieces("application/json"),
		p = pass();
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
	exportEach(e => {
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
	return out.blob();
}

function exportCsv() {
	const out = pieces("text/csv"),
		p = pass();
	out.add("kind,pid,tid,thread,start_ns,end_ns,dur_ns,depth,what\n");
	exportEach(e => {
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
	return out.blob();
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
		$("export-scope").textContent =
			(range ? "The selected range, " : "What is in view, ") +
			fmtDur(part.to - part.from) +
			", " +
			plural(rowsThreads().length, "thread");
		$("export-folded").hidden = $("flame").hidden;
	});
	const done = () => {
		menu.open = false;
	};
	click("export-json", () => {
		saveAs(name("json"), exportJson());
		done();
	});
	click("export-csv", () => {
		saveAs(name("csv"), exportCsv());
		done();
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

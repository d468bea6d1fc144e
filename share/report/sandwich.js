// SPDX-License-Identifier: MIT
// One function between its callers and its callees: held, waited, off the CPU, in all and by
// itself, in the range that the flame graph shows, and what others waited for it.

import {pass, passIndex, meta, report} from "./data.js";
import {$, code, factsList, fill, h, soft, tally} from "./dom.js";
import {baseName, fmtDur} from "./format.js";
import {flameBuild, flameModes, reshape} from "./flametree.js";
import {callPlace, shortCall} from "./pick.js";
import {makeTable} from "./table.js";

// {modes: [{mode, text, total, self}], callers, callees}: these as {key, name, ns: by mode}; a call
// within another one of the same function does not count again.
export function sandwichOf(key, python) {
	const modes = [],
		callers = new Map(),
		callees = new Map();
	const add = (map, node, mode, ns) => {
		if (!map.has(node.key)) map.set(node.key, {key: node.key, name: node.name, ns: {}});
		const row = map.get(node.key);
		row.ns[mode] = (row.ns[mode] || 0) + ns;
	};
	for (const [mode, text] of flameModes()) {
		const sum = {mode, text, total: 0, self: 0};
		const walk = (node, up, inside) => {
			const is = node.key === key;
			let self = node.ns;
			for (const kid of node.kids.values()) {
				self -= kid.ns;
				if (is && kid.key !== key) add(callees, kid, mode, kid.ns);
				walk(kid, node, inside || is);
			}
			if (is) sum.self += self;
			if (is && !inside) {
				sum.total += node.ns;
				add(callers, up, mode, node.ns);
			}
		};
		const root = reshape(flameBuild(mode).root, {python, merged: true});
		root.name = root.key = "";
		walk(root, null, false);
		modes.push(sum);
	}
	return {modes, callers: [...callers.values()], callees: [...callees.values()]};
}

// What the document says that others waited for it, in the whole recording.
function causedBy(key) {
	const place = callPlace(key).replace(/:\d+$/, ""),
		main = passIndex === (meta.main_pass || 0) && !pass().locks;
	return (main ? report.functions || [] : [])
		.filter(
			r =>
				r.function === shortCall(key) &&
				(!place || !r.file || baseName(r.file) === baseName(place)),
		)
		.reduce((n, r) => n + r.wait_caused_ns, 0);
}

function sandwichTable(caption, rows, modes) {
	return makeTable(
		[
			{
				head: caption,
				csv: "function",
				value: r => r.name || "(outermost)",
				cell: r => [
					r.name ? code(r.name, r.key) : soft("(outermost)"),
					soft(" " + callPlace(r.key)),
				],
			},
			...modes.map(m =>
				tally(
					m.text,
					m.mode,
					r => r.ns[m.mode] || 0,
					r => (r.ns[m.mode] ? fmtDur(r.ns[m.mode]) : "–"),
				),
			),
		],
		rows,
		{caption, hideCaption: true, sort: 1, limit: 8},
	);
}

// Into the section of the flame graph; nothing of what is no function.
export function sandwichShow(key, python) {
	const {modes, callers, callees} = key ? sandwichOf(key, python) : {modes: []},
		caused = key ? causedBy(key) : 0;
	if (!modes.some(m => m.total)) return fill($("sandwich"));
	fill(
		$("sandwich"),
		h("h3", {}, shortCall(key) + " between its callers and callees"),
		factsList([
			...modes
				.filter(m => m.total)
				.map(m => [m.text, fmtDur(m.total) + ", by itself " + fmtDur(m.self)]),
			caused && [
				"Waits caused",
				fmtDur(caused) + ", in the whole recording, in holds that ended in it",
			],
		]),
		h(
			"div.panels",
			{},
			sandwichTable("Callers", callers, modes),
			callees.length ? sandwichTable("Callees", callees, modes) : null,
		),
	);
}

// SPDX-License-Identifier: MIT
// One function between its callers and its callees: the time that it held the GIL, waited and was
// off the CPU, in all and without its callees, and the waiting that it caused, in the part that the
// flame graph shows.

import {gilKnown, pass} from "./data.js";
import {$, code, factsList, fill, h, soft, tally} from "./dom.js";
import {inSteps} from "./events.js";
import {fmtDur} from "./format.js";
import {flameBuild, flameModes, reshape} from "./flametree.js";
import {callPlace, shortCall} from "./pick.js";
import {partCosts} from "./range.js";
import {makeTable} from "./table.js";
import {partWords, shownPart} from "./view.js";
import * as words from "./words.js";

// {modes: [{mode, text, total, self}], callers, callees}. The last
// two are lists of {key, name, ns: by mode}. A call within another one of the same function does
// not count again.
export function* sandwichOf(key, python) {
	const modes = [],
		callers = new Map(),
		callees = new Map();
	const add = (map, node, mode, ns) => {
		if (!map.has(node.key)) map.set(node.key, {key: node.key, name: node.name, ns: {}});
		const row = map.get(node.key);
		row.ns[mode] = (row.ns[mode] || 0) + ns;
	};
	for (const [mode, text] of flameModes()) {
		const built = yield* flameBuild(mode),
			sum = {mode, text, total: 0, self: 0};
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
		const root = reshape(built.root, {python, merged: true});
		root.name = root.key = "";
		walk(root, null, false);
		modes.push(sum);
	}
	return {modes, callers: [...callers.values()], callees: [...callees.values()]};
}

// How long other threads waited for the holds that mostly ran the function, and for the holds whose
// function is unknown: [ns, ns].
const causedBy = (functions, key) =>
	[
		f =>
			f.what?.name === shortCall(key) && (!callPlace(key) || f.what.place === callPlace(key)),
		f => !f.what,
	].map(wanted => functions.filter(wanted).reduce((ns, f) => ns + f.caused, 0));

const sandwichTable = (caption, rows, modes) =>
	makeTable(
		[
			{
				head: caption,
				csv: "function",
				value: r => r.name || words.outermost,
				cell: r => [
					r.name ? code(r.name, r.key) : soft(words.outermost),
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

// Show the function in the section of the flame graph, or nothing if key is not a function.
export const sandwichShow = inSteps(function* (key, python) {
	const {modes, callers, callees} = key ? yield* sandwichOf(key, python) : {modes: []};
	if (!modes.some(m => m.total)) return fill($("sandwich"));
	const facts = modes
		.filter(m => m.total)
		.map(m => [m.text, words.byItself(fmtDur(m.total), fmtDur(m.self))]);
	const draw = () =>
		fill(
			$("sandwich"),
			h("h3", words.sandwichTitle(shortCall(key), partWords())),
			factsList(facts),
			h(
				"div.panels",
				sandwichTable(words.callerHead, callers, modes),
				callees.length ? sandwichTable(words.calleeHead, callees, modes) : null,
			),
		);
	draw();
	if (!gilKnown() || pass().locks) return;
	yield;
	const [caused, unknown] = causedBy((yield* partCosts(shownPart())).functions, key);
	if (!caused) return;
	facts.push([
		words.waitsCaused,
		words.causedInHolds(fmtDur(caused)),
		unknown > 0 && words.causedAtMost(fmtDur(unknown)),
	]);
	draw();
});

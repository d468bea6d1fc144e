// SPDX-License-Identifier: MIT
// Flame graphs that C has charged, of the whole recording: the stacks that waited above the stacks
// that others executed meanwhile; and, in a page of two recordings, the waiting that stacks caused
// in each.

import {meta, passIndex} from "./data.js";
import {$, code, fill, h, rove, soft, tally} from "./dom.js";
import {fmtDur, fmtPct} from "./format.js";
import {FRAME_H, frameButton, framesIn} from "./frames.js";
import {isLibrary} from "./library.js";
import {callPlace} from "./pick.js";
import {makeTable} from "./table.js";
import {mix, palette} from "./theme.js";
import * as words from "./words.js";

const LEVELS = 22; // of either side
const PAIRS = 12; // rows of the table
const MEETINGS = {
	"meet-gil": ["gil", words.meetGil, words.whichHeldGil],
	"meet-locks": ["locks", words.meetLocks, words.meanwhile],
};
const DIFF = "diff";

// What is chosen on each side, as an object of its tree; whether library frames are shown.
const meet = {mode: "", sides: [null, null], library: false};

export const meetingModes = () => [
	...(meta.diff ? [[DIFF, words.meetDiff]] : []),
	...Object.entries(MEETINGS)
		.filter(([, [key]]) => passIndex === (meta.main_pass || 0) && meta.meeting?.[key])
		.map(([mode, [, text]]) => [mode, text]),
];

const isOutermost = (m, id) => !m.nodes[2 * id - 2];
const nameOf = (m, id) => m.names[m.nodes[2 * id - 1]];
// "f (/a/b.py:12)" -> "f"; lines in which threads waited for locks keep their place.
const shortName = (m, name) =>
	m === meta.meeting?.locks ? name : name.replace(/ \([^()]*(\.py|>)(:\d+)?\)$/, "");

// A tree of the nodes with time of their own: own(id). Nodes that are not shown give their time to
// their callers. sum(node, id) adds more.
const treeOf = (m, own, shown, sum = null) => {
	const n = m.nodes.length / 2,
		total = new Float64Array(n + 1),
		at = [{key: "", name: "", ns: 0, ids: [0], kids: new Map()}];
	for (let id = n; id > 0; id--) {
		total[id] += own(id);
		total[m.nodes[2 * id - 2]] += total[id];
	}
	at[0].ns = total[0];
	for (let id = 1; id <= n; id++) {
		const up = at[m.nodes[2 * id - 2]],
			name = nameOf(m, id);
		if (!total[id] || !up) continue;
		if (!shown(name, id)) {
			at[id] = up;
			continue;
		}
		const before = up.kids.get(name),
			node = before || {
				key: name,
				name: shortName(m, name),
				ns: 0,
				ids: [],
				up,
				kids: new Map(),
			};
		if (!before) up.kids.set(name, node);
		node.ns += total[id];
		node.ids.push(id);
		at[id] = node;
	}
	for (let id = 1; sum && id <= n; id++) if (at[id]) sum(at[id], id);
	return {root: at[0], at};
};

// Which nodes are in the part of the tree that is chosen.
function within(m, chosen) {
	const inside = new Uint8Array(m.nodes.length / 2 + 1);
	if (!chosen) return inside.fill(1);
	for (const id of chosen.ids) inside[id] = 1;
	for (let id = 1; id < inside.length; id++) inside[id] ||= inside[m.nodes[2 * id - 2]];
	return inside;
}

// The trees of both sides, of the pairs that are chosen, and these: [waited, held, ns].
function meetingOf(m) {
	const inside = meet.sides.map(side => within(m, side)),
		own = inside.map(list => new Float64Array(list.length)),
		pairs = [];
	for (let i = 0; i < m.pairs.length; i += 3) {
		const [w, held, ns] = m.pairs.slice(i, i + 3);
		if (!inside[0][w] || !inside[1][held]) continue;
		own[0][w] += ns;
		own[1][held] += ns;
		pairs.push([w, held, ns]);
	}
	const shown = (name, id) => meet.library || isOutermost(m, id) || !isLibrary(name);
	return {trees: own.map(list => treeOf(m, id => list[id], shown)), pairs};
}

// Draw the frames of a side from y on, up or down; returns the number of those left out.
function drawSide(focus, root, y, by, out, choose) {
	const buttons = new Map(),
		{drawn, left} = framesIn(focus, LEVELS + 1);
	const lead = focus === root ? 1 : 0; // the bar in the middle stands for all
	for (const f of drawn) {
		if (f.depth < lead) continue;
		const {node} = f,
			family = {up: f.up && buttons.get(f.up), kids: [], by},
			el = frameButton({
				text: node.name,
				label: [node.key, fmtDur(node.ns), fmtPct(node.ns, root.ns)].join(", "),
				...f,
				top: y + by * (f.depth - lead) * FRAME_H,
				onclick: () => choose(node === focus ? null : node),
			});
		buttons.set(f, el);
		out.set(el, family);
		if (family.up) out.get(family.up).kids.push(el);
	}
	return left;
}

const depthOf = (focus, root) =>
	Math.min(
		LEVELS,
		(function deep(node) {
			return 1 + Math.max(0, ...[...node.kids.values()].map(deep));
		})(focus) - (focus === root ? 1 : 0),
	);

const BAR = 26;

// The innermost frames that are shown, with most time first.
function pairsTable(m, trees, pairs, doing) {
	const rows = new Map();
	for (const [w, held, ns] of pairs) {
		const a = trees[0].at[w],
			b = trees[1].at[held],
			row = rows.get(a)?.get(b) || {a, b, ns: 0};
		if (!rows.has(a)) rows.set(a, new Map());
		rows.get(a).set(b, row);
		row.ns += ns;
	}
	const list = [...rows.values()].flatMap(map => [...map.values()]);
	const outer = node => (node.up?.up ? outer(node.up) : node);
	const column = (head, of) => ({
		head,
		value: r => of(r).key || "?",
		cell: r => {
			const node = of(r);
			return node.up?.up
				? [code(node.name), soft(" " + callPlace(node.key) + ", " + outer(node).name)]
				: node.name;
		},
	});
	return makeTable(
		[
			column(words.waitedIn, r => r.a),
			column(doing, r => r.b),
			tally(
				words.time,
				"ns",
				r => r.ns,
				r => fmtDur(r.ns),
				words.summedOverThreads,
			),
		],
		list,
		{caption: words.pairsOfStacks, hideCaption: true, sort: 2, limit: PAIRS},
	);
}

function meetingDraw(mode, redraw) {
	const [key, , doing] = MEETINGS[mode],
		m = meta.meeting[key];
	if (meet.mode !== mode) meet.sides = [null, null];
	meet.mode = mode;
	const {trees, pairs} = meetingOf(m),
		focus = trees.map(({root, at}, side) => {
			const id = meet.sides[side]?.ids.find(i => at[i]);
			return id ? at[id] : root;
		}),
		choose = side => node => {
			meet.sides[side] = node;
			redraw();
		};
	const family = new Map(),
		above = depthOf(focus[0], trees[0].root) * FRAME_H,
		below = depthOf(focus[1], trees[1].root) * FRAME_H;
	let left = drawSide(focus[0], trees[0].root, above - FRAME_H, -1, family, choose(0));
	const [up, down] = meet.sides;
	const bar = h(
		"button.meet-bar",
		{
			style: "top:" + above + "px;height:" + BAR + "px",
			title: up || down ? words.showWhole : null,
			onclick: () => {
				meet.sides = [null, null];
				redraw();
			},
		},
		words.waitedFor(fmtDur(trees[0].root.ns)),
		up && [words.beforePlace, h("b", up.name)],
		down && [key === "locks" ? words.meetForLock : words.meetForHolder, h("b", down.name)],
		(up || down) && soft(words.ofWhole(fmtDur(m.ns))),
	);
	family.set(bar, {kids: []});
	left += drawSide(focus[1], trees[1].root, above + BAR + 1, 1, family, choose(1));
	const box = $("flame-body");
	box.style.height = above + BAR + below + 2 + "px";
	fill(box, [...family.keys()]);
	rove(box, (from, pressed, all) => {
		const {up: parent, kids, by} = family.get(from),
			row = parent ? family.get(parent).kids : all.filter(b => !family.get(b).up);
		const step = {ArrowLeft: -1, ArrowRight: 1}[pressed];
		if (step) return row[row.indexOf(from) + step];
		const outward = {ArrowUp: -1, ArrowDown: 1}[pressed];
		if (!outward) return null;
		if (from === bar)
			return all.find(b => family.get(b).by === outward && !family.get(b).up) || null;
		return outward === by ? kids[0] : parent || bar;
	});
	$("flame-note").textContent = words.meetNote(m.cut_ns ? fmtDur(m.cut_ns) : "");
	$("flame-left").textContent = left ? words.meetNotDrawn : "";
	fill($("sandwich"), pairsTable(m, trees, pairs, doing));
}

const points = share => (share * 100).toFixed(1) + " %";

function diffDraw(redraw) {
	const d = meta.diff,
		a = id => d.a[id - 1] / d.a_dur_ns,
		b = id => d.b[id - 1] / d.b_dur_ns,
		sums = new Map();
	const {root} = treeOf(
		d,
		id => Math.max(a(id), b(id)),
		(name, id) => meet.library || isOutermost(d, id) || !isLibrary(name),
		(node, id) => {
			for (let n = node; n; n = n.up) {
				const s = sums.get(n) || [0, 0];
				s[0] += a(id);
				s[1] += b(id);
				sums.set(n, s);
			}
		},
	);
	const find = (node, key) =>
		node.key === key ? node : [...node.kids.values()].map(k => find(k, key)).find(Boolean);
	const focus = (meet.mode === DIFF && meet.sides[0] && find(root, meet.sides[0].key)) || root;
	meet.mode = DIFF;
	const {drawn, left} = framesIn(focus, 60),
		buttons = new Map(),
		family = new Map();
	for (const f of drawn) {
		const {node} = f,
			[was, is] = sums.get(node) || [0, 0],
			change = (is - was) / Math.max(is, was, 1e-9),
			by = (is < was ? "−" : "+") + points(Math.abs(is - was)),
			text = (node === root ? words.diffAll : node.name) + " " + by;
		const el = frameButton({
			text,
			label: words.diffFrame(text, points(was), points(is)),
			...f,
			top: f.depth * FRAME_H,
			color: mix(
				palette.none,
				change > 0 ? palette.more : palette.less,
				Math.abs(change) * 0.75,
			),
			onclick: () => {
				meet.sides[0] = node === focus || node === root ? null : node;
				redraw();
			},
		});
		buttons.set(f, el);
		family.set(el, {up: f.up && buttons.get(f.up), kids: []});
		if (f.up) family.get(buttons.get(f.up)).kids.push(el);
	}
	const box = $("flame-body");
	box.style.height = (Math.max(0, ...drawn.map(f => f.depth)) + 1) * FRAME_H + "px";
	fill(box, [...family.keys()]);
	rove(box, (from, key) => {
		const {up, kids} = family.get(from),
			row = up ? family.get(up).kids : [from],
			by = {ArrowLeft: -1, ArrowRight: 1}[key];
		return key === "ArrowUp"
			? up
			: key === "ArrowDown"
				? kids[0]
				: by && row[row.indexOf(from) + by];
	});
	fill(
		$("flame-note"),
		words.diffNote(
			t => h("b.more", t),
			t => h("b.less", t),
		),
		d.cut_ns > 0 && words.diffCut(fmtDur(d.cut_ns)),
	);
	$("flame-left").textContent = left ? words.diffNotDrawn : "";
	fill($("sandwich"));
}

// Draw the graph of a mode of meetingModes(). redraw: draws again.
export function meetingShow(mode, redraw) {
	if (mode === DIFF) diffDraw(redraw);
	else meetingDraw(mode, redraw);
}

export const libraryShown = () => meet.library;
export const toggleLibrary = () => {
	meet.library = !meet.library;
	meet.sides = [null, null];
};

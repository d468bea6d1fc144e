// SPDX-License-Identifier: MIT
// Why some calls of a function, or some tasks of a group, are slow: their lengths, the time of the
// fast half beside that of the slowest twentieth by cause, and the slowest one by one.

import {CAUSES, chainOf} from "./chain.js";
import {crowdLabel, crowdOf} from "./crowds.js";
import {meta, pass, passIndex, report} from "./data.js";
import {$, code, fill, h, listen, rove, soft, stepInList, svg, tally} from "./dom.js";
import {emit, inSteps, on, whenQuiet} from "./events.js";
import {fmtDur, fmtPct} from "./format.js";
import {isLibrary} from "./library.js";
import {floor, max, min} from "./math.js";
import {callName, callPlace, pinCall, shortCall} from "./pick.js";
import {loading, store} from "./store.js";
import {goToPin, jumpTo, makeTable} from "./table.js";
import {seeTasks, taskName} from "./tasks.js";
import {mix, palette} from "./theme.js";
import {flyToSpan} from "./view.js";
import * as words from "./words.js";

const CALLS = 12; // a function with fewer has no fast half to compare with
const MANY = 100000; // nor does one with more come from requests
const OFFERED = 60; // functions to choose from
const EXAMINED = 200; // calls of either part whose causes are looked up
const SLOWEST = 20; // calls that are shown
const CAUSES_SHOWN = 8;
const STEP = 4000; // calls between two interruptions

// name: the function or group of tasks that was chosen, "" for the first that is offered.
export const requests = {name: ""};

let found = {of: null, list: []};
// [{id, name, count, ns}] of the functions that are offered: of the program before those of
// libraries, most time first.
function* functionsOf() {
	if (found.of === passIndex) return found.list;
	const count = [],
		ns = [];
	let looked = 0;
	for (const rows of store().slices)
		for (const row of rows || [])
			for (const s of row.sections)
				for (let i = 0; i < s.n; i++) {
					if (++looked % STEP === 0) yield;
					count[s.name[i]] = (count[s.name[i]] || 0) + 1;
					ns[s.name[i]] = (ns[s.name[i]] || 0) + s.end[i] - s.start[i];
				}
	const list = count
		.map((n, id) => ({id, name: callName(id), count: n, ns: ns[id]}))
		.filter(f => f.count >= CALLS && f.count <= MANY)
		.map(f => ({...f, own: !isLibrary(f.name) && !/ \(</.test(f.name)}))
		.sort((a, b) => +b.own - +a.own || b.ns - a.ns)
		.slice(0, OFFERED);
	found = {of: passIndex, list};
	return list;
}

// The calls of a function that are not within another one of it, shortest first.
function* callsOf(id) {
	const calls = [];
	let looked = 0;
	for (const [thread, rows] of store().slices.entries()) {
		let within = [];
		for (const [depth, row] of (rows || []).entries()) {
			const here = [];
			let k = 0;
			for (const s of row.sections)
				for (let i = 0; i < s.n; i++) {
					if (++looked % STEP === 0) yield;
					if (s.name[i] !== id) continue;
					while (k < within.length && within[k].to <= s.start[i]) k++;
					if (k < within.length && within[k].from <= s.start[i]) continue;
					here.push({thread, depth, from: s.start[i], to: s.end[i]});
				}
			for (const c of here) calls.push(c);
			if (here.length) within = within.concat(here).sort((a, b) => a.from - b.from);
		}
	}
	return calls.sort((a, b) => a.to - a.from - (b.to - b.from));
}

// The words for a part, which are the same for all threads.
function causeOf(p) {
	if (p.kind === "gil") return p.what ? words.gilHeldIn(p.what.name) : words.gilHeldForShort;
	if (p.kind === "released") return words.causeBy("released", crowdLabel(crowdOf(p.who)), false);
	return words.causes[p.kind] + (p.asleep && p.what ? words.insideOf(p.what.name) : "");
}

// The mean time of calls by cause: Map of {kind, ns}. parts: of each call, in order.
function meansOf(parts) {
	const by = new Map();
	for (const list of parts)
		for (const p of list) {
			const text = causeOf(p);
			if (!by.has(text)) by.set(text, {kind: p.kind, ns: 0});
			by.get(text).ns += (p.to - p.from) / parts.length;
		}
	return by;
}

// Of many, some, evenly.
const someOf = list =>
	list.length <= EXAMINED
		? list
		: Array.from({length: EXAMINED}, (_, i) => list[floor((i * list.length) / EXAMINED)]);

// [{text, kind, fast, slow, color}], the largest difference first; the smaller ones as one.
function causesOf(fast, slow) {
	const texts = [...new Set([...fast.keys(), ...slow.keys()])],
		rows = texts
			.map(text => ({
				text,
				kind: (slow.get(text) || fast.get(text)).kind,
				fast: fast.get(text)?.ns || 0,
				slow: slow.get(text)?.ns || 0,
				color: "",
			}))
			.sort((a, b) => b.slow - b.fast - (a.slow - a.fast)),
		rest = rows.splice(CAUSES_SHOWN);
	if (rest.length)
		rows.push({
			text: words.otherCauseCount(rest.length),
			kind: "unknown",
			fast: rest.reduce((n, r) => n + r.fast, 0),
			slow: rest.reduce((n, r) => n + r.slow, 0),
			color: palette.sleeping,
		});
	let waits = 0;
	for (const row of rows)
		row.color ||=
			row.kind === "gil"
				? mix(palette.wait, palette.paper, min(0.7, 0.22 * waits++))
				: row.kind === "switched"
					? mix(palette.wait, palette.ink, 0.45)
					: row.kind === "released"
						? palette.disk
						: palette[CAUSES[row.kind]];
	return rows;
}

const quantile = (calls, q) => {
	const c = calls[min(calls.length - 1, floor(q * calls.length))];
	return c.to - c.from;
};

const sumOf = (rows, key) => rows.reduce((n, r) => n + r[key], 0);
const meanOf = calls => calls.reduce((n, c) => n + c.to - c.from, 0) / calls.length;

const barOf = (rows, key, most) =>
	h(
		"div.req-bar",
		rows.map(r =>
			h("i", {
				title: r.text + ": " + fmtDur(r[key]),
				style: `width:${((r[key] / most) * 100).toFixed(3)}%;background:${r.color}`,
			}),
		),
	);

// The number of calls by duration, on a logarithmic scale.
function histogram(calls) {
	const W = 420,
		H = 90,
		N = 42,
		lo = Math.log(max(1, calls[0].to - calls[0].from)),
		hi = Math.log(max(2, quantile(calls, 1))) + 1e-9,
		bins = new Array(N).fill(0),
		at = ns => (Math.log(max(1, ns)) - lo) / max(1e-9, hi - lo);
	for (const c of calls) bins[min(N - 1, floor(at(c.to - c.from) * N))]++;
	const most = max(...bins),
		label = (x, text, anchor) =>
			svg("text", {x, y: H + 14, "text-anchor": anchor}, document.createTextNode(text));
	return svg(
		"svg",
		{
			viewBox: "0 0 " + W + " " + (H + 18),
			role: "img",
			class: "hist req-hist",
			"aria-label": words.durations,
		},
		bins.map((n, i) =>
			svg("rect", {
				x: (i * W) / N,
				y: H - (n / most) * (H - 4),
				width: W / N - 1,
				height: n ? max(1, (n / most) * (H - 4)) : 0,
				class: i / N >= at(quantile(calls, 0.95)) ? "hbar" : "req-fast",
			}),
		),
		label(0, fmtDur(calls[0].to - calls[0].from), "start"),
		label(W, fmtDur(quantile(calls, 1)), "end"),
	);
}

// One call, with its parts in order; touching parts of one cause are merged.
function lineOf(call, parts, rows, most) {
	const colors = new Map(rows.map(r => [r.text, r.color])),
		out = [],
		share = ns => (ns / most) * 100;
	for (const p of parts) {
		const color = colors.get(causeOf(p)) || palette.sleeping,
			last = out[out.length - 1];
		if (last && (last.color === color || share(p.to - last.from) < 0.25)) last.to = p.to;
		else out.push({color, from: p.from, to: p.to});
	}
	return h(
		"li",
		jumpTo(fmtDur(call.to - call.from), () =>
			goToPin(pinCall(call.thread, call.depth, call.from)),
		),
		h(
			"div.req-bar",
			out.map(p =>
				h("i", {
					style: `width:${share(p.to - p.from).toFixed(3)}%;background:${p.color}`,
				}),
			),
		),
	);
}

// The causes that make the slow calls slower, in words. fastNs, slowNs: means of all calls, not
// only of those whose causes were looked up. Causes that take less are apart: shares add up.
function answer(what, name, slow, rows, fastNs, slowNs) {
	const longer = rows.reduce((n, r) => n + max(0, r.slow - r.fast), 0),
		shorter = rows.reduce((n, r) => n + max(0, r.fast - r.slow), 0),
		most = rows.filter(r => r.slow - r.fast > longer / 10).slice(0, 3);
	return h(
		"p.req-answer",
		words.slowOnes(slow, what, code(name), fmtDur(slowNs), fmtDur(fastNs)),
		most.length > 0 && [
			words.timeOfCauses(fmtDur(longer), shorter >= 1 ? fmtDur(shorter) : null),
			most.map((r, i) => [
				i ? ", " : "",
				h("b", fmtDur(r.slow - r.fast)),
				" " + words.withShare(r.text, fmtPct(r.slow - r.fast, longer)),
			]),
			".",
		],
	);
}

// The groups of tasks with enough of them, which C has compared.
const groupsOf = () =>
	meta.tasks?.pass === passIndex && report.tasks
		? report.tasks.groups
				.map((g, i) => ({name: "tasks:" + g.loop + ":" + g.name, group: i, of: g.requests}))
				.filter(g => g.of)
		: [];

const TASK_COLORS = {
	running: "running",
	gil: "wait",
	late: "gilsleep",
	late_gil: "wait",
	waiting: "other",
	unknown: "unknown",
	others: "sleeping",
};

function tasksShow({group, of}) {
	let waits = 0;
	const rows = of.causes.map(c => ({
			text: words.taskCause(c, c.function && callPlace(c.function)),
			fast: c.fast_ns / of.fast,
			slow: c.slow_ns / of.slow,
			color:
				c.what === "waiting"
					? mix(palette.other, palette.paper, min(0.7, 0.22 * waits++))
					: palette[TASK_COLORS[c.what]],
		})),
		share = ns => ((ns / of.longest_ns) * 100).toFixed(3),
		lines = of.slowest.map(t =>
			h(
				"li",
				jumpTo(fmtDur(t.ns), () => {
					flyToSpan(t.from_ns, t.from_ns + t.ns);
					seeTasks(group);
				}),
				h(
					"div.req-bar",
					h("i", {style: `width:${share(t.ns)}%;background:${palette.other}`}),
				),
			),
		);
	$("requests-note").textContent = words.tasksExamined;
	show({
		answer: answer(
			words.tasks(of.count),
			taskName(group),
			of.slow,
			rows,
			sumOf(rows, "fast"),
			sumOf(rows, "slow"),
		),
		durations: null,
		quantiles: [of.p50_ns, of.p95_ns, of.p99_ns, of.longest_ns],
		rows,
		lines,
		note: "",
	});
}

// quantiles: p50, p95, p99 and the longest.
function show({answer, durations, quantiles, rows, lines, note}) {
	const most = rows.reduce((n, r) => n + r.slow, 0),
		list = h("ol.req-list", lines);
	rove(list, stepInList);
	fill(
		$("requests-body"),
		answer,
		h(
			"div.panels",
			h(
				"div.panel",
				h("h3", words.durations),
				durations,
				h(
					"p.hint",
					["p50", "p95", "p99"].map((q, i) => q + " " + fmtDur(quantiles[i]) + " · "),
					words.longestCall(fmtDur(quantiles[3])),
				),
				h("h3", words.fastOnAverage),
				barOf(rows, "fast", most),
				h("h3", words.slowOnAverage),
				barOf(rows, "slow", most),
				makeTable(
					[
						{
							head: words.cause,
							value: r => r.text,
							cell: r => [h("i.dot", {style: "background:" + r.color}), " " + r.text],
						},
						...["fast", "slow"].map(key =>
							tally(
								key === "fast" ? words.fastHalf : words.slowest,
								key + "_ns",
								r => r[key],
								r => fmtDur(r[key]),
							),
						),
						tally(
							words.difference,
							"difference_ns",
							r => r.slow - r.fast,
							r => (r.slow < r.fast ? "−" : "") + fmtDur(Math.abs(r.slow - r.fast)),
						),
					],
					rows,
					{caption: words.requestsCaption, hideCaption: true, sort: 3},
				),
			),
			h("div.panel", h("h3", words.theSlowest(lines.length), note && soft(note)), list),
		),
	);
}

const requestsDraw = inSteps(function* () {
	const list = yield* functionsOf(),
		groups = groupsOf(),
		chosen = [...list, ...groups].find(x => x.name === requests.name) || list[0] || groups[0];
	$("requests").hidden = !chosen;
	if (!chosen) return;
	fill(
		$("requests-of"),
		groups.map(x =>
			h(
				"option",
				{value: x.name, selected: x === chosen},
				words.tasksChoice(taskName(x.group), x.of.count),
			),
		),
		list.map(x =>
			h(
				"option",
				{value: x.name, selected: x === chosen},
				words.requestChoice(shortCall(x.name), callPlace(x.name), x.count),
			),
		),
	);
	const g = groups.find(x => x === chosen),
		f = list.find(x => x === chosen);
	if (g) tasksShow(g);
	if (!f) return;
	$("requests-note").textContent = words.readingRequests;
	const calls = yield* callsOf(f.id),
		slow = calls.slice(-max(1, Math.ceil(calls.length / 20))),
		fast = calls.slice(0, floor(calls.length / 2)),
		examined = {fast: someOf(fast), slow: someOf(slow)},
		parts = {fast: [], slow: []};
	for (const key of ["fast", "slow"])
		for (const c of examined[key]) {
			parts[key].push(chainOf(c.thread, c.from, c.to));
			yield;
		}
	const rows = causesOf(meansOf(parts.fast), meansOf(parts.slow)),
		worst = calls.slice(-SLOWEST).reverse(),
		lines = [];
	for (const c of worst) {
		lines.push(lineOf(c, chainOf(c.thread, c.from, c.to), rows, quantile(calls, 1)));
		yield;
	}
	$("requests-note").textContent =
		fast.length > EXAMINED || slow.length > EXAMINED
			? words.someExamined(
					[examined.fast.length, fast.length],
					[examined.slow.length, slow.length],
				)
			: words.allExamined;
	show({
		answer: answer(
			words.calls(calls.length),
			shortCall(f.name),
			slow.length,
			rows,
			meanOf(fast),
			meanOf(slow),
		),
		durations: histogram(calls),
		quantiles: [0.5, 0.95, 0.99, 1].map(q => quantile(calls, q)),
		rows,
		lines,
		note: words.coloursAsInTable,
	});
});

export function requestsInit() {
	let seen = false;
	const later = whenQuiet(300, () => {
		if (seen && loading.complete) requestsDraw();
	});
	const offer = () => {
		$("requests").hidden = !loading.complete || !store().calls || !!pass().locks;
		later();
	};
	new IntersectionObserver(
		list => {
			seen = list[list.length - 1].isIntersecting;
			later();
		},
		{rootMargin: "200px"},
	).observe($("requests"));
	listen($("requests-of"), "change", () => {
		requests.name = $("requests-of").value;
		requestsDraw();
		emit("link");
	});
	on("complete pass requests-read", offer);
	offer();
	on("theme", later);
}

// SPDX-License-Identifier: MIT
// The selected range: the time of its threads, the waits in it by waiter and holder, and the
// functions that held the GIL meanwhile.

import {blameTitle, holderName} from "./blame.js";
import {HANDOVER, gilKnown, gilText, nobodyText, pass, threadLabel} from "./data.js";
import {$, click, fill, h, soft, tally} from "./dom.js";
import {inSteps, on, whenQuiet} from "./events.js";
import {fmtCount, fmtDur, fmtExact, fmtPct} from "./format.js";
import {laneTotals} from "./lod.js";
import {max, min} from "./math.js";
import {doingText, holdDoing, notKnown, pinLane, releasersIn} from "./pick.js";
import {CPU_STATES, FREE_STATE, GIL_STATES, SWITCH_STATE, WAIT_STATE} from "./states.js";
import {loading, store} from "./store.js";
import {goToPin, jumpTo, makeTable, threadTag, whoColumn} from "./table.js";
import {gilOf, upper} from "./tracks.js";
import {turns} from "./turns.js";
import {flyTo, range, rowsThreads, setRange} from "./view.js";
import * as words from "./words.js";

const RANGE_NAMED = 5000; // the most holds whose function is looked up
const PAIRS_MAX = 1000; // the most pairs in the table
const STEP = 2000; // spans or holds between two interruptions

// The holds of each GIL, and the wait that each hold caused, by its index in the lane.
const rangeHolds = () =>
	(pass().gils.length ? pass().gils : [null]).map((_, gil) => {
		const {lane, threads} = turns(gil);
		return {start: lane.sections[0].start, threads, caused: new Float64Array(threads.length)};
	});

// Divide each wait of the threads shown among the holds, and add it to their sums. The rules are
// those of the document's blame, except that a wait for an unknown holder counts as one for nobody.
// Appends {waiter, holder, ns} to out.
function* rangeBlame(part, holds, out) {
	const nobody = pass().threads.length,
		sum = new Float64Array(nobody + 1);
	let looked = 0; // holds since the last interruption
	const add = (holder, ns) => {
		looked++;
		if (ns > 0) sum[holder === HANDOVER ? nobody : holder] += ns;
	};
	for (const waiter of rowsThreads().filter(i => store().gil[i])) {
		for (const s of store().gil[waiter].sections) {
			if (s.t1 <= part.from || s.t0 >= part.to) continue;
			let i = max(0, upper(s.start, 0, s.n, part.from) - 1);
			for (; i < s.n && s.start[i] < part.to; i++) {
				const from = max(s.start[i], part.from),
					to = min(s.start[i + 1], part.to);
				if (to > from) chargeWait(waiter, s, i, from, to, holds, add);
				if (++looked < STEP) continue;
				looked = 0;
				yield;
			}
		}
		sum.forEach((ns, holder) => {
			if (ns > 0) out.push({waiter, holder: holder === nobody ? HANDOVER : holder, ns});
		});
		sum.fill(0);
		yield;
	}
}

function chargeWait(waiter, s, i, from, to, holds, add) {
	if (pass().locks && [WAIT_STATE, SWITCH_STATE].includes(s.state[i])) {
		const who = releasersIn(from, to, waiter);
		for (const w of who.list) add(w.thread, w.ns);
		add(HANDOVER, who.nobody);
	} else if (s.state[i] === WAIT_STATE) {
		const {start, threads, caused} = holds[max(0, gilOf(s, i))];
		let left = to - from;
		let k = max(0, upper(start, 0, threads.length, from) - 1);
		for (; k < threads.length && start[k] < to; k++) {
			const ns = min(to, start[k + 1]) - max(from, start[k]);
			if (ns <= 0 || threads[k] < 0 || threads[k] === waiter) continue;
			caused[k] += ns;
			left -= ns;
			add(threads[k], ns);
		}
		add(HANDOVER, left);
	}
}

// The least of the RANGE_NAMED largest waits that holds caused.
function* leastNamed(holds) {
	const kept = new Float64Array(2 * RANGE_NAMED);
	let n = 0,
		least = 0;
	for (const {caused} of holds)
		for (let k = 0; k < caused.length; k++) {
			if (k % STEP === 0) yield;
			if (!(caused[k] > least)) continue;
			kept[n++] = caused[k];
			if (n < kept.length) continue;
			kept.sort().copyWithin(0, RANGE_NAMED);
			n = RANGE_NAMED;
			least = kept[0];
		}
	return kept.subarray(0, n).sort()[max(0, n - RANGE_NAMED)] || 0;
}

// The n rows with the largest ns; of equal rows, the first ones.
function largest(rows, n) {
	if (rows.length <= n) return rows;
	const sorted = new Float64Array(rows.length);
	rows.forEach((r, i) => {
		sorted[i] = r.ns;
	});
	const least = sorted.sort()[rows.length - n],
		more = rows.length - upper(sorted, 0, rows.length, least);
	let equal = n - more;
	return rows.filter(r => r.ns > least || (r.ns === least && equal-- > 0));
}

// The functions of the holds that others waited for.
// Appends {what, threads, caused, held, holds, longest} to out.
function* rangeFunctions(part, holds, out) {
	const by = new Map();
	const least = yield* leastNamed(holds);
	for (const {start, threads, caused} of holds)
		for (let k = 0; k < threads.length; k++) {
			if (k % STEP === 0) yield;
			if (!(caused[k] > 0)) continue;
			const hold = {thread: threads[k], from: start[k], to: start[k + 1]};
			const what = caused[k] < least ? null : whatRan(hold);
			if (what) yield;
			addFunction(by, part, hold, what, caused[k]);
		}
	out.push(...by.values());
}

function whatRan(hold) {
	const pin = pinLane("gil", hold.thread, hold.from);
	return holdDoing(hold.thread, hold.from, hold.to, pin ? pin.stack : 0);
}

function addFunction(by, part, hold, what, caused) {
	const key = what ? what.name + "\0" + what.place : "";
	let row = by.get(key);
	if (!row)
		by.set(
			key,
			(row = {what, threads: new Set(), caused: 0, held: 0, holds: 0, longest: hold}),
		);
	row.threads.add(hold.thread);
	row.caused += caused;
	row.held += min(hold.to, part.to) - max(hold.from, part.from);
	row.holds++;
	if (hold.to - hold.from > row.longest.to - row.longest.from) row.longest = hold;
}

// The wait that the part's holds caused: {blame, functions}, as above.
export function* partCosts(part) {
	const holds = pass().locks ? [] : rangeHolds(),
		blame = [],
		functions = [];
	yield* rangeBlame(part, holds, blame);
	if (blame.length) yield* rangeFunctions(part, holds, functions);
	return {blame, functions};
}

function rangeThreadsTable(part) {
	const d = part.to - part.from,
		known = gilKnown(),
		st = store();
	const sumOf = (lanes, i, states) =>
		lanes[i] ? laneTotals(lanes[i], part.from, part.to) : new Float64Array(states);
	const rows = rowsThreads()
		.map(i => ({i, gil: sumOf(st.gil, i, GIL_STATES), cpu: sumOf(st.cpu, i, CPU_STATES)}))
		.filter(r => (known ? r.gil : r.cpu).some(x => x > 0));
	const col = (head, csv, f) =>
		rows.some(f) && tally(head, csv, f, r => words.withShare(fmtDur(f(r)), fmtPct(f(r), d)));
	const columns = [
		whoColumn(r => r.i),
		...(known
			? [
					col(gilText(words.rangeHolds), "hold_ns", r => r.gil[2]),
					col(gilText(words.rangeWaits), "wait_ns", r => r.gil[3] + r.gil[4]),
					col(words.rangeFreeWait, "free_wait_ns", r => r.gil[FREE_STATE]),
					col(gilText(words.rangeNone), "no_gil_ns", r => r.gil[1]),
					col(words.unknownHead, "unknown_ns", r => r.gil[0]),
				]
			: []),
		...(st.cpu.length
			? pass()
					.state_columns.slice(0, known ? 2 : 6)
					.map((c, k) => col(c.head, c.key, r => r.cpu[(k + 1) % 6]))
			: []),
	].filter(Boolean);
	return makeTable(columns, rows, {
		caption: words.timePerThread,
		sort: max(
			1,
			columns.findIndex(c => c.csv === "wait_ns"),
		),
		limit: 12,
	});
}

function rangeBlameTable(all) {
	const waited = new Map(),
		rows = largest(all, PAIRS_MAX);
	for (const r of all) waited.set(r.waiter, (waited.get(r.waiter) || 0) + r.ns);
	return makeTable(
		[
			{
				head: gilText(words.pairHolder),
				csv: "holder",
				value: r => holderName(r.holder),
				cell: r => (r.holder === HANDOVER ? soft(nobodyText()) : threadTag(r.holder)),
			},
			whoColumn(r => r.waiter, gilText(words.pairWaiter), "waiter"),
			tally(
				words.forTime,
				"wait_ns",
				r => r.ns,
				r => fmtDur(r.ns),
			),
			tally(
				words.ofItsWait,
				"share",
				r => r.ns / waited.get(r.waiter),
				r => fmtPct(r.ns, waited.get(r.waiter)),
			),
		],
		rows,
		{
			caption: blameTitle(),
			note: rows.length < all.length && words.largestPairs(PAIRS_MAX, all.length),
			sort: 2,
			limit: 8,
		},
	);
}

function rangeFunctionsTable(rows) {
	const jump = x =>
		jumpTo(fmtDur(x.to - x.from), () => goToPin(pinLane("gil", x.thread, x.from)));
	return makeTable(
		[
			{
				head: words.heldByHead,
				csv: "function",
				value: r => (r.what ? r.what.name : "?"),
				cell: r => (r.what ? doingText(r.what) : notKnown()),
			},
			{
				head: words.thread,
				value: r => [...r.threads].map(threadLabel).join(" "),
				cell: r =>
					r.threads.size > 1
						? words.threads(r.threads.size)
						: threadTag(r.longest.thread),
			},
			tally(
				words.waitCaused,
				"wait_caused_ns",
				r => r.caused,
				r => fmtDur(r.caused),
			),
			tally(
				words.holds,
				"holds",
				r => r.holds,
				r => fmtCount(r.holds),
			),
			tally(
				words.held,
				"hold_ns",
				r => r.held,
				r => fmtDur(r.held),
			),
			tally(
				words.longest,
				"longest_hold_ns",
				r => r.longest.to - r.longest.from,
				r => jump(r.longest),
			),
		],
		rows,
		{caption: words.functionsHeld, sort: 2, limit: 8},
	);
}

const rangeFill = inSteps(function* (part) {
	const box = h("div.panels", gilKnown() ? h("p.hint", "…") : null);
	fill($("range-h"), words.rangeTitle(fmtDur(part.to - part.from)));
	const hint = words.rangeHint(
		fmtExact(part.from),
		fmtExact(part.to),
		fmtExact(part.to - part.from),
	);
	fill($("range-body"), h("p.hint", hint));
	yield;
	fill($("range-body"), h("p.hint", hint), rangeThreadsTable(part), box);
	if (!gilKnown() || !loading.complete) return;
	const {blame, functions} = yield* partCosts(part);
	const tables = [blame.length ? rangeBlameTable(blame) : null];
	yield;
	if (functions.length) tables.push(rangeFunctionsTable(functions));
	yield;
	fill(box, tables);
});

function rangeDraw() {
	$("range").hidden = !range;
	if (range) rangeFill(range);
}

export function rangeInit() {
	click("range-zoom", () => range && flyTo(range.from, range.to));
	click("range-clear", () => setRange(null));
	on("range pass filter complete theme", whenQuiet(60, rangeDraw));
}

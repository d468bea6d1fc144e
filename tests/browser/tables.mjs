// SPDX-License-Identifier: MIT
// Every table of the page, as a reader sees it and as the buttons copy it, against the JSON
// document.
import {is, ok, quiet} from "./lib.mjs";

const UNITS = {ns: 1, µs: 1e3, ms: 1e6, s: 1e9, min: 60e9};

// "812 ms (3.1 %)" -> 812e6; NaN if the text is not a duration.
export function nsOf(text) {
	const m = /^([\d.]+) (ns|µs|ms|s|min)( |$)/.exec(text.replace(/\u00a0/g, " "));
	return m ? +m[1] * UNITS[m[2]] : text === "–" ? 0 : NaN;
}

function csvParse(text) {
	const rows = [[]];
	let field = "",
		quoted = false;
	for (let i = 0; i < text.length; i++) {
		const c = text[i];
		if (quoted ? c === '"' && text[i + 1] === '"' : false) field += text[++i];
		else if (c === '"') quoted = !quoted;
		else if (!quoted && (c === "," || c === "\n")) {
			rows[rows.length - 1].push(field);
			field = "";
			if (c === "\n") rows.push([]);
		} else field += c;
	}
	return rows.slice(0, -1);
}

// The tables of a section: {caption, head, rows: copied, by column; shown: cells, by row}.
export async function tables(page, section) {
	const found = await page.evaluate(async section => {
		Object.defineProperty(navigator, "clipboard", {
			configurable: true,
			value: {
				writeText: async text => {
					window.copied = text;
				},
			},
		});
		const out = [];
		if (document.getElementById(section).hidden) return out;
		for (const table of document.querySelectorAll("#" + section + " table")) {
			const buttons = [...table.parentNode.querySelectorAll(".under button")];
			const more = buttons.find(b => !b.hidden && /^Show all/.test(b.textContent));
			if (more) more.click();
			buttons.find(b => b.textContent === "Copy as CSV").click();
			const csv = window.copied;
			buttons.find(b => b.textContent === "as TSV").click();
			out.push({
				caption: table.caption.textContent,
				csv,
				tsv: window.copied,
				shown: [...table.tBodies[0].rows].map(tr => [...tr.cells].map(c => c.textContent)),
			});
		}
		return out;
	}, section);
	return found.map(t => {
		const [head, ...rows] = csvParse(t.csv);
		return {
			...t,
			head,
			rows: rows.map(r =>
				Object.fromEntries(r.map((v, i) => [head[i], /^-?[\d.]+$/.test(v) ? +v : v])),
			),
		};
	});
}

// The copied numbers agree with those shown, to the digits shown.
function shownAsCopied(name, t) {
	const bad = [];
	t.head.forEach((key, column) => {
		const shown = t.shown.map(r => nsOf(r[column] || "")).sort((a, b) => a - b),
			copied = t.rows.map(r => r[key]).sort((a, b) => a - b);
		if (/_ns$/.test(key) && key !== "at_ns" && !shown.some(Number.isNaN))
			shown.forEach((ns, i) => {
				if (Math.abs(ns - copied[i]) > copied[i] * 0.0051 + 0.5)
					bad.push([key, ns, copied[i]]);
			});
	});
	is([t.shown.length, bad], [t.rows.length, []], name + ": " + t.caption + ": shown as copied");
	is(t.tsv.split("\n")[0].split("\t"), t.head, name + ": " + t.caption + ": as TSV, too");
}

const byText = list => list.map(r => r.join(" | ")).sort();

// Sums of ns by key, as sorted text.
function sums(rows, key, ns) {
	const by = new Map();
	for (const r of rows) if (ns(r) > 0) by.set(key(r), (by.get(key(r)) || 0) + ns(r));
	return byText([...by]);
}

export async function agreeTables(page, report, name) {
	const all = {};
	for (const id of ["threads", "blame", "hogs", "waits", "holds", "starved"]) {
		all[id] = await tables(page, id);
		for (const t of all[id].filter(() => id !== "blame")) shownAsCopied(name, t);
	}
	const {tids, locks} = await page.evaluate(() => ({
		tids: gt.pass().threads.map(t => t.tid),
		locks: !!gt.pass().locks,
	}));
	const threads = all.threads[0],
		label = new Map(tids.map((tid, i) => [tid, threads.rows[i].Thread])),
		of = new Map(report.threads.map(t => [t.tid, t]));
	const keys = locks
		? ["unknown_ns", "total_ns"]
		: [
				"hold_ns",
				"wait_ns",
				"free_wait_ns",
				"no_gil_ns",
				"longest_wait_ns",
				"longest_hold_ns",
				"total_ns",
			];
	is(
		threads.rows.map(r => keys.map(k => r[k] ?? 0)),
		tids.map(tid => keys.map(k => of.get(tid)[k])),
		name + ": threads are the document's",
	);

	const blame = locks ? report.lock_blame : report.blame,
		who = tid => label.get(tid) || "nobody";
	const by = b => (locks ? b.released_by_tid : b.holder_tid);
	const want = sums(
		blame,
		b => [who(by(b)), who(b.waiter_tid)].join(" > "),
		b => b.wait_ns,
	);
	const nobody = text => (/^cannot be told$|^not seen$/.test(text) ? "nobody" : text);
	is(
		sums(
			(all.blame[0] || {rows: []}).rows,
			b => [nobody(b.holder), b.waiter].join(" > "),
			b => b.wait_ns,
		),
		want,
		name + ": who kept whom waiting, too",
	);

	const functions = all.hogs.find(t => t.head.includes("wait_caused_ns")),
		rows = report.hogs.length ? report.hogs : report.functions.filter(f => f.function);
	const key = r => r.function || r.native || "?";
	for (const ns of functions ? ["wait_caused_ns", "hold_ns"] : [])
		is(
			sums(functions.rows, key, r => r[ns]),
			sums(rows, key, r => r[ns]),
			name + ": functions, " + ns,
		);
	const blocked = all.hogs.find(t => t.head.includes("count"));
	is(
		!!blocked,
		(report.blocked || []).length > 0,
		name + ": where threads are blocked is shown if it is known",
	);
	if (blocked)
		is(
			byText(blocked.rows.map(r => [r.function, r.count, r.total_ns, r.longest_ns])),
			byText(report.blocked.map(r => [r.function || "?", r.count, r.total_ns, r.longest_ns])),
			name + ": as in the document",
		);
	for (const t of all.starved)
		is(
			sums(
				t.rows,
				r => r.thread + " > " + r.by,
				r => r.runnable_ns,
			),
			sums(
				report.starvation,
				r =>
					who(r.tid) +
					" > " +
					(label.get(r.by_tid) || r.by_name || "nobody, or not known"),
				r => r.runnable_ns,
			),
			name + ": who had the CPUs",
		);
	if (!locks)
		for (const [id, ns, longest] of [
			["waits", "wait_ns", "longest_wait_ns"],
			["holds", "hold_ns", "longest_hold_ns"],
		])
			is(
				Math.max(0, ...all[id].flatMap(t => t.rows.map(r => r[ns]))),
				Math.max(...report.threads.map(t => t[longest])),
				name + ": the longest of " + id,
			);

	// If the whole recording is selected, its spans give the same numbers.
	await page.evaluate(() => gt.setRange(0, gt.pass().dur_ns));
	await quiet(page);
	const range = await tables(page, "range");
	range.forEach(t => shownAsCopied(name + ", selected", t));
	const pairs = range.find(t => t.head[0] === "holder");
	is(
		sums(
			pairs ? pairs.rows : [],
			r => r.holder + " > " + r.waiter,
			r => r.wait_ns,
		),
		want,
		name + ": the range of all has the blame of all",
	);
	if (!locks)
		is(
			byText(range[0].rows.map(r => [r.Thread, r.hold_ns, r.wait_ns ?? 0])),
			byText(
				report.threads.filter(t => t.total_ns).map(t => [who(t.tid), t.hold_ns, t.wait_ns]),
			),
			name + ": and the threads' times",
		);
	const unsure = await page.evaluate(() => gt.pass().blame.some(b => b.holder === -1));
	ok(
		!unsure || !/hand-off/.test(await page.textContent("#range-body")),
		name + ": what cannot be told is not called a handover",
	);
	await page.evaluate(() => gt.setRange(null));
	ok(range.length > 0, name + ": a range has its tables");
	return range;
}

// The tables for readers without JavaScript, as C wrote them.
export async function agreeStatic(page, report, name) {
	const found = await page.evaluate(() =>
		[...document.querySelectorAll("#static table")].map(t => ({
			caption: t.caption.textContent,
			locks: [...t.tHead.rows[0].cells].some(c => /^lock wait/i.test(c.textContent)),
			rows: [...t.tBodies[0].rows].map(tr => [...tr.cells].map(c => c.textContent)),
		})),
	);
	const who = new Map(
			report.threads.map(t => [t.tid, t.name + " " + t.tid + (t.main ? "*" : "")]),
		),
		ms = ns => ns / 1e6,
		share = (part, whole) => (whole ? (part / whole) * 100 : 0);
	const locks = found.some(t => t.caption.startsWith("Threads,") && t.locks);
	const inLine = report.starvation.reduce((n, r) => n + r.runnable_ns, 0);
	const want = [
		[
			"Threads,",
			1,
			report.threads.map(t => {
				return [
					who.get(t.tid),
					ms(t.total_ns),
					share(t.no_gil_ns - (t.lock_wait_ns || 0), t.total_ns),
					...(locks ? [share(t.lock_wait_ns, t.total_ns)] : []),
					share(t.hold_ns, t.total_ns),
					share(t.wait_ns, t.total_ns),
					share(t.free_wait_ns, t.total_ns),
					share(t.unknown_ns, t.total_ns),
					ms(t.longest_wait_ns),
					ms(t.longest_hold_ns),
					...(report.caveats.some(c => c.code === "probe-cost")
						? [share(t.probe_cost_ns, t.total_ns)]
						: []),
				];
			}),
		],
		[
			"States of the threads",
			1,
			report.threads.map(({tid, total_ns, states: s}) => [
				who.get(tid),
				ms(total_ns),
				...[
					"running_ns",
					"runnable_ns",
					"sleeping_ns",
					"uninterruptible_ns",
					"gil_sleep_ns",
				].map(k => share(s[k], total_ns)),
				share(s.unknown_ns, total_ns),
			]),
		],
		[
			"GIL waits",
			2,
			report.blame.map(b => [
				who.get(b.waiter_tid),
				who.get(b.holder_tid) || "nobody (hand-off)",
				ms(b.wait_ns),
				ms(b.longest_ns),
			]),
		],
		[
			"Time spent runnable",
			2,
			report.starvation
				.filter(r => r.by_tid || r.by_name)
				.map(r => [
					who.get(r.tid),
					who.get(r.by_tid) || r.by_name,
					ms(r.runnable_ns),
					share(r.runnable_ns, inLine),
				]),
		],
	];
	for (const [caption, texts, rows] of want) {
		const t = found.find(x => x.caption.startsWith(caption)),
			key = r => r.slice(0, texts).join(" > "),
			said = new Map(
				(t ? t.rows : [])
					.filter(r => !/^(nobody|cannot be told|unknown)$/.test(r[1]))
					.map(r => [key(r), r]),
			);
		const bad = rows.filter(r => {
			const s = said.get(key(r));
			return (
				!s ||
				r
					.slice(texts)
					.some(
						(x, i) =>
							Math.abs(x - s[texts + i].replace(/,/g, "")) >
							(/\.\d\d\d$/.test(s[texts + i]) ? 0.000501 : 0.0501),
					)
			);
		});
		is(
			[bad, said.size],
			[[], rows.length],
			name + ": without JavaScript: " + (t ? t.caption : caption),
		);
	}
}

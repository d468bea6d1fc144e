// SPDX-License-Identifier: MIT
// Writes a page in the format of share/report/FORMAT.md from plain objects, so that tests can show
// the page what no recording at hand contains.
import {deflateRawSync} from "node:zlib";
import {readFileSync} from "node:fs";

function varint(out, v) {
	while (v >= 128) {
		out.push((v % 128) + 128);
		v = Math.floor(v / 128);
	}
	out.push(v);
}

function sparse(out, pairs) {
	varint(out, pairs.length);
	let last = 0;
	for (const [i] of pairs) {
		varint(out, i - last);
		last = i;
	}
	for (const [, v] of pairs) varint(out, v);
}

const changes = (list, value, first) => {
	const out = [];
	let last = first;
	list.forEach((x, i) => {
		const v = value(x);
		if (v !== undefined && v !== last) out.push([i, (last = v)]);
	});
	return out;
};
const some = (list, key) => list.map((x, i) => [i, key(x)]).filter(([, v]) => v);

const N = 65536;
const cut = list =>
	Array.from({length: Math.ceil(list.length / N)}, (_, i) => list.slice(i * N, i * N + N));

// spans: [{from, to, state, gil, flags, stack, cpu, waker}], contiguous
function lane(kind, pass, thread, spans, add) {
	for (const part of cut(spans)) {
		const out = [];
		for (const s of part) varint(out, (s.to - s.from) * 8 + s.state);
		if (kind === "gil") {
			sparse(
				out,
				changes(part, s => (s.state >= 2 ? (s.gil ?? 0) + 1 : undefined), 1),
			);
			sparse(
				out,
				some(part, s => s.flags),
			);
		} else {
			sparse(
				out,
				changes(
					part,
					s => (s.state === 1 && s.cpu !== undefined ? s.cpu + 1 : undefined),
					0,
				),
			);
			sparse(
				out,
				some(part, s => (s.waker === undefined ? 0 : s.waker + 1)),
			);
		}
		sparse(
			out,
			some(part, s => s.stack),
		);
		add({kind, pass, thread, start: part[0].from, n: part.length}, out);
	}
}

function calls(pass, thread, depth, list, add) {
	for (const part of cut(list)) {
		const out = [];
		let end = 0;
		for (const c of part) {
			varint(out, c.from - end);
			end = c.to;
		}
		for (const c of part) varint(out, c.to - c.from);
		for (const c of part) varint(out, c.name);
		sparse(
			out,
			some(part, c => c.flags),
		);
		add({kind: "slices", pass, thread, depth, n: part.length}, out);
	}
}

function names(pass, table, list, add) {
	const out = [];
	for (const text of list) {
		const bytes = Buffer.isBuffer(text) ? text : Buffer.from(text);
		varint(out, bytes.length);
		for (const b of bytes) out.push(b);
	}
	add({kind: "names", pass, table, start: 0, n: list.length}, out);
}

function blocks(passes) {
	const all = [];
	let raw = [],
		list = [];
	const flush = () => {
		if (list.length)
			all.push(
				`<script type="text/plain">${deflateRawSync(Buffer.concat(raw)).toString("base64")}</script>\n` +
					`<script>gt.push(${JSON.stringify(list)})</script>\n`,
			);
		raw = [];
		list = [];
	};
	let size = 0;
	const add = (head, bytes) => {
		list.push({...head, bytes: bytes.length});
		raw.push(Buffer.from(bytes));
		if ((size += bytes.length) > 1 << 20) {
			flush();
			size = 0;
		}
	};
	passes.forEach((p, i) => {
		p.lanes.forEach((l, t) => {
			if (l.gil) lane("gil", i, t, l.gil, add);
		});
		p.lanes.forEach((l, t) => {
			if (l.cpu) lane("cpu", i, t, l.cpu, add);
		});
		if (p.names) names(i, "slices", p.names, add);
		p.lanes.forEach((l, t) => (l.calls || []).forEach((row, d) => calls(i, t, d, row, add)));
		if (p.stackNames) {
			names(i, "stacks", p.stackNames, add);
			const out = [];
			for (const key of ["parent", "name", "module", "line", "flags"])
				p.stacks.forEach((s, k) =>
					varint(out, key === "parent" ? (s.parent ? k + 1 - s.parent : 0) : s[key] || 0),
				);
			add({kind: "stacks", pass: i, start: 1, n: p.stacks.length}, out);
		}
		p.lanes.forEach((l, t) =>
			(l.counters || []).forEach((samples, c) => {
				const out = [];
				samples.forEach((s, k) => varint(out, s.at - (k ? samples[k - 1].at : 0)));
				samples.forEach(s => varint(out, s.value));
				add({kind: "counter", pass: i, thread: t, counter: c, n: samples.length}, out);
			}),
		);
		if (p.lost) {
			const out = [];
			p.lost.forEach((s, k) => varint(out, s.from - (k ? p.lost[k - 1].from : 0)));
			for (const f of [s => s.to - s.from, s => s.count, s => s.cpu + 1])
				p.lost.forEach(s => varint(out, f(s)));
			add({kind: "lost", pass: i, n: p.lost.length}, out);
		}
	});
	flush();
	return all.join("");
}

const SIX = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function overview(p, buckets) {
	const threads = [];
	p.lanes.forEach((l, thread) => {
		if (!l.gil) return;
		const sum = {
			1: new Float64Array(buckets),
			2: new Float64Array(buckets),
			3: new Float64Array(buckets),
			5: new Float64Array(buckets),
		};
		const width = p.dur / buckets;
		for (const s of l.gil) {
			const k = s.state === 4 ? 3 : s.state;
			if (!sum[k]) continue;
			for (let b = Math.floor(s.from / width); b < buckets && b * width < s.to; b++)
				sum[k][b] += Math.max(
					0,
					Math.min(s.to, (b + 1) * width) - Math.max(s.from, b * width),
				);
		}
		const text = a =>
			Array.from(
				a,
				x => SIX[x > 0 ? Math.max(1, Math.min(63, Math.round((x / width) * 63))) : 0],
			).join("");
		threads.push({
			thread,
			hold: text(sum[2]),
			wait: text(sum[3]),
			free_wait: text(sum[5]),
			no: text(sum[1]),
		});
	});
	return {pass: 0, buckets, threads: threads.slice(0, 64)};
}

const json = o =>
	JSON.stringify(o).replace(
		/[<>&\u2028\u2029]/g,
		c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"),
	);
export const html = s => String(s).replace(/[&<>"']/g, c => "&#" + c.charCodeAt(0) + ";");

function threadNumbers(t, l, p) {
	const gil = l.gil || [];
	const sum = state => gil.reduce((n, s) => n + (s.state === state ? s.to - s.from : 0), 0);
	const longest = state =>
		gil.reduce(
			(best, s) => (s.state === state && s.to - s.from > best.to - best.from ? s : best),
			{from: 0, to: 0},
		);
	const cpu = state =>
		(l.cpu || []).reduce((n, s) => n + (s.state === state ? s.to - s.from : 0), 0);
	const from = gil.length ? gil[0].from : 0,
		to = gil.length ? gil[gil.length - 1].to : p.dur;
	const hold = longest(2),
		wait = longest(3);
	return {
		pid: 100,
		main: false,
		...t,
		total_ns: to - from,
		hold_ns: sum(2),
		wait_ns: sum(3) + sum(4),
		switch_wait_ns: sum(4),
		free_wait_ns: sum(5),
		no_gil_ns: sum(1),
		unknown_ns: sum(0),
		holds: gil.filter(s => s.state === 2).length,
		waits: gil.filter(s => s.state === 3).length,
		longest_hold_ns: hold.to - hold.from,
		longest_wait_ns: wait.to - wait.from,
		states: {
			running_ns: cpu(1),
			runnable_ns: cpu(2),
			sleeping_ns: cpu(3),
			uninterruptible_ns: cpu(4),
			gil_sleep_ns: cpu(5),
			unknown_ns: cpu(0),
		},
		from_ns: from,
		to_ns: to,
		longest_hold_at_ns: hold.from,
		longest_wait_at_ns: wait.from,
	};
}

// Each wait divided among the holds of the same GIL; what is left is the handover.
function blameOf(p) {
	const out = new Map();
	const add = (waiter, holder, ns, at) => {
		if (ns <= 0) return;
		const key = waiter + ":" + holder,
			b = out.get(key) || {waiter, holder, wait_ns: 0, longest_ns: 0, longest_at_ns: 0};
		b.wait_ns += ns;
		if (ns > b.longest_ns) Object.assign(b, {longest_ns: ns, longest_at_ns: at});
		out.set(key, b);
	};
	const holds = [];
	p.lanes.forEach((l, t) =>
		(l.gil || []).forEach(s => {
			if (s.state === 2) holds.push({...s, t});
		}),
	);
	holds.sort((a, b) => a.from - b.from);
	p.lanes.forEach((l, waiter) =>
		(l.gil || []).forEach(s => {
			if (s.state !== 3 && s.state !== 4) return;
			let left = s.to - s.from,
				lo = 0,
				hi = holds.length;
			while (lo < hi) {
				const mid = (lo + hi) >> 1;
				if (holds[mid].to <= s.from) lo = mid + 1;
				else hi = mid;
			}
			for (let i = lo; i < holds.length && holds[i].from < s.to; i++) {
				const h = holds[i];
				if ((h.gil ?? 0) !== (s.gil ?? 0) || h.t === waiter) continue;
				const ns = Math.max(0, Math.min(s.to, h.to) - Math.max(s.from, h.from));
				left -= ns;
				add(waiter, h.t, ns, Math.max(s.from, h.from));
			}
			add(waiter, null, left, s.from);
		}),
	);
	return [...out.values()];
}

// The columns of the tables of threads, as giltracer/report/threads.c has them.
const column = ([key, head, minus], longest) => ({
	key,
	minus: minus || null,
	longest,
	head,
	help: head,
});
const columnsOf = threads => [
	...[
		["no_gil_ns", "No GIL", "lock_wait_ns"],
		["hold_ns", "Has GIL"],
		["wait_ns", "Waits"],
		["free_wait_ns", "Free wait"],
		["unknown_ns", "Unknown", "suspended_ns"],
	]
		.filter(([key], i) => i < 3 || threads.some(t => t[key]))
		.map(c => column(c, false)),
	column(["longest_wait_ns", "Longest wait"], true),
	column(["longest_hold_ns", "Longest hold"], true),
];
const STATE_COLUMNS = [
	["running_ns", "On CPU"],
	["runnable_ns", "Runnable"],
	["sleeping_ns", "Asleep"],
	["uninterruptible_ns", "Uninterr."],
	["gil_sleep_ns", "GIL sleep"],
	["unknown_ns", "Unknown", "suspended_ns"],
].map(c => column(c, false));

// As giltracer/report/html/html.c writes them.
const findingsHtml = findings =>
	findings.length
		? `<ol class="findings">` +
			findings
				.map(
					f =>
						`<li data-kind="${f.kind}"><h3>${html(f.title)}</h3><p class="cost">${(f.cost_ns / 1e6).toFixed(1)} ms (${f.percent.toFixed(1)} %)</p><p class="text">${html(f.text)}</p>` +
						(f.advice
							? `<p class="advice"><b>What helps: </b>${html(f.advice)}</p>`
							: "") +
						"</li>",
				)
				.join("") +
			"</ol>"
		: "";

// A finding for the hold of each thread that made the others wait longest.
function findingsOf(pass) {
	const waits = (hold, except) =>
		pass.lanes.reduce(
			(sum, lane, i) =>
				sum +
				(i === except ? [] : lane.gil || []).reduce(
					(n, s) =>
						s.state === 3 && (s.gil ?? 0) === (hold.gil ?? 0)
							? n + Math.max(0, Math.min(s.to, hold.to) - Math.max(s.from, hold.from))
							: n,
					0,
				),
			0,
		);
	return pass.lanes
		.flatMap((lane, i) => {
			const [worst] = (lane.gil || [])
				.filter(s => s.state === 2 && s.to - s.from >= 1e5)
				.map(s => ({
					tid: pass.threads[i].tid,
					from_ns: s.from,
					to_ns: s.to,
					cost_ns: waits(s, i),
				}))
				.sort((a, b) => b.cost_ns - a.cost_ns);
			return worst && worst.cost_ns
				? [
						{
							kind: "thread",
							title: "Thread " + pass.threads[i].name + " holds the GIL",
							cost_ns: worst.cost_ns,
							percent: Math.min(100, (worst.cost_ns / pass.dur) * 100),
							certainty: "exact",
							text: "It was held there.",
							advice: "Hold it for a shorter time.",
							places: [worst],
						},
					]
				: [];
		})
		.sort((a, b) => b.cost_ns - a.cost_ns)
		.slice(0, 3);
}

/*
 * page: {title, verdict (HTML), command, passes: [{name, dur, threads: [{tid, name, main}], lanes: [{gil, cpu,
 * calls: [row of {from, to, name}], counters}], names, stackNames, stacks, lost, gils}], report (merged in), tasks (of meta)}
 */
export function makePage(template, page) {
	const passes = page.passes.map(p => {
		const threads = p.threads.map((t, i) => threadNumbers(t, p.lanes[i], p));
		const held = threads.reduce((n, t) => n + t.hold_ns, 0);
		return {
			name: p.name || "gil",
			start_ns: "18014398509481984123",
			dur_ns: p.dur,
			exit_status: 0,
			wall_ns: p.dur,
			events: p.lanes.reduce((n, l) => n + (l.gil || []).length, 0),
			lost: 0,
			gil_events: p.gilEvents ?? 1,
			slices: p.lanes.reduce((n, l) => n + (l.calls || []).flat().length, 0),
			slices_note: p.slicesNote || "",
			counters: p.counters || [],
			columns: columnsOf(threads),
			state_columns: STATE_COLUMNS,
			threads,
			blame: p.crowdBlame || blameOf(p),
			caused: p.caused,
			gils: p.gils || [
				{
					pid: 100,
					address: "0x7f0000001000",
					from_ns: 0,
					to_ns: p.dur,
					held_ns: held,
					wanted_ns: 0,
					handover_ns: 0,
				},
			],
		};
	});
	const main = passes[page.main ?? 0];
	const report = {
		schema: 1,
		giltracer: "0.1.0",
		python: {
			executable: "/usr/bin/python3",
			version: "3.12.1",
			implementation: "cpython",
			build_id: "00",
			free_threaded: false,
			gil_functions: [],
		},
		passes: passes.map(({name, exit_status, wall_ns, events}) => ({
			name,
			exit_status,
			wall_ns,
			events,
			lost: 0,
			releases_probed: 0,
			releases_inferred: 0,
		})),
		threads: main.threads,
		gils: main.gils,
		blame: main.blame.map(b => ({
			waiter_tid: main.threads[b.waiter].tid,
			holder_tid: b.holder === null ? null : (main.threads[b.holder]?.tid ?? 0),
			wait_ns: b.wait_ns,
		})),
		caveats: [],
		...page.report,
	};
	report.findings ??= findingsOf(page.passes[page.main ?? 0]);
	const meta = {
		format: 1,
		command: page.command || ["hog.py"],
		created: "2026-11-20T08:00:00Z",
		host: "Linux x86_64",
		cpus: 2,
		state_detect: page.passes.some(p => p.lanes.some(l => l.cpu)),
		gil_detect: true,
		one_run: false,
		main_pass: page.main ?? 0,
		switch_interval_ns: 5000000,
		wait_mark_ns: 1000000,
		crowds_from: 12,
		library_marks: ["/site-packages/", "/dist-packages/", "/lib/python", "<frozen "],
		crowd_least: 4,
		nearly_all_percent: 95,
		notes: [],
		passes,
		tasks: page.tasks,
		source: page.source,
		without_gil: page.withoutGil,
	};
	const fill = {
		title: html(page.title || "hog.py · giltracer"),
		verdict:
			(page.verdict ||
				`<p class="headline" data-kind="gil-bound">The GIL limits this program.</p>`) +
			findingsHtml(report.findings),
		tables:
			`<table><caption>Threads</caption><thead><tr><th scope="col">Thread</th><th scope="col">total ms</th></tr></thead><tbody>` +
			main.threads
				.map(
					t =>
						`<tr><th scope="row">${html(t.name)}</th><td>${(t.total_ns / 1e6).toFixed(2)}</td></tr>`,
				)
				.join("") +
			"</tbody></table>",
		report: json(report),
		meta: json(meta),
		overview: json(overview(page.passes[0], 512)),
		blocks: blocks(page.passes),
	};
	return readFileSync(template, "utf8").replace(/<!--gt:(\w+)-->/g, (_, key) => fill[key]);
}

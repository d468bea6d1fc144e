// SPDX-License-Identifier: MIT
// Synthetic recordings of programs that never ran. They are deterministic.

export function random(seed) {
	return () => {
		seed = (seed + 0x6d2b79f5) | 0;
		let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
	};
}

/*
 * A GIL and threads that want it in turn. work(thread, n) -> {off, hold}: ns without the GIL before it is asked
 * for, ns of the hold. Spans are exact: no two holders.
 */
export function simulate({threads, dur, work, handover = 8000, handovers = null}) {
	const lanes = Array.from({length: threads}, () => []);
	const next = [],
		count = new Array(threads).fill(0);
	let free = 0;
	const put = (t, from, to, state) => {
		if (to > from) lanes[t].push({from, to, state});
	};
	for (let t = 0; t < threads; t++) {
		const w = work(t, 0);
		next.push({t, ask: w.off, hold: w.hold, since: 0});
	}
	for (;;) {
		let first = next[0];
		for (const n of next)
			if (
				Math.max(n.ask, free) < Math.max(first.ask, free) ||
				(Math.max(n.ask, free) === Math.max(first.ask, free) && n.ask < first.ask)
			)
				first = n;
		if (Math.max(first.ask, free) >= dur) break;
		const contended = first.ask < free;
		const get = Math.min(
			dur,
			Math.max(first.ask, free) +
				(contended ? (handovers ? handovers(first.t) : handover) : 300),
		);
		const end = Math.min(dur, get + first.hold);
		put(first.t, first.since, first.ask, 1);
		put(first.t, first.ask, get, 3);
		put(first.t, get, end, 2);
		free = end;
		const w = work(first.t, ++count[first.t]);
		Object.assign(first, {since: end, ask: end + w.off, hold: w.hold});
	}
	for (const n of next) {
		const lane = lanes[n.t],
			at = lane.length ? lane[lane.length - 1].to : 0;
		if (n.ask < dur) {
			put(n.t, at, n.ask, 1);
			put(n.t, Math.max(at, n.ask), dur, 3);
		} else {
			put(n.t, at, dur, 1);
		}
	}
	return lanes;
}

// One thread that hogs, workers that would like to compute, one that does I/O.
export function hog({seed = 1, states = false} = {}) {
	const r = random(seed),
		dur = 2.5e9;
	const lanes = simulate({
		threads: 5,
		dur,
		work(t, n) {
			if (t === 0) return {off: n ? 300e6 : 0, hold: Math.floor(3e6 + r() * 1e6)};
			if (t === 1)
				// the hog
				return {
					off: Math.floor(n === 2 ? 260e6 : 90e6 + r() * 40e6),
					hold: Math.floor(n === 2 ? 812345678 : 4e6 + r() * 30e6),
				};
			if (t === 4)
				return {off: Math.floor(15e6 + r() * 9e6), hold: Math.floor(50e3 + r() * 300e3)};
			return {off: Math.floor(r() * 90e3), hold: Math.floor(500e3 + r() * 4500e3)};
		},
	});
	const names = [
		"<module> (/app/hog.py:1)",
		"main (/app/hog.py:40)",
		"worker (/app/hog.py:12)",
		"parse (/app/hog.py:18)",
		"step (/app/hog.py:24)",
		"match_all (/app/hog.py:30)",
		"re.Pattern.match (/usr/lib/python3.12/re/__init__.py:166)",
		"read_socket (/app/hog.py:50)",
		"poll (/app/hog.py:55)",
	];
	const out = lanes.map((gil, t) => ({gil, calls: callsOf(gil, t, dur, r)}));
	if (states)
		out.forEach((l, t) => {
			l.cpu = statesOf(l.gil, r, t);
		});
	return {
		name: "gil",
		dur,
		threads: [
			{tid: 100, name: "MainThread", main: true},
			{tid: 101, name: "Matcher"},
			{tid: 102, name: "worker-1"},
			{tid: 103, name: "worker-2"},
			{tid: 104, name: "io"},
		],
		lanes: out,
		names,
	};
}

function callsOf(gil, t, dur, r) {
	const rows = [[{from: 0, to: dur, name: t === 0 ? 0 : t === 1 ? 5 : t === 4 ? 7 : 2}], [], []];
	if (t === 0) rows[1].push({from: 1000, to: dur - 1000, name: 1});
	for (const s of gil) {
		if (s.state !== 2 || s.to - s.from < 3000) continue;
		if (t === 1) rows[1].push({from: s.from + 500, to: s.to - 500, name: 6});
		else if (t === 4) rows[1].push({from: s.from + 500, to: s.to - 500, name: 8});
		else if (t > 1)
			for (let at = s.from + 500; at < s.to - 60000; ) {
				const d = Math.floor(40000 + r() * 400000),
					to = Math.min(s.to - 500, at + d);
				rows[1].push({from: at, to, name: 3});
				rows[2].push({from: at + 2000, to: Math.max(at + 3000, to - 8000), name: 4});
				at = to + 1000;
			}
	}
	return rows.filter(row => row.length);
}

// A plausible life on the CPU for a GIL lane.
export function statesOf(gil, r, t) {
	const out = [];
	const put = (from, to, state, more) => {
		const last = out[out.length - 1];
		if (to <= from) return;
		if (last && last.state === state && last.to === from) last.to = to;
		else out.push({from, to, state, ...more});
	};
	for (const s of gil) {
		if (s.state === 2) {
			const lag = Math.min(s.to - s.from, Math.floor(r() * 20000));
			put(s.from, s.from + lag, 2);
			put(s.from + lag, s.to, 1, {cpu: t % 2, waker: t ? 0 : 1});
		} else if (s.state === 3) {
			put(s.from, s.to, 5);
		} else {
			put(s.from, s.to, r() < 0.1 ? 4 : 3);
		}
	}
	return out;
}

// Two threads of pure Python that pass the GIL to and fro every 5 ms.
export function spinners() {
	const dur = 1e9;
	const lanes = simulate({
		threads: 2,
		dur,
		handover: 20000,
		work: () => ({off: 1000, hold: 5000000}),
	});
	return {
		name: "gil",
		dur,
		threads: [
			{tid: 200, name: "MainThread", main: true},
			{tid: 201, name: "spinner"},
		],
		lanes: lanes.map(gil => ({gil})),
	};
}

// Very many short holds with a few long waits between them, which are hard for levels of detail.
export function churn({n = 200000, seed = 7, threads = 4} = {}) {
	const r = random(seed);
	const dur = n * 12000;
	const lanes = simulate({
		threads,
		dur,
		handover: 2000,
		work(t, k) {
			return t === 0 && k % 20000 === 5000
				? {off: 1000, hold: 3000000}
				: {off: Math.floor(2000 + r() * 30000), hold: Math.floor(1000 + r() * 8000)};
		},
	});
	return {
		name: "gil",
		dur,
		threads: lanes.map((_, t) => ({
			tid: 300 + t,
			name: t ? "churn-" + t : "MainThread",
			main: !t,
		})),
		lanes: lanes.map(gil => ({gil})),
	};
}

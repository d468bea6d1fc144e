// SPDX-License-Identifier: MIT
// The pixels of each lane agree with its times, at many zoom levels.
import {done, ok, is, open, pageFile, quiet} from "./lib.mjs";
import {churn, hog, spinners} from "./programs.mjs";

// Pixels of the row's lane by state, and for each column whether it has any of a wait.
async function pixels(page, kind, thread) {
	return page.evaluate(
		([kind, thread]) => {
			const row = gt.tl.rows.find(r => r.kind === kind && r.thread === thread);
			const canvas = document.getElementById("tl"),
				c = canvas.getContext("2d", {willReadFrequently: true});
			const hex = s => parseInt(s.slice(1, 7), 16),
				p = gt.palette();
			const states =
				kind === "gil"
					? [
							[p.unknown, p.unknownAlt],
							[p.none],
							[gt.threadColor(thread)],
							[p.wait, p.waitAlt],
							[p.wait, p.swwaitAlt],
							[p.dead],
						]
					: [
							[p.unknown, p.unknownAlt],
							[p.running],
							[p.runnable, p.runnableAlt],
							[p.sleeping],
							[p.disk, p.diskAlt],
							[p.gilsleep, p.gilsleepAlt],
							[p.dead],
						];
			const of = new Map();
			states.forEach((colors, s) =>
				colors.forEach(x => {
					if (!of.has(hex(x))) of.set(hex(x), s);
				}),
			);
			const w = canvas.width - gt.GUTTER,
				height = row.h - 2;
			const data = c.getImageData(
				gt.GUTTER,
				row.y - document.getElementById("tl-box").scrollTop + 1,
				w,
				height,
			).data;
			const n = new Array(states.length).fill(0),
				waits = new Array(w).fill(false);
			let strange = 0;
			for (let i = 0; i < data.length; i += 4) {
				const s = of.get((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
				if (s === undefined) strange++;
				else n[s]++;
				if (kind === "gil" && s === 3) waits[(i >> 2) % w] = true;
			}
			return {share: n.map(x => x / (w * height)), strange: strange / (w * height), waits, w};
		},
		[kind, thread],
	);
}

function expected(spans, states, from, to) {
	const sum = new Array(states + 1).fill(0);
	let alive = 0;
	for (const s of spans) {
		const d = Math.min(s.to, to) - Math.max(s.from, from);
		if (d > 0) {
			sum[s.state] += d;
			alive += d;
		}
	}
	sum[states] = to - from - alive;
	return sum.map(x => x / (to - from));
}

const pct = list => list.map(x => (x * 100).toFixed(2)).join(" ");

async function check(page, program, name, views) {
	await page.evaluate(() =>
		[...document.querySelectorAll("#toggles button")]
			.find(b => b.textContent === "Labels")
			.click(),
	);
	for (const [from, to] of views) {
		await page.evaluate(([from, to]) => gt.setView(from, to), [from, to]);
		await quiet(page);
		const v = await page.evaluate(() => ({...gt.view}));
		let worst = 0,
			text = "",
			lost = [];
		for (const [thread, lane] of program.lanes.entries()) {
			for (const kind of ["gil", "cpu"]) {
				if (!lane[kind]) continue;
				const got = await pixels(page, kind, thread);
				const want = expected(lane[kind], kind === "gil" ? 5 : 6, v.from, v.to);
				if (kind === "gil") {
					// both waits are drawn in one of two shades of the same stripes
					want[3] += want[4];
					got.share[3] += got.share[4];
					want[4] = got.share[4] = 0;
				}
				want.forEach((x, s) => {
					const off = Math.abs(x - got.share[s]);
					if (off > worst) {
						worst = off;
						text =
							kind +
							" lane of thread " +
							thread +
							", state " +
							s +
							": drawn " +
							pct(got.share) +
							", happened " +
							pct(want) +
							", strange " +
							got.strange;
					}
				});
				if (kind === "gil")
					for (const s of lane.gil)
						if (
							s.state === 3 &&
							s.to - s.from >= 1e6 &&
							s.from < v.to &&
							s.to > v.from
						) {
							const x = t =>
								Math.max(
									0,
									Math.min(
										got.w - 1,
										Math.floor(((t - v.from) / (v.to - v.from)) * got.w),
									),
								);
							if (!got.waits.slice(x(s.from), x(s.to) + 1).some(Boolean))
								lost.push([thread, s.from, s.to]);
						}
			}
		}
		const width = ((to - from) / 1e6).toPrecision(4) + " ms";
		ok(
			worst <= 0.005,
			name +
				", " +
				width +
				": pixels are the times within 0.5 % (" +
				(worst * 100).toFixed(3) +
				")",
			text,
		);
		is(lost.slice(0, 3), [], name + ", " + width + ": no wait over the threshold is lost");
	}
}

for (const [name, program] of [
	["hog", hog({states: true})],
	["churn", churn()],
	["spinners", spinners()],
]) {
	const dur = program.dur,
		zooms = [
			[0, dur],
			[dur * 0.1, dur * 0.45],
			[dur * 0.5, dur * 0.53],
			[dur * 0.3, dur * 0.3 + 2e6],
			[dur * 0.7, dur * 0.7 + 50000],
			[-dur * 0.2, dur * 0.4],
		];
	const page = await open(pageFile({passes: [program]}));
	await check(page, program, name, zooms);
	is(page.troubles, [], name + ": in peace");
}

// Waits that are rare and much narrower than a pixel.
const rare = {
	name: "gil",
	dur: 600e9,
	threads: [{tid: 1, name: "rare", main: true}],
	lanes: [{gil: []}],
};
for (let t = 0; t < 600e9; t += 15e9)
	rare.lanes[0].gil.push(
		{from: t, to: t + 14e9, state: 1},
		{from: t + 14e9, to: t + 14e9 + 1200000, state: 3},
		{from: t + 14e9 + 1200000, to: t + 15e9, state: 2},
	);
const page = await open(pageFile({passes: [rare]}), {width: 1000});
await check(page, rare, "rare waits", [
	[0, 600e9],
	[100e9, 400e9],
	[14e9, 14.2e9],
]);
const dark = await open(pageFile({passes: [hog({states: true})]}), {dark: true, scale: 1});
await check(dark, hog({states: true}), "dark", [[0, 2.5e9]]);

// The ownership lane: each holder's colour takes its share of the time.
const owners = await open(pageFile({passes: [hog()]}));
const owned = await owners.evaluate(() => {
	const row = gt.tl.rows.find(r => r.kind === "owner"),
		canvas = document.getElementById("tl"),
		w = canvas.width - gt.GUTTER;
	[...document.querySelectorAll("#toggles button")].find(b => b.textContent === "Labels").click();
	return new Promise(done =>
		requestAnimationFrame(() =>
			requestAnimationFrame(() => {
				const high = Math.round((row.h - 2) * 0.72),
					data = canvas.getContext("2d").getImageData(gt.GUTTER, row.y + 1, w, high).data;
				const shares = gt.pass().threads.map((t, i) => {
					const color = parseInt(gt.threadColor(i).slice(1), 16);
					let n = 0;
					for (let k = 0; k < data.length; k += 4)
						n += ((data[k] << 16) | (data[k + 1] << 8) | data[k + 2]) === color;
					return [n / (w * high), t.hold_ns / gt.pass().dur_ns];
				});
				done(shares);
			}),
		),
	);
});
ok(
	owned.every(([a, b]) => Math.abs(a - b) <= 0.005),
	"the ownership lane has each holder's share",
	owned,
);
await done();

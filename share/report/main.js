// SPDX-License-Identifier: MIT
// Starts the parts of the page, in the order in which a reader needs them.

import {arrowsOf} from "./arrows.js";
import {asleepDraw, hardlyWaits} from "./asleep.js";
import {blameDraw, blameTitle} from "./blame.js";
import {cardMarkdown} from "./card.js";
import {chainOf} from "./chain.js";
import {gilKnown, gilText, meta, pass, passIndex, taskLanes} from "./data.js";
import {detailsDraw} from "./details.js";
import {$, click, fill, h, listen, say, soft} from "./dom.js";
import {atOnce, emit, on, perFrame, whenQuiet} from "./events.js";
import {exportInit} from "./export.js";
import {findingsInit} from "./findings.js";
import {flameInit} from "./flame.js";
import {flameBuild, reshape} from "./flametree.js";
import {fmtCount} from "./format.js";
import {hashInit, hashRead} from "./hash.js";
import {histogramDraw} from "./histogram.js";
import {hogsDraw} from "./hogs.js";
import {keyboardInit, middle} from "./keyboard.js";
import {AXIS, GUTTER, longestShort, tl} from "./layout.js";
import {laneTotals} from "./lod.js";
import {linesDraw} from "./lines.js";
import {aboutDraw, holdsDraw, waitsDraw} from "./longest.js";
import {holdersIn, pinSentence} from "./pick.js";
import {pointerInit} from "./pointer.js";
import {starvedDraw} from "./queued.js";
import {questionsDraw, withoutGilDraw} from "./questions.js";
import {rangeInit} from "./range.js";
import {requestsInit} from "./requests.js";
import {cpuPens, gilPens} from "./raster.js";
import {stepsOf} from "./replay.js";
import {sampledInit} from "./sampled.js";
import {eachSample, hasSamples, SAMPLE_KEYS, samplesAlone} from "./samples.js";
import {sandwichOf} from "./sandwich.js";
import {searchInit} from "./search.js";
import {end, loading, push, store} from "./store.js";
import {stripChoice, stripInit} from "./strip.js";
import {tasksDraw} from "./tasks.js";
import {palette, rankHolders, themeInit, threadColor} from "./theme.js";
import {legendDraw, threadsDraw} from "./threads.js";
import {pinInSight, tlInit} from "./timeline.js";
import {gilOf} from "./tracks.js";
import {
	arranged,
	flyTo,
	passDur,
	passesInit,
	pinned,
	setOnly,
	setPass,
	setPin,
	setRange,
	setView,
	shown,
	view,
	zoomAt,
} from "./view.js";

function togglesDraw() {
	const kinds = [
		["gil", gilText("GIL", "Locks")],
		["cpu", "CPU state"],
		["py", "Python calls"],
		["counters", "Counters"],
		["samples", "Samples"],
		["tasks", "Tasks"],
	];
	const there = {
		gil: gilKnown(),
		cpu: store().cpu.length && !samplesAlone(),
		py: store().slices.length,
		counters: store().counters.length,
		samples: hasSamples(),
		tasks: taskLanes().length,
	};
	const button = (key, text) =>
		h(
			"button",
			{
				"aria-pressed": String(shown[key] !== false),
				onclick: () => {
					shown[key] = shown[key] === false;
					togglesDraw();
					emit("filter");
				},
			},
			text,
		);
	fill(
		$("toggles"),
		kinds.filter(([k]) => there[k]).map(([k, text]) => button(k, text)),
		button("labels", "Labels"),
	);
	const keys = gilKnown()
		? [
				[
					"any",
					gilText(
						"holds (the thread’s colour)",
						"stops the others (the thread’s colour)",
					),
				],
				["wait", gilText("waits", "waits for a lock")],
				[
					"swwait",
					gilText(
						"released on request, awaiting the switch",
						"stopped by another thread",
					),
				],
				...(pass().threads.some(t => t.free_wait_ns)
					? [["freewait", gilText("takes a free GIL", "spins for a lock")]]
					: []),
				["none", gilText("no GIL", "free")],
				["unknown", "unknown"],
			]
		: [];
	if (samplesAlone()) keys.push(...SAMPLE_KEYS);
	else if (store().cpu.length)
		keys.push(
			["running", "running"],
			["runnable", "runnable without a CPU"],
			["sleeping", "asleep"],
			["disk", "disk"],
			...(pass().locks ? [] : [["gilsleep", "asleep for the GIL"]]),
		);
	if (taskLanes().length)
		keys.push(["running", "tasks run"], ["gilsleep", "are late"], ["sleeping", "wait"]);
	legendDraw($("timeline-legend"), keys);
	if (loading.complete && !store().slices.length && !hasSamples())
		$("timeline-legend").append(soft(pass().slices_note || "Python calls were not recorded."));
}

function progressDraw() {
	const el = $("progress");
	if (loading.errors.length)
		el.textContent =
			"Part of this file cannot be read (" +
			loading.errors[0] +
			"): the picture is incomplete.";
	else
		el.textContent = loading.complete ? "" : "reading… " + fmtCount(loading.events) + " events";
	el.className = loading.errors.length ? "bad" : "";
}

function tablesDraw() {
	$("own").hidden = !$("own").firstChild || (!meta.diff && passIndex !== (meta.main_pass || 0));
	threadsDraw();
	blameDraw();
	hogsDraw();
	linesDraw();
	withoutGilDraw();
	starvedDraw();
	tasksDraw();
	aboutDraw();
	for (const id of ["blame", "waits", "holds", "histogram"]) $(id).hidden = !gilKnown();
	$("threads").hidden = samplesAlone();
	fill(
		$("timeline-h"),
		pass().locks
			? "Blocked threads over time"
			: gilKnown()
				? "GIL holders over time"
				: "Thread states over time",
	);
	fill($("holds-h"), gilText("Longest holds", "Longest stops"));
	fill($("blame-h"), blameTitle());
	fill(
		$("strip-key"),
		h("b", "Whole recording"),
		gilKnown()
			? [
					h("span", gilText("colour: holder", "colour: thread stopping others")),
					h("span", gilText("dark: number of waiters", "dark: number of blocked")),
				]
			: !samplesAlone() && h("span", "all threads together"),
		gilKnown() && stripChoice(),
	);
	document.documentElement.classList.toggle("no-gil", !gilKnown());
}

function deepDraw() {
	questionsDraw();
	if (!loading.complete) return;
	if (hardlyWaits()) asleepDraw();
	waitsDraw();
	holdsDraw();
	histogramDraw();
	detailsDraw();
}

function start() {
	themeInit();
	rankHolders();
	view.to = passDur();
	$("command").textContent = (meta.command || []).join(" ");
	$("command").title = (meta.command || []).join(" ");
	for (const el of document.querySelectorAll("#static .own")) {
		// It can be wider than a small screen.
		Object.assign(el, {tabIndex: 0, role: "region"});
		el.ariaLabel = el.querySelector("caption").textContent;
		$("own").append(el);
	}
	if (meta.diff) {
		document.documentElement.classList.add("diff");
		document.querySelector(".first").after($("own"));
	}
	passesInit();
	findingsInit();
	tablesDraw();
	togglesDraw();
	tlInit();
	stripInit();
	pointerInit();
	keyboardInit();
	searchInit();
	rangeInit();
	flameInit();
	requestsInit();
	sampledInit();
	hashInit();
	exportInit();
	click("zoom-in", () => zoomAt(middle(), 0.5));
	click("zoom-out", () => zoomAt(middle(), 2));
	click("zoom-fit", () => flyTo(0, passDur()));
	click("filter-clear", () => setOnly(null));
	click("all-threads", () => {
		tl.all = true;
		emit("filter");
	});
	click("slots", () => {
		tl.slots = !tl.slots;
		emit("filter");
	});
	click("aligned", () => {
		tl.aligned = !tl.aligned;
		setView(0, tl.aligned ? longestShort() * 1.05 : passDur());
		emit("filter");
	});
	listen($("order"), "change", () => {
		arranged.by = $("order").value;
		emit("filter");
	});
	click("details-close", () => setPin(null));
	on(
		"data",
		perFrame(() => {
			progressDraw();
		}),
	);
	on(
		"pin",
		perFrame(() => {
			detailsDraw();
			pinInSight();
		}),
	);
	on("told", () => say(pinSentence(pinned)));
	on("pass", () => {
		rankHolders();
		togglesDraw();
		tablesDraw();
		deepDraw();
	});
	on("theme sorts", () => {
		tablesDraw();
		togglesDraw();
		deepDraw();
	});
	on("complete", () => {
		togglesDraw();
		progressDraw();
		emit("filter");
		deepDraw();
		performance.mark("gt-ready");
	});
	addEventListener(
		"resize",
		whenQuiet(200, () => loading.complete && histogramDraw()),
	);
	addEventListener("DOMContentLoaded", () => {
		if (loading.ended) return;
		loading.errors.push("it ends too early");
		end();
	});
	hashRead();
	deepDraw();
	performance.mark("gt-overview");
}

// Used by the blocks that follow in the page, and by tests.
globalThis.gt = {
	push,
	end,
	loading,
	view,
	setView,
	setPin,
	setRange,
	setPass,
	flameBuild: mode => atOnce(flameBuild(mode)),
	reshape,
	eachSample,
	tl,
	store,
	laneTotals,
	pass,
	palette: () => palette,
	chainOf,
	holdersOf: (from, to, lane, i, thread) => holdersIn(from, to, gilOf(lane, i), thread),
	arrowsOf: () => arrowsOf(pinned),
	sandwichOf: (key, python) => atOnce(sandwichOf(key, python)),
	stepsOf,
	cardMarkdown: () => cardMarkdown(pinned),
	threadColor,
	pens: thread => [gilPens(thread), cpuPens()],
	get GUTTER() {
		return GUTTER;
	},
	AXIS,
};

start();

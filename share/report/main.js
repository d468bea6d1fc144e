// SPDX-License-Identifier: MIT
// Starts the parts of the page, in the order in which a reader needs them.

import {arrowsOf} from "./arrows.js";
import {asleepDraw, hardlyWaits} from "./asleep.js";
import {blameDraw} from "./blame.js";
import {cardMarkdown} from "./card.js";
import {chainOf} from "./chain.js";
import {crumbsInit} from "./crumbs.js";
import {gilKnown, gilText, meta, pass, passIndex, taskLanes} from "./data.js";
import {detailsDraw} from "./details.js";
import {$, click, fill, h, listen, say, soft} from "./dom.js";
import {dockInit} from "./dock.js";
import {atOnce, emit, inSteps, on, perFrame, whenQuiet} from "./events.js";
import {explainInit} from "./explain.js";
import {exportInit} from "./export.js";
import {findingsInit} from "./findings.js";
import {flameInit} from "./flame.js";
import {flameBuild, reshape} from "./flametree.js";

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
import {complete, end, loading, push, store} from "./store.js";
import {stripChoice, stripInit} from "./strip.js";
import {tasksDraw} from "./tasks.js";
import {palette, rankHolders, themeInit, threadColor} from "./theme.js";
import {legendDraw, threadsDraw} from "./threads.js";
import {pinInSight, tlInit} from "./timeline.js";
import {gilOf} from "./tracks.js";
import {makeAllTurns} from "./turns.js";
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
import * as words from "./words.js";

function togglesDraw() {
	const kinds = [
		["gil", gilText(words.gilRows)],
		["cpu", words.cpuRows],
		["py", words.pythonCalls],
		["counters", words.counterRows],
		["samples", words.samplesHead],
		["tasks", words.tasksHead],
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
		button("labels", words.labelsSwitch),
	);
	const keys = gilKnown()
		? [
				["any", gilText(words.legendHolds)],
				["wait", gilText(words.legendWaits)],
				["swwait", gilText(words.legendSwitch)],
				...(pass().threads.some(t => t.free_wait_ns)
					? [["freewait", gilText(words.legendFreeWait)]]
					: []),
				["none", gilText(words.legendNone)],
				["unknown", words.unknown],
			]
		: [];
	if (samplesAlone()) keys.push(...SAMPLE_KEYS);
	else if (store().cpu.length)
		keys.push(
			["running", words.legendRunning],
			["runnable", words.legendRunnable],
			["sleeping", words.legendAsleep],
			["disk", words.legendDisk],
			...(pass().locks ? [] : [["gilsleep", words.legendGilSleep]]),
		);
	if (taskLanes().length)
		keys.push(
			["running", words.legendTasks.run],
			["gilsleep", words.legendTasks.late],
			["sleeping", words.legendTasks.wait],
		);
	legendDraw($("timeline-legend"), keys);
	if (loading.complete && !store().slices.length && !hasSamples())
		$("timeline-legend").append(soft(pass().slices_note || words.noCallsRecorded));
}

function progressDraw() {
	const el = $("progress");
	if (loading.errors.length) el.textContent = words.unreadable(loading.errors[0]);
	else el.textContent = loading.complete ? "" : words.readingEvents(loading.events);
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
			? words.timelineTitles.locks
			: gilKnown()
				? words.timelineTitles.gil
				: words.timelineTitles.states,
	);
	fill($("holds-h"), gilText(words.longestHoldsTitle));
	fill(
		$("strip-key"),
		h("b", words.wholeRecording),
		gilKnown()
			? [h("span", gilText(words.stripColour)), h("span", gilText(words.stripDark))]
			: !samplesAlone() && h("span", words.stripStates),
		gilKnown() && stripChoice(),
	);
	document.documentElement.classList.toggle("no-gil", !gilKnown());
}

// What needs all data.
const deepDraw = inSteps(function* () {
	questionsDraw();
	if (!loading.complete) return;
	detailsDraw();
	for (const draw of [hardlyWaits() && asleepDraw, waitsDraw, holdsDraw, histogramDraw]) {
		yield;
		if (draw) draw();
	}
	if (!performance.getEntriesByName("gt-ready").length) performance.mark("gt-ready");
});

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
	dockInit();
	crumbsInit();
	explainInit();
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
	click("compact", () => {
		tl.compact = !tl.compact;
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
	on(
		"read",
		inSteps(function* () {
			if (gilKnown()) yield* makeAllTurns();
			complete();
		}),
	);
	on("complete", () => {
		togglesDraw();
		progressDraw();
		emit("filter");
		deepDraw();
	});
	addEventListener(
		"resize",
		whenQuiet(200, () => loading.complete && histogramDraw()),
	);
	addEventListener("DOMContentLoaded", () => {
		if (loading.ended) return;
		loading.errors.push(words.endsEarly);
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

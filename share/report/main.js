// SPDX-License-Identifier: MIT
// Put the parts together, in the order in which a reader needs them.

function togglesDraw() {
	const kinds = [["gil", gilText("GIL", "Locks")], ["cpu", "CPU state"], ["py", "Python calls"], ["counters", "Counters"]];
	const there = {gil: gilKnown(), cpu: store().cpu.length, py: store().slices.length, counters: store().counters.length};
	const button = (key, text) => h("button", {"aria-pressed": String(shown[key] !== false), onclick: () => {
		shown[key] = shown[key] === false;
		togglesDraw();
		emit("filter");
	}}, text);
	fill($("toggles"), kinds.filter(([k]) => there[k]).map(([k, text]) => button(k, text)), button("labels", "Labels"));
	const keys = gilKnown() ? [["any", gilText("holds (the thread’s colour)", "stops the others (the thread’s colour)")], ["wait", gilText("waits", "waits for a lock")],
		["swwait", gilText("gave it up, waits to be switched", "stands: another one stopped it")], ["none", gilText("no GIL", "free")], ["unknown", "unknown"]] : [];
	if (store().cpu.length)
		keys.push(["running", "running"], ["runnable", "in line for a CPU"], ["sleeping", "asleep"], ["disk", "disk"], ["gilsleep", "asleep for the GIL"]);
	legendDraw($("timeline-legend"), keys);
}

function progressDraw() {
	const el = $("progress");
	if (loading.errors.length)
		el.textContent = "Part of this file cannot be read (" + loading.errors[0] + "): the picture is incomplete.";
	else
		el.textContent = loading.complete ? "" : "reading… " + fmtCount(loading.events) + " events";
	el.className = loading.errors.length ? "bad" : "";
}

function tablesDraw() {
	threadsDraw();
	blameDraw();
	hogsDraw();
	starvedDraw();
	aboutDraw();
	momentsDraw();
	for (const id of ["blame", "waits", "holds", "histogram"])
		$(id).hidden = !gilKnown();
	fill($("timeline-h"), pass().locks ? "What blocks the threads, over time" : gilKnown() ? "Who holds the GIL, over time" : "What the threads did, over time");
	fill($("holds-h"), gilText("Longest holds", "Longest stops"));
	fill($("strip-key"), h("b", {}, "Whole recording"), gilKnown() ? [h("span", {}, gilText("colour: who holds it", "colour: who stops the others")), h("span", {}, gilText("dark: how many wait", "dark: how many are blocked"))] : h("span", {}, "all threads together"));
	document.documentElement.classList.toggle("no-gil", !gilKnown());
}

function deepDraw() {
	if (!loading.complete)
		return;
	momentsDraw();
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
	passesInit();
	tablesDraw();
	togglesDraw();
	tlInit();
	stripInit();
	pointerInit();
	keyboardInit();
	searchInit();
	rangeInit();
	flameInit();
	hashInit();
	exportInit();
	$("zoom-in").addEventListener("click", () => zoomAt(middle(), 0.5));
	$("zoom-out").addEventListener("click", () => zoomAt(middle(), 2));
	$("zoom-fit").addEventListener("click", () => flyTo(0, passDur()));
	$("filter-clear").addEventListener("click", () => setOnly(null));
	$("all-threads").addEventListener("click", () => { tl.all = true; emit("filter"); });
	$("details-close").addEventListener("click", () => setPin(null));
	on("data", perFrame(() => { progressDraw(); }));
	on("pin", perFrame(() => { detailsDraw(); pinInSight(); }));
	on("pass", () => { rankHolders(); togglesDraw(); tablesDraw(); deepDraw(); });
	on("theme", () => { tablesDraw(); togglesDraw(); deepDraw(); });
	on("complete", () => { togglesDraw(); progressDraw(); emit("filter"); deepDraw(); performance.mark("gt-ready"); });
	addEventListener("DOMContentLoaded", () => {
		if (loading.ended)
			return;
		loading.errors.push("it ends too early");
		end();
	});
	hashRead();
	performance.mark("gt-overview");
}

start();

// For the blocks that follow, and for tests.
const gt = {push, end, loading, view, setView, setPin, setRange, setPass, flameBuild, tl, store, laneTotals, pass, palette: () => palette, threadColor, get GUTTER() { return GUTTER; }, AXIS};

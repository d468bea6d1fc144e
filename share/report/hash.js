// SPDX-License-Identifier: MIT
// The view is in the URL's hash, so that a link leads to a moment. See FORMAT.md.

import {meta, pass, passIndex} from "./data.js";
import {$, listen, toward} from "./dom.js";
import {emit, on, whenQuiet} from "./events.js";
import {flame} from "./flame.js";
import {openFor, tl, tlBox, tlLayout, unhide} from "./layout.js";
import {round} from "./math.js";
import {pinCall, pinLane, pinSample} from "./pick.js";
import {requests} from "./requests.js";
import {searchRun} from "./search.js";
import {loading} from "./store.js";
import {sorts} from "./table.js";
import {seeTasks} from "./tasks.js";
import {threadsDraw} from "./threads.js";
import {
	arranged,
	hits,
	notes,
	only,
	passDur,
	pinned,
	range,
	setOnly,
	setPass,
	setPin,
	setRange,
	setView,
	shown,
	view,
} from "./view.js";

let hashMine = "";
let viewMine = "";

// A letter for each part that can be hidden or switched on.
/** @type {[string, {[key: string]: any}, string, boolean][]} */
const SWITCHES = [
	["g", shown, "gil", true],
	["c", shown, "cpu", true],
	["y", shown, "py", true],
	["n", shown, "counters", true],
	["p", shown, "samples", true],
	["t", shown, "tasks", true],
	["e", shown, "each", false],
	["l", shown, "labels", true],
	["a", tl, "all", false],
	["s", tl, "slots", false],
	["b", tl, "aligned", false],
	["m", tl, "compact", false],
];

const isSet = ([, of, key, usual]) => (of[key] ?? usual) !== usual;

function viewPart() {
	if (view.from === 0 && view.to === passDur()) return "";
	return "v=" + round(view.from) + "," + round(view.to);
}

function pinPart() {
	const {kind, thread, from} = pinned;
	return "s=" + [kind, thread, from, ...(pinned.kind === "py" ? [pinned.depth] : [])].join(".");
}

const FLAME_SHAPES = ["python", "merged", "inverted"];
function flamePart() {
	const how = FLAME_SHAPES.filter(k => flame[k])
		.map(k => k[0])
		.join("");
	if (!flame.mode && !how && !flame.key) return "";
	return "f=" + [flame.mode, how, encodeURIComponent(flame.key)].join(",");
}

function decoded(text) {
	try {
		return decodeURIComponent(text || "");
	} catch {
		return ""; // written by something else
	}
}

function readFlame(text) {
	const [mode, how, key] = (text || ",,").split(",");
	flame.mode = mode;
	for (const k of FLAME_SHAPES) flame[k] = (how || "").includes(k[0]);
	flame.key = decoded(key);
	emit("flame-read");
}

function readSorts(text) {
	const before = sorts.size;
	sorts.clear();
	for (const s of (text || "").split(",")) {
		const m = /^(\w+)\.(\d+)\.([01])$/.exec(s);
		if (m) sorts.set(m[1], {sort: +m[2], up: m[3] === "1"});
	}
	if (before + sorts.size) emit("sorts");
}

function readNotes(text) {
	notes.clear();
	for (const n of (text || "").split(",")) {
		const m = /^(\d+)\.(.+)$/.exec(n);
		if (m && decoded(m[2])) notes.set(+m[1], decoded(m[2]));
	}
}

export function hashText() {
	const parts = [
		meta.passes.length > 1 && "p=" + passIndex,
		viewPart(),
		pinned && pinPart(),
		only && "t=" + [...only].join("."),
		arranged.by && "a=" + arranged.by,
		arranged.kept.length && "k=" + arranged.kept.join("."),
		range && "r=" + round(range.from) + "," + round(range.to),
		hits.text && "q=" + encodeURIComponent(hits.text),
		SWITCHES.some(isSet) &&
			"o=" +
				SWITCHES.filter(isSet)
					.map(x => x[0])
					.join(""),
		flamePart(),
		requests.name && "w=" + encodeURIComponent(requests.name),
		sorts.size && "u=" + [...sorts].map(([k, s]) => [k, s.sort, +s.up].join(".")),
		notes.size && "m=" + [...notes].map(([t, text]) => t + "." + encodeURIComponent(text)),
		tl.opened.size && "d=" + [...tl.opened].join("."),
		tlBox.scrollTop >= 1 && "y=" + round(tlBox.scrollTop),
	].filter(Boolean);
	return parts.length ? "#" + parts.join("&") : "";
}

// A change of the part in view makes a new entry of the history, so that Back undoes a zoom.
function hashWrite() {
	const text = hashText(),
		part = passIndex + viewPart();
	if (text === hashMine) return;
	hashMine = text;
	try {
		if (part === viewMine) history.replaceState(null, "", text || "#");
		else history.pushState(null, "", text || "#");
	} catch {
		/* some browsers forbid this for files, or limit its rate */
	}
	viewMine = part;
}

function pair(text) {
	const m = /^(-?\d+(?:\.\d+)?),(-?\d+(?:\.\d+)?)$/.exec(text || "");
	return m && +m[2] > +m[1] ? [+m[1], +m[2]] : null;
}

const threadsIn = text =>
	(text || "")
		.split(".")
		.filter(Boolean)
		.map(Number)
		.filter(i => pass().threads[i]);

function readPin(text) {
	const g = /^tasks\.(\d+)/.exec(text);
	if (g) seeTasks(+g[1]);
	const s = /^(gil|cpu|py|samples)\.(\d+)\.(\d+(?:\.\d+)?)$/.exec(text || "");
	if (!s) return setPin(null);
	const [time, depth] = s[3].split(".");
	unhide(+s[2]);
	const kind = /** @type {Pin["kind"]} */ (s[1]);
	setPin(
		kind === "py"
			? pinCall(+s[2], +(depth || 0), +time)
			: kind === "samples"
				? pinSample(+s[2], +time)
				: pinLane(kind, +s[2], +time),
		true,
	);
	if (pinned) openFor(pinned);
}

function readSearch(text) {
	$("search").value = decoded(text);
	searchRun();
}

// Show the view that the address contains; parts that it leaves out have their defaults.
export function hashRead() {
	const parts = new Map();
	for (const p of location.hash.slice(1).split("&")) {
		const eq = p.indexOf("=");
		if (eq > 0) parts.set(p.slice(0, eq), p.slice(eq + 1));
	}
	if (meta.passes[+parts.get("p")]) setPass(+parts.get("p"));
	for (const [letter, of, key, usual] of SWITCHES)
		of[key] = (parts.get("o") || "").includes(letter) ? !usual : usual;
	tl.opened = new Set(threadsIn(parts.get("d")));
	$("order").value = parts.get("a") || "";
	if (!$("order").value) $("order").value = "";
	arranged.by = $("order").value;
	arranged.kept = threadsIn(parts.get("k"));
	setOnly(threadsIn(parts.get("t")));
	setView(...(pair(parts.get("v")) || [0, passDur()]));
	readSorts(parts.get("u"));
	readNotes(parts.get("m"));
	threadsDraw();
	const r = pair(parts.get("r"));
	setRange(r ? r[0] : null, r ? r[1] : null);
	const late = () => {
		readPin(parts.get("s"));
		readSearch(parts.get("q"));
		readFlame(parts.get("f"));
		requests.name = decoded(parts.get("w"));
		emit("requests-read");
		tlLayout();
		if (!/^tasks/.test(parts.get("s"))) tlBox.scrollTop = +parts.get("y") || 0;
		if (parts.has("v") || parts.has("s")) toward("timeline");
	};
	if (loading.complete) late();
	else on("complete", late);
	viewMine = passIndex + viewPart();
}

export function hashInit() {
	on(
		"view pin range search pass filter link",
		whenQuiet(300, () => {
			if (loading.complete) hashWrite();
		}),
	);
	listen(tlBox, "scroll", () => emit("link"));
	addEventListener("hashchange", () => {
		if (location.hash === hashMine || !/^(#?$|#.*[pvstrqodfakumyw]=)/.test(location.hash))
			return;
		hashMine = location.hash;
		hashRead();
	});
}

// SPDX-License-Identifier: MIT
// The view lives in the URL's hash, so that a moment can be sent to somebody. See FORMAT.md.

let hashMine = "";

function hashWrite() {
	const parts = [];
	if (meta.passes.length > 1)
		parts.push("p=" + passIndex);
	if (view.from !== 0 || view.to !== passDur())
		parts.push("v=" + Math.round(view.from) + "," + Math.round(view.to));
	if (pinned)
		parts.push("s=" + [pinned.kind, pinned.thread, pinned.from].concat(pinned.kind === "py" ? [pinned.depth] : []).join("."));
	if (only)
		parts.push("t=" + [...only].join("."));
	if (range)
		parts.push("r=" + Math.round(range.from) + "," + Math.round(range.to));
	if (hits.text)
		parts.push("q=" + encodeURIComponent(hits.text));
	hashMine = parts.length ? "#" + parts.join("&") : "";
	try {
		history.replaceState(null, "", hashMine || "#");
	} catch (e) { /* some browsers forbid it for files, or limit its rate */ }
}

function hashRead() {
	const parts = new Map();
	for (const p of location.hash.slice(1).split("&")) {
		const eq = p.indexOf("=");
		if (eq > 0)
			parts.set(p.slice(0, eq), p.slice(eq + 1));
	}
	const pair = text => {
		const m = /^(-?\d+(?:\.\d+)?),(-?\d+(?:\.\d+)?)$/.exec(text || "");
		return m && +m[2] > +m[1] ? [+m[1], +m[2]] : null;
	};
	if (parts.has("p") && meta.passes[+parts.get("p")])
		setPass(+parts.get("p"));
	if (parts.has("t"))
		setOnly(parts.get("t").split(".").map(Number).filter(i => pass().threads[i]));
	const v = pair(parts.get("v")), r = pair(parts.get("r"));
	if (v)
		setView(v[0], v[1]);
	if (r)
		setRange(r[0], r[1]);
	const s = /^(gil|cpu|py)\.(\d+)\.(\d+(?:\.\d+)?)$/.exec(parts.get("s") || "");
	if (s) {
		const [time, depth] = s[3].split(".");
		const pin = () => unhide(+s[2]) || setPin(s[1] === "py" ? pinCall(+s[2], +(depth || 0), +time) : pinLane(s[1], +s[2], +time), true);
		if (loading.complete)
			pin();
		else
			on("complete", pin);
	}
	if (parts.has("q")) {
		try {
			$("search").value = decodeURIComponent(parts.get("q"));
		} catch (e) { /* not ours */ }
		if (loading.complete)
			searchRun();
	}
	return !!v;
}

function hashInit() {
	on("view pin range search pass filter", whenQuiet(300, () => { if (loading.complete) hashWrite(); }));
	addEventListener("hashchange", () => {
		if (location.hash !== hashMine && /[#&][pvstrq]=/.test(location.hash)) {
			hashRead();
			if (document.activeElement && document.activeElement.closest("#verdict"))
				toward("timeline");
		}
	});
}

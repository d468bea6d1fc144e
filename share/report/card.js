// SPDX-License-Identifier: MIT
// The pinned span as a card to share, in SVG, PNG or Markdown: its description, numbers, causes and
// a link.

import {CAUSES, causeColor, causeText, causesOf, chainOf} from "./chain.js";
import {meta, pass, report, threadLabel} from "./data.js";
import {copyText, h, saveAs, svg} from "./dom.js";
import {fmtDur, fmtExact, fmtPct, shorten} from "./format.js";
import {hashText} from "./hash.js";
import {max} from "./math.js";
import {callName, callPlace, pinHead} from "./pick.js";
import {palette} from "./theme.js";
import {notes} from "./view.js";
import * as words from "./words.js";

const CAUSES_MAX = 6;
const plain = text => text.replace(/[\u00a0\u2009]/g, " ");

// Of a local file, only the name: a shared card must not reveal its folders.
const addressOf = () => location.href.replace(/#.*/, "").replace(/^file:.*\//, "");

// {title, facts: [[term, value]], rows: [{text, ns, color}], link}
export function cardOf(p) {
	const rows = causesOf(chainOf(p.thread, p.from, p.to)),
		rest = rows.splice(CAUSES_MAX).reduce((n, r) => n + r.ns, 0),
		total = p.to - p.from,
		py = /** @type {Partial<Report["python"]>} */ (report.python || {});
	const list = rows.map(r => ({
		text: causeText(r) + (r.what ? words.inFunction(r.what) : ""),
		ns: r.ns,
		color: causeColor(r),
	}));
	if (rest) list.push({text: words.otherCauses, ns: rest, color: palette[CAUSES.unknown]});
	const place = p.kind === "py" ? callPlace(callName(p.name)) : "";
	return {
		title: pinHead(p),
		facts: [
			[words.program, (meta.command || []).join(" ")],
			[words.python, [py.implementation, py.version].filter(Boolean).join(" ")],
			place && [words.functionHead, place],
			[
				words.thread,
				words.threadWithTid(threadLabel(p.thread), pass().threads[p.thread].tid),
			],
			[words.from, words.afterStart(fmtExact(p.from))],
			total && [words.duration, fmtExact(total)],
			[words.note, notes.get(p.from)],
		].filter(f => f && f[1]),
		rows: list,
		total,
		link: addressOf() + hashText(),
	};
}

const cell = text =>
	plain(text)
		.replace(/[\\|\x60*_<>[\]]/g, "\\$&")
		.replace(/[\r\n]+/g, " ");

export function cardMarkdown(p) {
	const c = cardOf(p);
	return [
		"### " + cell(c.title),
		"",
		...c.facts.map(([k, v]) => "- " + k + ": " + cell(v)),
		"",
		"| " + [words.whereTimeWent, words.time, words.share].join(" | ") + " |",
		"|---|--:|--:|",
		...c.rows.map(r =>
			["", cell(r.text), plain(fmtDur(r.ns)), plain(fmtPct(r.ns, c.total)), ""]
				.join(" | ")
				.trim(),
		),
		"",
		"giltracer: <" + c.link.replace(/[<>\s]/g, "") + ">",
		"",
	].join("\n");
}

const WIDE = 760;
const LINE = 20;

export function cardSvg(p) {
	const c = cardOf(p),
		out = [];
	let y = 34;
	const text = (s, x, attrs = {}) =>
		out.push(svg("text", {x, y, fill: palette.ink, ...attrs}, plain(s)));
	text(shorten(c.title, 74), 20, {"font-size": 17, "font-weight": 700});
	y += 10;
	for (const [k, v] of c.facts) {
		y += LINE;
		text(k, 20, {fill: palette.soft});
		text(shorten(v, 88), 110);
	}
	y += 16;
	let x = 20;
	for (const r of c.rows) {
		const w = ((WIDE - 40) * r.ns) / c.total;
		out.push(svg("rect", {x, y, width: max(0.5, w - 1), height: 22, fill: r.color}));
		x += w;
	}
	y += 26;
	for (const r of c.rows) {
		y += LINE;
		out.push(svg("rect", {x: 20, y: y - 10, width: 11, height: 11, fill: r.color}));
		text(shorten(r.text, 78), 38);
		text(fmtDur(r.ns), WIDE - 90, {"text-anchor": "end"});
		text(fmtPct(r.ns, c.total), WIDE - 20, {"text-anchor": "end", fill: palette.soft});
	}
	y += LINE + 10;
	text(shorten("giltracer · " + c.link, 104), 20, {fill: palette.soft, "font-size": 11});
	y += 16;
	return svg(
		"svg",
		{
			width: WIDE,
			height: y,
			viewBox: "0 0 " + WIDE + " " + y,
			"font-family": "system-ui, sans-serif",
			"font-size": 13,
		},
		svg("title", {}, plain(c.title)),
		svg("rect", {width: WIDE, height: y, fill: palette.paper, rx: 10}),
		out,
	);
}

const svgText = p => new XMLSerializer().serializeToString(cardSvg(p));

async function cardPng(p) {
	const image = new Image(),
		canvas = document.createElement("canvas"),
		{width, height} = cardSvg(p).viewBox.baseVal;
	image.src = "data:image/svg+xml," + encodeURIComponent(svgText(p));
	await image.decode();
	canvas.width = width * 2;
	canvas.height = height * 2;
	canvas.getContext("2d").drawImage(image, 0, 0, width * 2, height * 2);
	return new Promise(done => canvas.toBlob(done));
}

const NAME = "giltracer-moment";

export function cardButtons(p) {
	const markdown = h("button.more", {onclick: () => copied()}, words.copyMarkdown);
	const copied = () => {
		copyText(cardMarkdown(p));
		markdown.textContent = words.copied;
	};
	const save = (ext, blob) =>
		h(
			"button.more",
			{onclick: async () => saveAs(NAME + "." + ext, await blob())},
			ext.toUpperCase(),
		);
	return h(
		"p.under",
		{role: "group", "aria-label": words.momentCard},
		h("span.soft", words.explainMoment),
		markdown,
		save("svg", () => new Blob([svgText(p)], {type: "image/svg+xml"})),
		save("png", () => cardPng(p)),
	);
}

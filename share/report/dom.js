// SPDX-License-Identifier: MIT
// Small helpers for elements. Text from recordings enters the document as text, never as HTML.

/** @type {(id: string) => any} */
export const $ = id => document.getElementById(id);

export const listen = (el, ...what) => el.addEventListener(...what);
export const click = (id, f) => listen($(id), "click", f);

const given = children => children.flat(Infinity).filter(c => (c ?? false) !== false);

// h("td.num", {title: "x"}, "text", child, …) makes an element with these classes. The attributes
// may be left out; those named on* are listeners.
/** @type {(name: string, ...what: any[]) => any} */
export function h(name, attrs, ...children) {
	const [tag, ...classes] = name.split("."),
		el = document.createElement(tag);
	if (attrs?.constructor !== Object) {
		children.unshift(attrs);
		attrs = {};
	}
	if (classes.length) el.className = classes.join(" ");
	for (const key in attrs) {
		const v = attrs[key];
		if ((v ?? false) === false) continue;
		if (key.startsWith("on")) listen(el, key.slice(2), v);
		else if (key === "style") el.style.cssText = v;
		else el.setAttribute(key, v === true ? "" : v);
	}
	el.append(...given(children));
	return el;
}

/** @type {(tag: string, attrs: object, ...children: any[]) => any} */
export function svg(tag, attrs, ...children) {
	const el = document.createElementNS($("svg-ns").namespaceURI, tag);
	for (const key in attrs) el.setAttribute(key, attrs[key]);
	el.append(...children.flat());
	return el;
}

// Elements and columns that many parts of the page use.
export const soft = (...children) => h("span.soft", children);
export const code = (text, title) => h("code", {title}, text);
export const tally = (head, csv, value, cell, title) => ({
	head,
	csv,
	num: true,
	value,
	cell,
	title,
});

export const factsList = items =>
	h(
		"dl.facts",
		items.filter(Boolean).map(([term, ...value]) => h("div", h("dt", term), h("dd", value))),
	);

// Scroll an element into view, without animation if the reader prefers reduced motion.
export function toward(id) {
	$(id).scrollIntoView({
		block: "start",
		behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
	});
}

export const fill = (el, ...children) => el.replaceChildren(...given(children));

let sayTimer = 0;
// Announce a text to screen readers: the last one within 150 ms.
export function say(text) {
	clearTimeout(sayTimer);
	sayTimer = setTimeout(() => {
		$("live").textContent = text;
	}, 150);
}

// Make one of many buttons a stop of the Tab key, and let other keys move between them:
// step(from, key, buttons) returns the button to go to.
export function rove(el, step) {
	const buttons = [...el.querySelectorAll("button")];
	const at = (button, focus) => {
		for (const b of buttons) b.tabIndex = b === button ? 0 : -1;
		if (focus) button.focus();
	};
	if (buttons.length) at(buttons[0]);
	el.onkeydown = e => {
		const to = buttons.includes(e.target) && step(e.target, e.key, buttons);
		if (!to) return;
		e.preventDefault();
		e.stopPropagation();
		at(to, true);
	};
}

// The step of a list.
export const stepInList = (from, key, buttons) =>
	buttons[buttons.indexOf(from) + {ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1}[key]];

// The step of a table: to the next button in the row, or in the same column.
export function stepInTable(from, key, buttons) {
	const by = {ArrowLeft: -1, ArrowRight: 1}[key],
		down = {ArrowUp: "previousElementSibling", ArrowDown: "nextElementSibling"}[key];
	if (by) return buttons[buttons.indexOf(from) + by];
	const cell = from.closest("td,th");
	for (let tr = down && cell.parentNode[down]; tr; tr = tr[down]) {
		const button = tr.cells[cell.cellIndex]?.querySelector("button");
		if (button) return button;
	}
	return null;
}

// What the reader chose, on this device; storage may be forbidden for files.
export function saved(key) {
	try {
		return localStorage.getItem(key);
	} catch {
		return null;
	}
}
export function save(key, value) {
	try {
		localStorage.setItem(key, value);
	} catch {
		/* then the choice is not saved */
	}
}

export function saveAs(name, blob) {
	const url = URL.createObjectURL(blob);
	const a = h("a", {href: url, download: name});
	document.body.append(a);
	a.click();
	a.remove();
	setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export async function copyText(text) {
	try {
		await navigator.clipboard.writeText(text);
	} catch {
		const area = h("textarea.visually-hidden");
		area.value = text;
		document.body.append(area);
		area.select();
		document.execCommand("copy");
		area.remove();
	}
}

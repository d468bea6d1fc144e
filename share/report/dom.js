// SPDX-License-Identifier: MIT
// Small helpers for elements. Text of others enters the document as text, never as HTML.

const $ = id => document.getElementById(id);

// h("td", {class: "num"}, "text", child, …): an element. on* are listeners.
function h(tag, attrs, ...children) {
	const el = document.createElement(tag);
	for (const key in attrs) {
		const v = attrs[key];
		if (v === null || v === undefined || v === false)
			continue;
		if (key.startsWith("on"))
			el.addEventListener(key.slice(2), v);
		else if (key === "style")
			el.style.cssText = v;
		else
			el.setAttribute(key, v === true ? "" : v);
	}
	el.append(...children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false));
	return el;
}

function svg(tag, attrs, ...children) {
	const el = document.createElementNS($("svg-ns").namespaceURI, tag);
	for (const key in attrs)
		el.setAttribute(key, attrs[key]);
	el.append(...children.flat());
	return el;
}

// What comes up again and again.
const soft = (...children) => h("span", {class: "soft"}, children);
const code = (text, title) => h("code", {title}, text);
const tally = (head, csv, value, cell, title) => ({head, csv, num: true, value, cell, title});

// Bring it into view, at once if the reader prefers stillness.
function toward(id) {
	$(id).scrollIntoView({block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth"});
}

function fill(el, ...children) {
	el.replaceChildren(...children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false));
}

let sayTimer = 0;
// For people who listen: the last thing said within a moment.
function say(text) {
	clearTimeout(sayTimer);
	sayTimer = setTimeout(() => { $("live").textContent = text; }, 150);
}

function saveAs(name, blob) {
	const url = URL.createObjectURL(blob);
	const a = h("a", {href: url, download: name});
	document.body.append(a);
	a.click();
	a.remove();
	setTimeout(() => URL.revokeObjectURL(url), 10000);
}

async function copyText(text) {
	try {
		await navigator.clipboard.writeText(text);
	} catch (e) {
		const area = h("textarea", {class: "visually-hidden"});
		area.value = text;
		document.body.append(area);
		area.select();
		document.execCommand("copy");
		area.remove();
	}
}

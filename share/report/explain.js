// SPDX-License-Identifier: MIT
// What a title says is shown where the pointer rests; here also where the focus is, and where a
// finger taps.

import {$, fill, listen} from "./dom.js";
import {max, min} from "./math.js";

let shown = null; // the element whose title is shown

function hide() {
	if (shown) $("tip").hidden = true;
	shown = null;
}

function show(el) {
	hide();
	if (!el?.title || el.title === el.textContent) return;
	const tip = $("tip"),
		at = el.getBoundingClientRect();
	shown = el;
	fill(tip, el.title);
	tip.hidden = false;
	const {width, height} = tip.getBoundingClientRect();
	tip.style.left = max(4, min(innerWidth - width - 8, at.left)) + "px";
	tip.style.top =
		(at.bottom + 6 + height > innerHeight ? at.top - height - 6 : at.bottom + 6) + "px";
}

export function explainInit() {
	listen(document, "focusin", e => e.target.matches(":focus-visible") && show(e.target));
	listen(document, "focusout", hide);
	listen(document, "click", e =>
		e.pointerType === "touch" ? show(e.target.closest("[title]")) : hide(),
	);
	addEventListener("scroll", hide, {passive: true, capture: true});
	listen(document, "keydown", e => e.key === "Escape" && hide());
}

// SPDX-License-Identifier: MIT
// Arrows at the pinned span: from which thread the GIL came, to which it went, and which woke
// which.

import {pass} from "./data.js";
import {rowOf, timeToX, tl} from "./layout.js";
import {max} from "./math.js";
import {HOLD_STATE, SLEEPING_STATE, WAIT_STATE} from "./states.js";
import {loading} from "./store.js";
import {palette} from "./theme.js";
import {turns} from "./turns.js";

// The hold of another thread nearest to t, before (by < 0) or after it: {thread, from, to}, or
// null.
function holdBeside(gil, t, by, except) {
	const {lane, threads} = turns(max(0, gil)),
		at = lane.find(by < 0 ? t - 1 : t),
		test = (s, i) => s.state[i] && threads[i] !== except,
		hit = at && (test(at.s, at.i) ? at : lane.step(at, by, test));
	return hit && {thread: threads[hit.i], from: hit.s.start[hit.i], to: hit.s.start[hit.i + 1]};
}

// [{from: thread, to: thread, t0, t1}]: from the releasing thread to the next holder, or from the
// waker to the woken thread.
export function arrowsOf(p) {
	const out = [],
		add = (from, to, t0, t1) => out.push({from, to, t0, t1});
	if (!p || p.kind === "py" || !loading.complete) return out;
	if (p.kind === "gil" && !pass().locks && [HOLD_STATE, WAIT_STATE].includes(p.state)) {
		const got = p.state === HOLD_STATE ? p.from : p.to,
			before = holdBeside(p.gil, got, -1, p.thread),
			after = p.state === HOLD_STATE && holdBeside(p.gil, p.to, 1, p.thread);
		if (before) add(before.thread, p.thread, before.to, got);
		if (after) add(p.thread, after.thread, p.to, after.from);
	}
	if (p.kind === "cpu") {
		const {s, i} = p.at,
			woken = p.state === SLEEPING_STATE ? i + 1 : i;
		if (s.waker && s.waker[woken])
			add(s.waker[woken] - 1, p.thread, s.start[woken], s.start[woken]);
	}
	return out;
}

export function drawArrows(c, pin, scroll) {
	const place = thread => {
		const row =
			rowOf({kind: pin.kind, thread}) || tl.rows.find(r => r.head && r.thread === thread);
		return row && !row.shift ? row.y + row.h / 2 - scroll : null;
	};
	c.strokeStyle = c.fillStyle = palette.ink;
	c.lineWidth = 1.5;
	for (const {from, to, t0, t1} of arrowsOf(pin)) {
		const a = place(from),
			b = place(to),
			x = timeToX(t1);
		if (a === null || b === null || a === b) continue;
		const way = Math.sign(b - a),
			tip = b - way * 6;
		c.beginPath();
		c.moveTo(timeToX(t0), a);
		c.lineTo(x, tip - way * 6);
		c.lineTo(x, tip);
		c.stroke();
		c.beginPath();
		c.moveTo(x, b);
		c.lineTo(x - 4, b - way * 9);
		c.lineTo(x + 4, b - way * 9);
		c.fill();
	}
}

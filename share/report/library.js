// SPDX-License-Identifier: MIT
// Rows of calls that are all in Python's library and nearly all have one callee only lead on to the
// program's own functions. The timeline folds them, so that these functions are visible.

import {meta} from "./data.js";
import {callName} from "./pick.js";

const LOOKED_AT = 50000; // rows with more calls are not folded

export const isLibrary = name => meta.library_marks.some(mark => name.includes(mark));

// A C function of the interpreter that only leads on to the code that it executes.
export const isInterpreter = name =>
	/^_?Py(?!Thread|GIL|Mutex|COND|Eval_[RA])|^(py)?run_|^(pymain_|builtin_exec|type_call)/.test(
		name,
	) ||
	/^(c?function|c?method|slot|vectorcall|object_v|trace_call|call_|do_call|fast_)/.test(name) ||
	/^(ext_do_call|wrap_|gen_(send|iternext))/.test(name);

// Whether all calls of a row are in the library, and those with exactly one callee take more than
// 90 % of their time.
function leadsOn(row, below) {
	if (!below || row.n > LOOKED_AT || below.n > LOOKED_AT) return false;
	for (const s of row.sections)
		for (let k = 0; k < s.names.length; k += 3)
			if (!isLibrary(callName(s.names[k]))) return false;
	const starts = below.sections.flatMap(s => Array.from(s.start.subarray(0, s.n)));
	let at = 0,
		all = 0,
		one = 0;
	for (const s of row.sections)
		for (let i = 0; i < s.n; i++) {
			let kids = 0;
			while (at < starts.length && starts[at] < s.start[i]) at++;
			for (; at < starts.length && starts[at] < s.end[i]; at++) kids++;
			all += s.end[i] - s.start[i];
			if (kids === 1) one += s.end[i] - s.start[i];
		}
	return one > 0.9 * all;
}

// The depths of a thread's rows that are shown until the reader opens the thread.
export function tellingDepths(rows) {
	const n = rows.reduce((sum, row) => sum + row.n, 0);
	if (rows.telling?.n !== n)
		rows.telling = {n, list: [...rows.keys()].filter(d => !leadsOn(rows[d], rows[d + 1]))};
	return rows.telling.list;
}

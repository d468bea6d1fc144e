// SPDX-License-Identifier: MIT
// Rows of calls that only lead on: all in the library, nearly all with one callee. The timeline
// folds them, so that the program's own functions are in sight.

import {callName} from "./pick.js";

const LOOKED_AT = 50000; // calls of a row; longer ones are not folded

export const isLibrary = name =>
	/\(.*\/(lib\/python[\d.]*|site-packages|dist-packages)\/|\(<frozen /.test(name);

// A C function of the interpreter that only leads on to what it was asked to run.
export const isInterpreter = name =>
	/^_?Py(?!Thread|GIL|Mutex|COND|Eval_[RA])|^(py)?run_|^(pymain_|builtin_exec|type_call)/.test(
		name,
	) || /^(cfunction|method|slot|vectorcall|object_v)/.test(name);

// Of the calls of a row: whether all are in the library, and the share of their time in those that
// have exactly one callee.
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

// The depths of a thread's rows that are shown while it is not opened.
export function tellingDepths(rows) {
	const n = rows.reduce((sum, row) => sum + row.n, 0);
	if (rows.telling?.n !== n)
		rows.telling = {n, list: [...rows.keys()].filter(d => !leadsOn(rows[d], rows[d + 1]))};
	return rows.telling.list;
}

/* SPDX-License-Identifier: MIT */
/*
 * The times of the program's lines, for its source with bars beside it. The line of a hold or a wait is
 * that of the innermost function which belongs neither to Python's own library nor to a package;
 * if none was fetched, that of the function itself. A hold has the line that ran when its release
 * was requested or, if that is not known, the one in which it ended.
 */
#ifndef GILTRACER_ANALYSIS_LINES_H
#define GILTRACER_ANALYSIS_LINES_H

#include <stdint.h>

#include "analysis/facts.h"
#include "analysis/locks.h"
#include "base/vec.h"

#define LINES_MAX 1000 /* those that cost most */

/**
 * @frame: one of its frames, id in the source's frames
 * @held_ns: holds of the GIL; @caused_ns: how long others waited for it meanwhile
 * @waited_ns: waits for the GIL; @lock_ns: waits for locks; @lock_caused_ns: how long threads waited
 * for locks while the line ran in the thread for which they waited in the end (locks.h); all summed
 * over threads
 * @thread, @from_ns, @to_ns: the hold or wait that cost most, of cost_ns
 */
struct line_times {
	uint32_t frame, thread;
	uint64_t held_ns, caused_ns, waited_ns, lock_ns, lock_caused_ns;
	uint64_t from_ns, to_ns, cost_ns;
};

/* @v: those with any costs: caused, waited or of locks, most first; @left: further ones */
struct code_lines {
	VEC(struct line_times) v;
	size_t left;
};

/* Free with vec_done(&lines.v). */
struct code_lines lines_find(const struct recording_pass *pass, const struct chains *chains);

#endif

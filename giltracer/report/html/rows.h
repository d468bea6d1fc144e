/* SPDX-License-Identifier: MIT */
/*
 * Python calls as the page wants them: by thread and depth, cut to the recording, never two at a
 * time in one row, names by how often they occur.
 */
#ifndef GILTRACER_REPORT_HTML_ROWS_H
#define GILTRACER_REPORT_HTML_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "report/report.h"

/**
 * @names: ids in slices->names by how often they are used, the most frequent first
 * @rank: position in names by id; of names that are not used meaningless
 * @threads: index of the model's thread by index of the slices' thread; MODEL_NONE: not recorded
 * @kept, @dropped: calls that are in rows, and calls that are not: outside the recording, of
 *                  threads not in it, or overlapping another one at their depth
 */
struct rows {
	const struct slices *slices;
	uint64_t start_ns, end_ns;
	uint32_t *names, *rank, *threads;
	uint32_t name_count;
	uint64_t kept, dropped;
};

/* Of a pass without slices: empty. Borrows from the pass. Free with rows_done. */
void rows_init(struct rows *rows, const struct recording_pass *pass);
void rows_done(struct rows *rows);

/*
 * Whether slice is kept, in the row that is taken up to *end_ns (0 at its beginning). If so, its
 * times within the recording, and *end_ns moves.
 */
bool rows_fits(const struct rows *rows, const struct slice *slice, uint64_t *end_ns,
               uint64_t *ret_start_ns);

#endif

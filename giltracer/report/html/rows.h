/* SPDX-License-Identifier: MIT */
/* Python calls in the form that the page needs: by thread and depth, cut to the recording,
 * without overlaps in a row, with names sorted by frequency. */
#ifndef GILTRACER_REPORT_HTML_ROWS_H
#define GILTRACER_REPORT_HTML_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "report/report.h"

/**
 * @names: ids in slices->names, the most frequently used first
 * @rank: position in names by id; undefined for unused names
 * @threads: index of the model's thread by index of the slices' thread; MODEL_NONE: not recorded
 * @kept, @dropped: numbers of calls that are in rows, and of those that are not: outside the
 * recording, of threads not in it, or overlapping another one at their depth
 */
struct rows {
	const struct slices *slices;
	uint64_t start_ns, end_ns;
	uint32_t *names, *rank, *threads;
	uint32_t name_count;
	uint64_t kept, dropped;
};

/* For a pass without slices, it is empty. Borrows from the pass. Free with rows_done. */
void rows_init(struct rows *rows, const struct recording_pass *pass);
void rows_done(struct rows *rows);

/* Whether slice is kept, in the row that is used up to *end_ns (initially 0). If so, sets its
 * start within the recording, and *end_ns to its end. */
bool rows_fits(const struct rows *rows, const struct slice *slice, uint64_t *end_ns,
               uint64_t *ret_start_ns);

#endif

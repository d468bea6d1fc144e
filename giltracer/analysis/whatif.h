/* SPDX-License-Identifier: MIT */
/*
 * What the threads that waited would have gained, had a function that kept the GIL (hogs.h) let go
 * of it: an estimate. The schedule of the recording is replayed (replay.h) twice: as it was, and
 * with each overdue hold of that function as work without the GIL.
 *
 * The gain is what all threads together lose less, by waiting for the GIL and by sharing the CPUs,
 * the threads of the function included. It is never more than the waiting that the function is
 * charged with; less than nothing is nothing.
 */
#ifndef GILTRACER_ANALYSIS_WHATIF_H
#define GILTRACER_ANALYSIS_WHATIF_H

#include <stdint.h>

#include "analysis/hogs.h"
#include "model/model.h"

/* Functions that are looked at, the worst ones: each is one replay. */
#define WHATIF_FUNCTIONS 5

/* Nobody asks what a function would save that caused less of all waiting, in percent. */
#define WHATIF_PERCENT 2

/* With more of all lives unknown, in percent, there is no estimate. */
#define WHATIF_UNKNOWN 10

/*
 * Fill in gain_ns of the rows of a finished model: HOGS_NO_GAIN where there is no estimate. Rows of
 * the same function in several threads are replayed together, and have their parts of the gain as
 * they have of the waiting. cpus: of the machine, 0 is taken for 1.
 */
void whatif_find(struct hogs *hogs, const struct model *model, const struct stacks *frames,
                 unsigned cpus, uint64_t interval_ns);

#endif

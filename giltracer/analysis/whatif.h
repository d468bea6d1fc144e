/* SPDX-License-Identifier: MIT */
/*
 * An estimate of the time that the threads would have gained if a function that kept the GIL
 * (hogs.h) had released it. The schedule of the recording is replayed twice: unchanged,
 * and with each overdue hold of that function as work without the GIL.
 *
 * The gain is the difference of the time that all threads together lose by waiting for the GIL and
 * by sharing CPUs, including the function's own threads. It is at most the waiting that the
 * function is charged with, and at least 0.
 */
#ifndef GILTRACER_ANALYSIS_WHATIF_H
#define GILTRACER_ANALYSIS_WHATIF_H

#include <stdint.h>

#include "analysis/hogs.h"
#include "model/model.h"

/* The number of functions to examine, those that caused most waiting: each is one replay. */
#define WHATIF_FUNCTIONS 5

/* A function that caused less than this percentage of all waiting is not examined. */
#define WHATIF_PERCENT 2

/* If more than this percentage of the lives of threads that used a GIL is unknown, there is no
 * estimate. */
#define WHATIF_UNKNOWN 10

/* Likewise if the replay without a change waits that much more or less than the recording, in
 * percent. A replay has no hand-offs, so it may also wait less by as much as they lasted. */
#define WHATIF_DIFFERENCE 5

/*
 * Fill in gain_ns or no_gain of the rows of a finished model. Rows of
 * the same function in several threads are replayed together and share the gain in proportion to
 * the waiting. cpus: number of the machine's CPUs, 0 counts as 1.
 */
void whatif_find(struct hogs *hogs, const struct model *model, const struct stacks *frames,
                 unsigned cpus, uint64_t interval_ns);

/* The replays without a GIL: with the CPUs of the machine, and with more. */
#define WHATIF_FREE_RUNS 3

/**
 * A replay. @cpus: their number; @waited_ns, @shared_ns: what all threads lose by waiting for the GIL, and by
 * sharing CPUs
 */
struct whatif_run {
	unsigned cpus;
	uint64_t waited_ns, shared_ns;
};

/**
 * The recorded schedule without a GIL. What a thread does takes as long as it did, also its sleeps and
 * its waits for locks: what a lock costs that the GIL made unnecessary, or an interpreter that is
 * slower, is not in it.
 * @no_gain: GAIN_KNOWN, NO_GAIN_UNKNOWN, NO_GAIN_DIFFERENT or NO_GAIN_TOO_LONG: only then there are @runs
 * @recorded_ns: the waiting for the GIL as recorded; @unchanged: the replay with the GIL
 */
struct whatif_free {
	enum no_gain no_gain;
	uint64_t recorded_ns;
	struct whatif_run unchanged, runs[WHATIF_FREE_RUNS];
};

/* hogs: of the model, with its overdue holds; cpus, interval_ns: as for whatif_find. */
void whatif_free_find(struct whatif_free *ret, const struct hogs *hogs, const struct model *model,
                      unsigned cpus, uint64_t interval_ns);

#endif

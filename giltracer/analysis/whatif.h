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

#include <stdbool.h>
#include <stdint.h>

#include "analysis/hogs.h"
#include "base/vec.h"
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

/* A replay with the GIL that takes that much more or less time than the recording, in percent,
 * is not one of it. */
#define WHATIF_DURATION 15

/* The most replays without a GIL. */
#define WHATIF_FREE_RUNS 8

/* How many times as long Python code runs without a GIL in one thread, if nothing else is said:
 * the median of seven kinds of code on 3.13t against 3.13, from 1.05 (arithmetic) to 2.6
 * (method calls). */
#define WHATIF_FACTOR 1.2

/**
 * @cpus: of each of @runs replays; two that share a core may count as less than two
 * @factor: how many times as long Python code runs
 */
struct whatif_options {
	double cpus[WHATIF_FREE_RUNS];
	unsigned runs;
	double factor;
};

#define WHATIF_OPTIONS_DEFAULT                                              \
	{                                                                   \
		.cpus = { 2, 4, 8, 64 }, .runs = 4, .factor = WHATIF_FACTOR \
	}

/**
 * A replay. @cpus: their number; @waited_ns, @shared_ns: what all threads lose by waiting for the GIL, and by
 * sharing CPUs; @worked_ns: CPU time; @end_ns: when the main thread has ended
 */
struct whatif_run {
	double cpus;
	uint64_t waited_ns, shared_ns, worked_ns, end_ns;
};

/* What a thread does on the critical path: WHATIF_PYTHON: what it did with the GIL. */
enum whatif_kind { WHATIF_PYTHON, WHATIF_C, WHATIF_ASLEEP, WHATIF_KINDS };

/* A part of a critical path. @frame: what ran, id in the source's frames; 0: unknown; @thread:
 * MODEL_NONE: several */
struct whatif_part {
	uint32_t frame, thread;
	enum whatif_kind kind;
	double ns;
};

/**
 * The recorded schedule without a GIL, until the main thread ends. A thread that waited for a
 * lock, a signal or the end of another thread waits until the thread that ended this has come
 * as far; without such a thread, it waits as long as it did, and so it sleeps. Waits that did
 * not happen, because the GIL kept threads apart, are not in it.
 * @no_gain: GAIN_KNOWN, NO_GAIN_UNKNOWN, NO_GAIN_DIFFERENT or NO_GAIN_TOO_LONG: only with the
 * first and third there are @runs
 * @recorded_ns: the waiting for the GIL as recorded; @duration_ns: of the recording;
 * @unchanged: the replay with the GIL
 * @states_known: it was recorded when threads were on a CPU; else, a thread without the GIL
 * needs none
 * @path: the critical path of the last of the runs, by function, the longest first
 * @lock: the lock that threads handed to each other on most of that path, @lock_ns of it;
 * MODEL_NONE: none
 */
struct whatif_free {
	enum no_gain no_gain;
	uint64_t recorded_ns, duration_ns;
	struct whatif_run unchanged, runs[WHATIF_FREE_RUNS];
	unsigned run_count;
	bool states_known;
	VEC(struct whatif_part) path;
	uint32_t lock;
	double lock_ns;
};

/* hogs: of the model, with its overdue holds; frames: NULL: no function is known; cpus,
 * interval_ns: as for whatif_find. Free with whatif_free_done. */
void whatif_free_find(struct whatif_free *ret, const struct hogs *hogs, const struct model *model,
                      const struct stacks *frames, unsigned cpus, uint64_t interval_ns,
                      const struct whatif_options *options);
void whatif_free_done(struct whatif_free *f);

#endif

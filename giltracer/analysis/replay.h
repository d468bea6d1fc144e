/* SPDX-License-Identifier: MIT */
/*
 * Replays the schedule of a finished model m with other rules. In every replay
 *
 *	each thread starts when it did; its holds, and its time without the GIL, are as long as
 *	they were, whatever the others do: a thread that slept for another one sleeps as long,
 *
 *	the GIL is granted at once, in the order of requests; but a thread that had it again after
 *	a release, before any other thread, has it again,
 *
 *	Python code releases the GIL on request, as hogs.h says; an overdue hold lasts as long as
 *	it did,
 *
 *	a hold that releases the GIL in this replay takes the GIL before and again after its work,
 *	which is as long as before,
 *
 *	running threads share the CPUs evenly; time in which a thread was runnable without a CPU
 *	counts as work, and a sleeping thread needs no CPU.
 */
#ifndef GILTRACER_ANALYSIS_REPLAY_H
#define GILTRACER_ANALYSIS_REPLAY_H

#include <stdint.h>

#include "analysis/hogs.h"
#include "model/model.h"

/* The group of no overdue hold: replays the schedule unchanged. */
#define REPLAY_NO_GROUP UINT32_MAX

/* A replay is aborted after REPLAY_STEPS for each span plus REPLAY_MORE_STEPS; this happens with
 * holds that last for days. */
#define REPLAY_STEPS      64
#define REPLAY_MORE_STEPS 100000

/* Time in ns that all threads together lose by waiting for the GIL and by sharing CPUs. */
struct replayed {
	double waited, shared;
	bool aborted;
};

/*
 * The result if the overdue holds of a group release the GIL. groups:
 * group of each overdue hold; cpus: number of the machine's CPUs, 0 counts as 1; interval_ns: the
 * switch interval.
 */
struct replayed replay(const struct model *m, const struct hogs *hogs, const uint32_t *groups,
                       uint32_t group, unsigned cpus, uint64_t interval_ns);

#endif

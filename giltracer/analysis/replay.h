/* SPDX-License-Identifier: MIT */
/*
 * The schedule of a finished model m, played again with other rules. In every replay
 *
 *	each thread starts when it did; its holds, and its time without the GIL, are as long as
 *	they were, whatever the others do: who slept for something sleeps as long for it,
 *
 *	the GIL is granted at once, in the order of requests,
 *
 *	Python code lets go when it is asked to, as hogs.h says; a overdue hold lasts,
 *
 *	who lets go takes the GIL before and again behind its work, which is as long as before,
 *
 *	threads that run share the CPUs evenly; who was runnable without one needs it as long again,
 *	who sleeps needs none.
 */
#ifndef GILTRACER_ANALYSIS_REPLAY_H
#define GILTRACER_ANALYSIS_REPLAY_H

#include <stdint.h>

#include "analysis/hogs.h"
#include "model/model.h"

/* The group of no overdue hold: the schedule as it was. */
#define REPLAY_NO_GROUP UINT32_MAX

/* A replay that takes more than REPLAY_STEPS for each span, plus REPLAY_MORE_STEPS, is given up:
 * this happens with holds that last for days. */
#define REPLAY_STEPS      64
#define REPLAY_MORE_STEPS 100000

/*
 * What all threads together lose, in ns, by waiting for the GIL and by sharing the CPUs, if the
 * overdue holds of a group let go of it. Negative: given up. groups: of each of the overdue holds;
 * cpus: of the machine, 0 is taken for 1; interval_ns: the switch interval.
 */
double replay(const struct model *m, const struct hogs *hogs, const uint32_t *groups,
              uint32_t group, unsigned cpus, uint64_t interval_ns);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * How many tasks of a group ran, were late and waited, over the time of the recording: exactly or,
 * for a group with many steps, in equal parts of the recording.
 */
#ifndef GILTRACER_ANALYSIS_TASK_LEVELS_H
#define GILTRACER_ANALYSIS_TASK_LEVELS_H

#include "analysis/task_groups.h"

/* The maximum number of levels of a group. */
#define TASK_LEVELS 256

enum task_state {
	TASK_RUNNING,
	TASK_LATE,
	TASK_WAITING,
	TASK_UNKNOWN, /* it waited or was late */
	TASK_STATES,
};

/* A part of the recording: its length, and the time in it in each state, summed over the tasks. */
struct task_level {
	uint64_t dur_ns, ns[TASK_STATES];
};

/**
 * @v: contiguous, from the start of the recording to its end
 * @exact: no task changes its state within a level
 */
struct task_levels {
	VEC(struct task_level) v;
	bool exact;
};

/* The levels of the group with that index. Free with task_levels_done. */
void task_levels_init(struct task_levels *ret, const struct task_groups *groups,
                      const struct recording_pass *pass, uint32_t group);
void task_levels_done(struct task_levels *levels);

static inline void cleanup_task_levels_done(struct task_levels *levels)
{
	task_levels_done(levels);
}

#endif

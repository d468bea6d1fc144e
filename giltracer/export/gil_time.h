/* SPDX-License-Identifier: MIT */
/* Time of a thread by Python stack: holding the GIL, making others wait, and waiting. */
#ifndef GILTRACER_EXPORT_GIL_TIME_H
#define GILTRACER_EXPORT_GIL_TIME_H

#include "analysis/analysis.h"
#include "analysis/pystack.h"
#include "base/idmap.h"
#include "base/vec.h"

/* Without a GIL: CAUSED is unknown, HOLD is stopping the others, WAIT is being blocked. */
enum gil_time { GIL_TIME_CAUSED, GIL_TIME_HOLD, GIL_TIME_WAIT, GIL_TIMES };

struct gil_time_row {
	uint32_t stack; /* 0: unknown */
	uint64_t ns[GIL_TIMES];
};

/**
 * @rows: the stacks with any time
 * @stacks: in which their ids are; NULL if there are none
 * @calls: the stacks are calls of a trace, not frames read by the probes
 * The rest is private.
 */
struct gil_times {
	VEC(struct gil_time_row) rows;
	const struct stacks *stacks;
	bool calls;
	struct idmap by_stack;
	struct pystack py;
};

/*
 * The times of one thread. With calls, each ns is charged to the call that was running. Else a hold
 * and the waits for it are charged to the function in which the hold ended (see hogs.h), a wait to
 * the function that waited. Borrows from the analysis; free with gil_times_done.
 */
void gil_times_of(struct gil_times *ret, const struct analysis *analysis, uint32_t thread);
void gil_times_done(struct gil_times *times);

#endif

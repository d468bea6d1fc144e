/* SPDX-License-Identifier: MIT */
/* How long a thread was in each state of the GIL, in equal parts of the recording. */
#ifndef GILTRACER_ANALYSIS_GIL_PARTS_H
#define GILTRACER_ANALYSIS_GIL_PARTS_H

#include "model/model.h"

#define GIL_PARTS 512

/* The states that a coarse picture distinguishes; unknown time is in none of them. */
enum gil_part_state {
	PART_HOLD, /* or stopping the world */
	PART_WAIT, /* for the GIL or a lock, or stopped */
	PART_FREE_WAIT,
	PART_NO_GIL,
	PART_STATES,
};

/* @width_ns: duration of a part; the last one may end later than the recording */
struct gil_parts {
	uint64_t start_ns, width_ns;
	uint64_t ns[PART_STATES][GIL_PARTS];
};

/* locks: the GIL is off, and what is shown instead is what blocks threads. */
void gil_parts_init(struct gil_parts *ret, const struct model *model, uint32_t thread, bool locks);

#endif

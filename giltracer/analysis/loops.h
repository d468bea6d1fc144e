/* SPDX-License-Identifier: MIT */
/* Event loops that wait for the GIL when their selector returns: see patterns.h. */
#ifndef GILTRACER_ANALYSIS_LOOPS_H
#define GILTRACER_ANALYSIS_LOOPS_H

#include <stdbool.h>

#include "analysis/patterns.h"

/* Whether the frame belongs to a selector that asyncio's loop called. False for frame 0. */
bool loops_is_selector(const struct stacks *frames, uint32_t frame);

/**
 * How long a thread waited for the GIL between two times.
 * @holder: the thread that held it most of that time, MODEL_NONE: none is known
 * @frame: the holder's frame, id in the frames, 0: unknown
 */
struct loops_wait {
	uint64_t ns;
	uint32_t holder, frame;
};

/* frames may be NULL. */
struct loops_wait loops_waited(const struct model *m, const struct stacks *frames, uint32_t thread,
                               uint64_t from_ns, uint64_t to_ns);

/* Sets all members of p but the share, for its thread. Returns false if no wait of the thread is a
 * loop's. */
bool loops_measure(struct pattern *p, const struct model *m, const struct stacks *frames);

#endif

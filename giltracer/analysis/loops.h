/* SPDX-License-Identifier: MIT */
/* Event loops that wait for the GIL when their selector returns: see patterns.h. */
#ifndef GILTRACER_ANALYSIS_LOOPS_H
#define GILTRACER_ANALYSIS_LOOPS_H

#include <stdbool.h>

#include "analysis/patterns.h"

/* Whether the frame is a selector's, called by asyncio's loop. 0 is none. */
bool loops_is_selector(const struct stacks *frames, uint32_t frame);

/* Fill in p, of whose thread, but for the share. False: no wait of it is a loop's. */
bool loops_measure(struct pattern *p, const struct model *m, const struct stacks *frames);

#endif

/* SPDX-License-Identifier: MIT */
/* How much longer the program took because it was traced. */
#ifndef GILTRACER_ANALYSIS_SLOWDOWN_H
#define GILTRACER_ANALYSIS_SLOWDOWN_H

#include <stdbool.h>

#include "model/model.h"

#define SLOWDOWN_NOTE_PERCENT 5

/**
 * @ratio: of the time that the run took to what it would have taken
 * @own_ns: the part of it that tracing itself took: of the thread in which that was most or, for
 * recorded calls, which run one at a time, of a process. Measured for one event, times their number
 * @lost_ns: with the waiting that tracing caused. @inferred: known, from the rate of turns after the
 * uprobes were removed; otherwise it is own_ns, and the true ratio may be higher
 */
struct slowdown {
	double ratio;
	uint64_t own_ns, lost_ns;
	bool inferred;
};

/* Whether it is more than SLOWDOWN_NOTE_PERCENT. */
bool slowdown_find(struct slowdown *ret, const struct model *model);

#endif

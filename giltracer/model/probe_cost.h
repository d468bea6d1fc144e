/* SPDX-License-Identifier: MIT */
/*
 * What the GIL's probes cost each thread, without the waiting that they cause. A turn takes about
 * 100 ns without probes. If the program measured a turn with probes, the cost is the difference,
 * times the number of turns. Otherwise it is an estimate, and a lower bound: the rest of a free wait
 * is usually the cost of one probe, so it is the median of a thread's free waits, minus 100 ns, times
 * the number of its GIL events.
 */
#ifndef GILTRACER_MODEL_PROBE_COST_H
#define GILTRACER_MODEL_PROBE_COST_H

#include "model/model.h"

#define PROBE_COST_NOTE_PERCENT 2

/* If the probes take this share of the CPU time of all threads, the report recommends the preload
 * engine. */
#define PROBES_SLOW_PERCENT 5

/* Sets probe_cost_ns, counts the threads for which it matters, and decides whether it matters for
 * the whole recording. Call it after stats_finish. */
void probe_cost_finish(struct model *m, uint64_t turn_ns);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What the GIL's probes cost each thread: an estimate, and a lower bound. To take a GIL that is
 * free takes about 100 ns; whatever else a free wait lasts is the price of one probe, most of the
 * time. So the median of a thread's free waits, less that, times the number of its GIL events.
 */
#ifndef GILTRACER_MODEL_PROBE_COST_H
#define GILTRACER_MODEL_PROBE_COST_H

#include "model/model.h"

#define PROBE_COST_NOTE_PERCENT 2

/* If the probes take this share of the CPU time of all threads, the report recommends the preload
 * engine. */
#define PROBES_SLOW_PERCENT 5

/* Whether it is so much of the known part of the thread's life that the reader has to know. */
bool probe_cost_matters(const struct model_thread *thread);

/* Fill in probe_cost_ns, count the threads for which it matters, and decide whether it matters for
 * all. To be called after stats_finish. */
void probe_cost_finish(struct model *m);

#endif

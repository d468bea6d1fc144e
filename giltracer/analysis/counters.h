/* SPDX-License-Identifier: MIT */
/* What perf counted in addition to the GIL (--event), by counter and thread. */
#ifndef GILTRACER_ANALYSIS_COUNTERS_H
#define GILTRACER_ANALYSIS_COUNTERS_H

#include "analysis/recording.h"
#include "base/vec.h"

/* @counter: index in the source's counters; @count: the sum of the samples; @samples: how many */
struct counter_row {
	uint32_t counter, thread;
	uint64_t count, samples;
};

struct counter_rows {
	VEC(struct counter_row) v;
};

/* A row for each counter and thread with samples of it: counter by counter, threads in that order.
 * Each sample stands for everything counted since the previous one; what came after the last sample
 * is missing. Free with vec_done(&rows.v). */
struct counter_rows counters_find(const struct recording_pass *pass, const uint32_t *thread_order);

#endif

/* SPDX-License-Identifier: MIT */
/* Events that perf counted in addition (--event), by counter and thread. */
#ifndef GILTRACER_ANALYSIS_COUNTERS_H
#define GILTRACER_ANALYSIS_COUNTERS_H

#include "analysis/recording.h"
#include "base/vec.h"

/* @counter: index in the source's counters; @count: sum of the samples; @samples: their number */
struct counter_row {
	uint32_t counter, thread;
	uint64_t count, samples;
};

struct counter_rows {
	VEC(struct counter_row) v;
};

/* A row for each counter and thread that has samples, counter by counter, with the threads in the
 * given order. Each sample counts everything since the previous one; events after the last sample
 * are missing. Free with vec_done(&rows.v). */
struct counter_rows counters_find(const struct recording_pass *pass, const uint32_t *thread_order);

#endif

/* SPDX-License-Identifier: MIT */
/* Adds up the counters of --event for each thread. */
#include "analysis/counters.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "trace/source.h"

struct counter_rows counters_find(const struct recording_pass *pass, const uint32_t *thread_order)
{
	const struct model *model = pass->model;
	size_t counters = pass->source ? pass->source->counter_count : 0, n = model->threads.n;
	CLEANUP(free) struct counter_row *sums = xcalloc(n * counters + 1, sizeof(*sums));
	struct counter_rows ret = { 0 };

	for (size_t i = 0; i < model->counts.n; i++) {
		const struct model_counter_sample *sample = &model->counts.v[i];
		struct counter_row *sum;

		if (sample->counter >= counters)
			continue;
		sum = &sums[sample->counter * n + sample->thread];
		sum->counter = sample->counter;
		sum->thread = sample->thread;
		sum->count += sample->value;
		sum->samples++;
	}
	for (size_t i = 0; i < n * counters; i++) {
		const struct counter_row *sum = &sums[i / n * n + thread_order[i % n]];

		if (sum->samples)
			*vec_push(&ret.v) = *sum;
	}
	return ret;
}

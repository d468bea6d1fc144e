/* SPDX-License-Identifier: MIT */
/* Sums of counters. */
#include "counters.h"

#include <stdlib.h>

#include "analysis/facts.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "report/json.h"
#include "trace/source.h"

struct sum {
	uint64_t count, samples;
};

/* One row of sums per counter, one column per thread. */
static struct sum *add_up(const struct model *model, size_t counters)
{
	struct sum *sums = xcalloc(model->threads.n * counters + 1, sizeof(*sums));

	for (size_t i = 0; i < model->counts.n; i++) {
		const struct model_counter_sample *sample = &model->counts.v[i];
		struct sum *sum;

		if (sample->counter >= counters)
			continue;
		sum = &sums[sample->counter * model->threads.n + sample->thread];
		sum->count += sample->value;
		sum->samples++;
	}
	return sums;
}

static void put_counter(struct jsonw *w, const struct recording_pass *pass, const char *name,
                        const struct sum *sums, const uint32_t *order)
{
	for (size_t i = 0; i < pass->model->threads.n; i++) {
		const struct sum *sum = &sums[order[i]];

		if (!sum->samples)
			continue;
		jsonw_object(w, NULL);
		jsonw_string(w, "name", name);
		json_tid(w, "tid", pass->model, order[i]);
		jsonw_u64(w, "count", sum->count);
		jsonw_u64(w, "samples", sum->samples);
		jsonw_end(w);
	}
}

void counters_json(struct jsonw *w, const struct analysis *a)
{
	const struct recording_pass *pass = a->pass;
	size_t n = pass->source ? pass->source->counter_count : 0;
	CLEANUP(free) struct sum *sums = add_up(pass->model, n);

	jsonw_array(w, "counters");
	for (size_t i = 0; i < n; i++)
		put_counter(w, pass, pass->source->counters[i], &sums[i * pass->model->threads.n],
		            a->thread_order);
	jsonw_end(w);
}

/* SPDX-License-Identifier: MIT */
/* Recordings constructed to be slow to analyse: the cost must not be quadratic. */
#include <stdlib.h>

#include "analysis/counters.h"
#include "model/model.h"
#include "trace/source.h"

#include "growth.h"

/* As many counters as threads. Each thread has one sample. */
static void count_events(size_t n)
{
	struct source source = { .counter_count = n };
	struct model model = { 0 };
	struct recording_pass pass = { .model = &model, .source = &source };
	uint32_t *order = calloc(n, sizeof(*order));
	struct counter_rows rows;
	size_t wrong = 0;

	for (uint32_t i = 0; order && i < n; i++) {
		order[i] = (uint32_t)n - 1 - i;
		*vec_push(&model.threads) = (struct model_thread){ 0 };
		*vec_push(&model.counts) = (struct model_counter_sample){
			.thread = i, .counter = (uint32_t)n - 1 - i / 2 * 2, .value = i
		};
	}
	rows = counters_find(&pass, order);
	for (uint32_t i = 0; i < rows.v.n; i++)
		wrong += rows.v.v[i].thread != n - 1 - i || rows.v.v[i].count != n - 1 - i;
	if (rows.v.n != n || wrong)
		abort();
	vec_done(&rows.v);
	vec_done(&model.counts);
	vec_done(&model.threads);
	free(order);
}

int main(void)
{
	growth_ok(count_events, 1000, "counters of as many threads");
	return done_testing();
}

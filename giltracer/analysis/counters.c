/* SPDX-License-Identifier: MIT */
/* Adds up the counters of --event for each thread. */
#include "analysis/counters.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/idmap.h"
#include "trace/source.h"

static int compare_rows(const void *va, const void *vb)
{
	const struct counter_row *a = va, *b = vb;

	if (a->counter != b->counter)
		return a->counter < b->counter ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
}

/* A row for each pair that has samples, because there may be many counters and many threads. Each
 * row's thread is its place in the order. */
static void add_up(struct counter_rows *rows, const struct model *model, size_t counters,
                   const uint32_t *place)
{
	struct idmap row_of = { 0 };

	for (size_t i = 0; i < model->counts.n; i++) {
		const struct model_counter_sample *sample = &model->counts.v[i];
		uint64_t key = idmap_pair(sample->counter, sample->thread);
		uint32_t row;

		if (sample->counter >= counters)
			continue;
		if (idmap_add(&row_of, key, (uint32_t)rows->v.n, &row))
			*vec_push(&rows->v) = (struct counter_row){ sample->counter,
				                                    place[sample->thread], 0, 0 };
		rows->v.v[row].count += sample->value;
		rows->v.v[row].samples++;
	}
	idmap_done(&row_of);
}

struct counter_rows counters_find(const struct recording_pass *pass, const uint32_t *thread_order)
{
	const struct model *model = pass->model;
	size_t counters = pass->source ? pass->source->counter_count : 0, n = model->threads.n;
	CLEANUP(free) uint32_t *place = xcalloc(n + 1, sizeof(*place));
	struct counter_rows ret = { 0 };

	for (uint32_t i = 0; i < n; i++)
		place[thread_order[i]] = i;
	add_up(&ret, model, counters, place);
	if (ret.v.n)
		qsort(ret.v.v, ret.v.n, sizeof(*ret.v.v), compare_rows);
	for (size_t i = 0; i < ret.v.n; i++)
		ret.v.v[i].thread = thread_order[ret.v.v[i].thread];
	return ret;
}

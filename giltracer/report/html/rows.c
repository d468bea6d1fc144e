/* SPDX-License-Identifier: MIT */
/* Decides which Python calls are shown, and in which row. */
#include "report/html/rows.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "trace/names.h"

bool rows_fits(const struct rows *rows, const struct slice *slice, uint64_t *end_ns,
               uint64_t *ret_start_ns)
{
	uint64_t start = slice->start_ns, end = slice->start_ns + slice->dur_ns;

	if (start < rows->start_ns)
		start = rows->start_ns;
	if (end > rows->end_ns)
		end = rows->end_ns;
	if (end < slice->start_ns || start > end || start < *end_ns)
		return false;
	*end_ns = end;
	*ret_start_ns = start;
	return true;
}

/* A tid may be reused during a recording; the calls belong to the thread that existed when they
 * began. */
static void find_threads(struct rows *rows, const struct recording_pass *pass)
{
	const struct model *model = pass->model;
	const struct slices *slices = pass->slices;

	for (size_t i = 0; i < slices->thread_count; i++)
		rows->threads[i] = MODEL_NONE;
	for (uint32_t i = 0; i < model->threads.n; i++) {
		const struct model_thread *t = &model->threads.v[i];
		const struct slice_thread *st = slices_find(slices, t->pid, t->tid);
		uint32_t *found = st ? &rows->threads[st - slices->threads] : NULL;

		if (found && (*found == MODEL_NONE || (st->n && t->start_ns <= st->v[0].start_ns)))
			*found = i;
	}
}

static void count_thread(struct rows *rows, const struct slice_thread *st, uint64_t *uses)
{
	CLEANUP(free) uint64_t *ends = xcalloc((size_t)st->max_depth + 1, sizeof(*ends));
	uint64_t start;

	for (size_t i = 0; i < st->n; i++) {
		if (!rows_fits(rows, &st->v[i], &ends[st->v[i].depth], &start))
			continue;
		uses[st->v[i].name]++;
		rows->kept++;
	}
}

static int compare_uses(const void *a, const void *b, void *data)
{
	const uint64_t *uses = data;
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;

	if (uses[ia] != uses[ib])
		return uses[ia] < uses[ib] ? 1 : -1;
	return (ia > ib) - (ia < ib);
}

static void rank_names(struct rows *rows, uint32_t count, uint64_t *uses)
{
	rows->names = xcalloc((size_t)count + 1, sizeof(*rows->names));
	rows->rank = xcalloc((size_t)count + 1, sizeof(*rows->rank));
	for (uint32_t id = 0; id < count; id++)
		if (uses[id])
			rows->names[rows->name_count++] = id;
	qsort_r(rows->names, rows->name_count, sizeof(*rows->names), compare_uses, uses);
	for (uint32_t i = 0; i < rows->name_count; i++)
		rows->rank[rows->names[i]] = i;
}

void rows_init(struct rows *rows, const struct recording_pass *pass)
{
	const struct slices *slices = pass->slices;
	CLEANUP(free) uint64_t *uses = NULL;
	uint32_t name_count;

	*rows = (struct rows){
		.slices = slices,
		.start_ns = pass->model->start_ns,
		.end_ns = pass->model->end_ns,
	};
	if (!slices)
		return;
	name_count = names_count(slices->names);
	uses = xcalloc((size_t)name_count + 1, sizeof(*uses));
	rows->threads = xcalloc(slices->thread_count + 1, sizeof(*rows->threads));
	find_threads(rows, pass);
	for (size_t i = 0; i < slices->thread_count; i++) {
		if (rows->threads[i] != MODEL_NONE)
			count_thread(rows, &slices->threads[i], uses);
		rows->dropped += slices->threads[i].n;
	}
	rows->dropped -= rows->kept;
	rank_names(rows, name_count, uses);
}

void rows_done(struct rows *rows)
{
	free(rows->names);
	free(rows->rank);
	free(rows->threads);
	*rows = (struct rows){ 0 };
}

/* SPDX-License-Identifier: MIT */
/* Reduces the stretches of waits without a GIL to those that the page shows. */
#include "analysis/released.h"

#include <stdlib.h>

static int longest_first(const void *va, const void *vb)
{
	const struct model_blocked *a = va, *b = vb;
	uint64_t a_ns = a->end_ns - a->start_ns, b_ns = b->end_ns - b->start_ns;

	if (a_ns != b_ns)
		return a_ns < b_ns ? 1 : -1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static int earliest_first(const void *va, const void *vb)
{
	const struct model_blocked *a = va, *b = vb;

	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Joins neighbours among the stretches of one wait, which are those from index first on. */
static void join(struct model_blocked_list *list, size_t first)
{
	size_t n = first;

	for (size_t i = first; i < list->v.n; i++) {
		const struct model_blocked *part = &list->v.v[i];

		if (n > first && list->v.v[n - 1].by == part->by)
			list->v.v[n - 1].end_ns = part->end_ns;
		else
			list->v.v[n++] = *part;
	}
	list->v.n = n;
}

/* Keeps the longest stretches of one wait. */
static void shorten(struct model_blocked_list *list, size_t first)
{
	size_t n = list->v.n - first;
	struct model_blocked *parts;

	if (n <= RELEASED_ROWS)
		return;
	parts = list->v.v + first;
	qsort(parts, n, sizeof(*parts), longest_first);
	qsort(parts, RELEASED_ROWS, sizeof(*parts), earliest_first);
	list->v.n = first + RELEASED_ROWS;
}

void released_find(struct model_blocked_list *ret, const struct model *model, uint32_t thread,
                   uint64_t *work)
{
	*ret = (struct model_blocked_list){ 0 };
	for (size_t i = 0; i < model->threads.v[thread].gil.spans.n; i++) {
		size_t first = ret->v.n;

		model_blocked(model, thread, i, work, ret);
		join(ret, first);
		shorten(ret, first);
	}
}

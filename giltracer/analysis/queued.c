/* SPDX-License-Identifier: MIT */
/* Sums up which threads and programs had the CPUs during each runnable span. */
#include "analysis/queued.h"

#include <stdlib.h>

#include "model/span.h"

/* State for the current runnable span, whose rows begin at first. */
struct gathering {
	struct queued *queued;
	size_t first;
	uint64_t start_ns;
};

static void add_part(void *data, const struct model_queued *part)
{
	struct gathering *g = data;
	uint64_t ns = part->to_ns - part->from_ns;

	for (size_t i = g->first; i < g->queued->rows.n; i++) {
		struct queued_row *row = &g->queued->rows.v[i];

		if (row->cpu == part->cpu && row->by == part->by && row->name == part->name) {
			row->ns += ns;
			return;
		}
	}
	*vec_push(&g->queued->rows) = (struct queued_row){ g->start_ns, ns, part->cpu, part->by,
		                                           part->name };
}

static int compare_rows(const void *a, const void *b)
{
	const struct queued_row *ra = a, *rb = b;

	if (ra->ns != rb->ns)
		return ra->ns < rb->ns ? 1 : -1;
	if (ra->by != rb->by)
		return ra->by < rb->by ? -1 : 1;
	return (ra->name > rb->name) - (ra->name < rb->name);
}

void queued_find(struct queued *ret, const struct model *model, uint32_t thread)
{
	const struct lane *lane = &model->threads.v[thread].cpu;
	struct gathering g = { .queued = ret };

	*ret = (struct queued){ 0 };
	for (size_t i = 0; model->cpu_blame.n && i < lane->spans.n; i++) {
		const struct span *s = &lane->spans.v[i];

		if (s->state != CPU_RUNNABLE ||
		    lane_span_end(lane, i) - s->start_ns < QUEUED_MIN_NS)
			continue;
		g.first = ret->rows.n;
		g.start_ns = s->start_ns;
		model_queued_parts(model, thread, i, add_part, &g);
		qsort(ret->rows.v + g.first, ret->rows.n - g.first, sizeof(*ret->rows.v),
		      compare_rows);
		if (ret->rows.n - g.first > QUEUED_ROWS)
			ret->rows.n = g.first + QUEUED_ROWS;
	}
}

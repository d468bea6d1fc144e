/* SPDX-License-Identifier: MIT */
/* Lanes of GIL and CPU into sections. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/span.h"
#include "report/encoder.h"
#include "report/facts.h"

/* Where a pass shows locks instead of a GIL, the states of a GIL stand for them, see FORMAT.md. */
static unsigned shown_state(const struct encoder *e, const struct span *span)
{
	if (!gil_state_is_without(span->state) || !e->locks)
		return gil_state_is_without(span->state) ? GIL_NO : span->state;
	switch (span->state) {
	case GIL_LOCK_WAIT:
		return GIL_WAIT;
	case GIL_STOPPED:
		return GIL_SWITCH_WAIT;
	case GIL_STOPPING:
		return GIL_HOLD;
	default:
		return GIL_NO;
	}
}

static void gil_section(struct encoder *e, const struct lane *lane, size_t from, uint32_t n)
{
	uint32_t shift = encoder_frames_shift(e->pass->source);
	uint64_t gil = 1;

	for (uint32_t i = 0; i < n; i++) {
		const struct span *span = &lane->spans.v[from + i];
		uint64_t now = (uint64_t)(uint32_t)(span->ref + 1);

		column_put(&e->full[0], (lane_span_end(lane, from + i) - span->start_ns) << 3 |
		                                shown_state(e, span));
		if (!gil_state_is_without(span->state) && span->state != GIL_UNKNOWN &&
		    now != gil) {
			sparse_put(&e->sparse[0], i, now);
			gil = now;
		}
		if (span->flags)
			sparse_put(&e->sparse[1], i, span->flags);
		if (span->stack)
			sparse_put(&e->sparse[2], i, (uint64_t)span->stack + shift);
	}
}

static void cpu_section(struct encoder *e, const struct lane *lane, size_t from, uint32_t n)
{
	int cpu = -1;

	for (uint32_t i = 0; i < n; i++) {
		const struct span *span = &lane->spans.v[from + i];

		column_put(&e->full[0],
		           (lane_span_end(lane, from + i) - span->start_ns) << 3 | span->state);
		if (span->state == CPU_RUNNING && span->cpu != cpu) {
			cpu = span->cpu;
			sparse_put(&e->sparse[0], i, (uint64_t)(cpu + 1));
		}
		if (span->ref != MODEL_NONE)
			sparse_put(&e->sparse[1], i, (uint64_t)span->ref + 1);
		if (span->stack)
			sparse_put(&e->sparse[2], i, span->stack);
	}
}

static void put_lane(struct encoder *e, const char *kind, uint32_t thread, const struct lane *lane,
                     void (*section)(struct encoder *, const struct lane *, size_t, uint32_t))
{
	for (size_t from = 0; from < lane->spans.n; from += SECTION_MAX) {
		uint32_t n = section_size(lane->spans.n - from);

		encoder_clear(e);
		section(e, lane, from, n);
		encoder_full(e, 1);
		encoder_sparse(e, 3);
		blocks_section(e->blocks, n,
		               "\"kind\":\"%s\",\"pass\":%zu,\"thread\":%" PRIu32
		               ",\"start\":%" PRIu64 "%s",
		               kind, e->index, thread,
		               lane->spans.v[from].start_ns - e->model->start_ns,
		               e->locks && !strcmp(kind, "gil") ? ",\"locks\":1" : "");
	}
}

void encode_lanes(struct encoder *e)
{
	CLEANUP(free) uint32_t *order = facts_thread_order(e->model);
	size_t n = e->model->threads.n;

	for (size_t i = 0; i < n; i++)
		put_lane(e, "gil", order[i], &e->model->threads.v[order[i]].gil, gil_section);
	for (size_t i = 0; i < n; i++)
		put_lane(e, "cpu", order[i], &e->model->threads.v[order[i]].cpu, cpu_section);
}

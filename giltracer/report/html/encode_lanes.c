/* SPDX-License-Identifier: MIT */
/* Encodes lanes of GIL and CPU into sections. */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/facts.h"
#include "base/cleanup.h"
#include "model/span.h"
#include "report/html/encoder.h"

/* The length and state of a span, in the first column of each kind of lane. */
static void put_state(struct encoder *e, const struct lane *lane, size_t i, unsigned state)
{
	column_put(&e->full[0], (lane_span_end(lane, i) - lane->spans.v[i].start_ns) << 3 | state);
}

/* The last two columns of lanes other than CPU lanes. */
static void put_flags(struct encoder *e, const struct span *span, uint32_t i)
{
	if (span->flags)
		sparse_put(&e->sparse[1], i, span->flags);
	if (span->gil.frame)
		sparse_put(&e->sparse[2], i,
		           (uint64_t)span->gil.frame + encoder_frames_shift(e->pass->source));
}

static void gil_section(struct encoder *e, const struct lane *lane, size_t from, uint32_t n)
{
	uint64_t gil = 1;

	for (uint32_t i = 0; i < n; i++) {
		const struct span *span = &lane->spans.v[from + i];
		uint64_t now = (uint64_t)(uint32_t)(span->gil.index + 1);
		bool without = gil_state_is_without(span->state);

		put_state(e, lane, from + i, without ? GIL_NO : span->state);
		if (!without && span->state != GIL_UNKNOWN && now != gil) {
			sparse_put(&e->sparse[0], i, now);
			gil = now;
		}
		put_flags(e, span, i);
	}
}

/* The states in a section of locks, see FORMAT.md. Spans of a GIL never have these. */
static const uint8_t lock_states[GIL_STATES] = {
	[GIL_NO] = 1,
	[GIL_LOCK_WAIT] = 2,
	[GIL_STOPPED] = 3,
	[GIL_STOPPING] = 4,
};

static void locks_section(struct encoder *e, const struct lane *lane, size_t from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct span *span = &lane->spans.v[from + i];

		put_state(e, lane, from + i, lock_states[span->state]);
		put_flags(e, span, i);
	}
}

static void cpu_section(struct encoder *e, const struct lane *lane, size_t from, uint32_t n)
{
	int cpu = -1;

	for (uint32_t i = 0; i < n; i++) {
		const struct span *span = &lane->spans.v[from + i];

		put_state(e, lane, from + i, span->state);
		if (span->state == CPU_RUNNING && span->cpu.number != cpu) {
			cpu = span->cpu.number;
			sparse_put(&e->sparse[0], i, (uint64_t)(cpu + 1));
		}
		if (span->cpu.waker != MODEL_NONE)
			sparse_put(&e->sparse[1], i, (uint64_t)span->cpu.waker + 1);
		if (span->cpu.stack)
			sparse_put(&e->sparse[2], i, span->cpu.stack);
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
		blocks_section(
			e->blocks, n,
			"\"kind\":\"%s\",\"pass\":%zu,\"thread\":%" PRIu32 ",\"start\":%" PRIu64,
			kind, e->index, thread, lane->spans.v[from].start_ns - e->model->start_ns);
	}
}

void encode_lanes(struct encoder *e)
{
	CLEANUP(free) uint32_t *order = facts_thread_order(e->model);
	size_t n = e->model->threads.n;

	for (size_t i = 0; i < n; i++)
		put_lane(e, e->locks ? "locks" : "gil", order[i],
		         &e->model->threads.v[order[i]].gil,
		         e->locks ? locks_section : gil_section);
	for (size_t i = 0; i < n; i++)
		put_lane(e, "cpu", order[i], &e->model->threads.v[order[i]].cpu, cpu_section);
}

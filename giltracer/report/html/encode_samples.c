/* SPDX-License-Identifier: MIT */
/* Encodes samples into sections: their times, the stacks, and runs of equal ones per thread. */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/sampled.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "report/html/encoder.h"
#include "trace/stacks.h"

static void put_times(struct encoder *e, const struct samples *s)
{
	size_t n;

	for (size_t from = 0; from < s->times.n; from += n) {
		uint64_t before = e->model->start_ns;

		n = section_size(s->times.n - from);
		encoder_clear(e);
		for (size_t i = from; i < from + n; i++) {
			uint64_t now = s->times.v[i] > before ? s->times.v[i] : before;

			column_put(&e->full[0], now - before);
			before = now;
		}
		encoder_full(e, 1);
		blocks_section(e->blocks, (uint32_t)n,
		               "\"kind\":\"sampletimes\",\"pass\":%zu,\"start\":%zu", e->index,
		               from);
	}
}

static void put_stacks(struct encoder *e, const struct samples *s)
{
	uint32_t count = stacks_count(s->stacks), n;

	for (uint32_t from = 1; from < count; from += n) {
		n = section_size(count - from);
		encoder_clear(e);
		for (uint32_t id = from; id < from + n; id++) {
			const struct stack_frame *frame = stacks_get(s->stacks, id);

			column_put(&e->full[0], frame->parent ? id - frame->parent : 0);
			column_put(&e->full[1], frame->name);
			column_put(&e->full[2], frame->module);
			column_put(&e->full[3], frame->line);
		}
		encoder_full(e, 4);
		blocks_section(e->blocks, n,
		               "\"kind\":\"samplestacks\",\"pass\":%zu,\"start\":%" PRIu32,
		               e->index, from);
	}
}

/* The state of a run for the page: 0 not read, 1 torn, else enum sampled_what + 2. */
static uint64_t code_of(const struct sample_run *run)
{
	if (run->flags & SAMPLE_GONE)
		return 0;
	return run->flags & SAMPLE_TORN ? 1 : (uint64_t)sampled_what_of(run) + 2;
}

static void put_thread(struct encoder *e, const struct sample_thread *thread, uint32_t index)
{
	uint32_t n;

	for (size_t from = 0; from < thread->runs.n; from += n) {
		uint32_t before = 0;

		n = section_size(thread->runs.n - from);
		encoder_clear(e);
		for (size_t i = from; i < from + n; i++) {
			const struct sample_run *run = &thread->runs.v[i];

			column_put(&e->full[0], run->sample - before);
			column_put(&e->full[1], code_of(run));
			column_put(&e->full[2], run->stack);
			before = run->sample;
		}
		encoder_full(e, 3);
		blocks_section(e->blocks, n,
		               "\"kind\":\"samples\",\"pass\":%zu,\"thread\":%" PRIu32, e->index,
		               index);
	}
}

void encode_samples(struct encoder *e)
{
	const struct samples *s = e->pass->samples;

	if (!s)
		return;
	put_times(e, s);
	encode_names(e, "samples", s->names, NULL, names_count(s->names));
	put_stacks(e, s);
	for (size_t i = 0; i < s->threads.n; i++) {
		uint32_t thread = sampled_model_thread(e->pass, &s->threads.v[i]);

		if (thread != MODEL_NONE)
			put_thread(e, &s->threads.v[i], thread);
	}
}

/* SPDX-License-Identifier: MIT */
/* Encodes counters, losses, and the holders of locks and CPUs that other threads waited for. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/queued.h"
#include "analysis/released.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "report/html/encoder.h"

static void flush_counter(struct encoder *e, uint32_t thread, uint32_t counter, uint32_t n)
{
	encoder_full(e, 2);
	blocks_section(e->blocks, n,
	               "\"kind\":\"counter\",\"pass\":%zu,\"thread\":%" PRIu32
	               ",\"counter\":%" PRIu32,
	               e->index, thread, counter);
	encoder_clear(e);
}

/* The samples listed in order, which are of one thread and counter. */
static void put_counter(struct encoder *e, const uint32_t *order, size_t count)
{
	const struct model_counter_sample *samples = e->model->counts.v;
	uint64_t before = e->model->start_ns;
	uint32_t n = 0;

	encoder_clear(e);
	for (size_t i = 0; i < count; i++) {
		const struct model_counter_sample *sample = &samples[order[i]];
		uint64_t now = sample->time_ns > before ? sample->time_ns : before;

		column_put(&e->full[0], now - before);
		column_put(&e->full[1], sample->value);
		before = now;
		if (++n == SECTION_MAX || i + 1 == count) {
			flush_counter(e, sample->thread, sample->counter, n);
			n = 0;
			before = e->model->start_ns;
		}
	}
}

static int compare_samples(const void *a, const void *b, void *data)
{
	const struct model_counter_sample *samples = data;
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
	const struct model_counter_sample *sa = &samples[ia], *sb = &samples[ib];

	if (sa->thread != sb->thread)
		return sa->thread < sb->thread ? -1 : 1;
	if (sa->counter != sb->counter)
		return sa->counter < sb->counter ? -1 : 1;
	if (sa->time_ns != sb->time_ns)
		return sa->time_ns < sb->time_ns ? -1 : 1;
	return (ia > ib) - (ia < ib);
}

void encode_counters(struct encoder *e)
{
	const struct model_counter_sample *samples = e->model->counts.v;
	size_t count = e->model->counts.n, from = 0;
	CLEANUP(free) uint32_t *order = xcalloc(count + 1, sizeof(*order));

	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), compare_samples, (void *)(uintptr_t)samples);
	for (size_t i = 1; i <= count; i++) {
		if (i < count && samples[order[i]].thread == samples[order[from]].thread &&
		    samples[order[i]].counter == samples[order[from]].counter)
			continue;
		put_counter(e, order + from, i - from);
		from = i;
	}
}

/* The user of a CPU, as one number. */
static uint64_t owner_code(const struct queued_row *row)
{
	if (row->by < MODEL_UNKNOWN)
		return 2 + 2 * (uint64_t)row->by;
	if (row->by == MODEL_UNKNOWN)
		return 0;
	return row->name ? 3 + 2 * (uint64_t)row->name : 1;
}

static void queued_section(struct encoder *e, uint32_t thread, const struct queued_row *rows,
                           uint32_t n)
{
	uint64_t before = e->model->start_ns;

	encoder_clear(e);
	for (uint32_t i = 0; i < n; i++) {
		column_put(&e->full[0], rows[i].start_ns - before);
		column_put(&e->full[1], (uint64_t)(uint32_t)(rows[i].cpu + 1));
		column_put(&e->full[2], owner_code(&rows[i]));
		column_put(&e->full[3], rows[i].ns);
		before = rows[i].start_ns;
	}
	encoder_full(e, 4);
	blocks_section(e->blocks, n, "\"kind\":\"queued\",\"pass\":%zu,\"thread\":%" PRIu32,
	               e->index, thread);
}

void encode_queued(struct encoder *e)
{
	const struct names *names = e->pass->source ? e->pass->source->cpu_names : NULL;

	if (!names || !e->model->cpu_blame.n)
		return;
	encode_names(e, "cpus", names, NULL, names_count(names));
	for (uint32_t i = 0; i < e->model->threads.n; i++) {
		struct queued queued;

		queued_find(&queued, e->model, i);
		for (size_t from = 0; from < queued.rows.n; from += SECTION_MAX)
			queued_section(e, i, queued.rows.v + from,
			               section_size(queued.rows.n - from));
		vec_done(&queued.rows);
	}
}

static int compare_lost(const void *a, const void *b)
{
	const struct model_lost *la = a, *lb = b;

	return (la->start_ns > lb->start_ns) - (la->start_ns < lb->start_ns);
}

/* The beginning of the lost records; at the earliest that of the recording, where the page
 * begins. */
static uint64_t lost_start(const struct encoder *e, const struct model_lost *lost)
{
	return lost->start_ns > e->model->start_ns ? lost->start_ns : e->model->start_ns;
}

static void lost_section(struct encoder *e, const struct model_lost *lost, uint32_t n)
{
	uint64_t before = e->model->start_ns;

	encoder_clear(e);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t start = lost_start(e, &lost[i]);

		column_put(&e->full[0], start - before);
		column_put(&e->full[1], lost[i].end_ns > start ? lost[i].end_ns - start : 0);
		column_put(&e->full[2], lost[i].count);
		column_put(&e->full[3], (uint64_t)(uint32_t)(lost[i].cpu + 1));
		before = start;
	}
	encoder_full(e, 4);
	blocks_section(e->blocks, n, "\"kind\":\"lost\",\"pass\":%zu", e->index);
}

void encode_lost(struct encoder *e)
{
	size_t count = e->model->lost.n;
	CLEANUP(free) struct model_lost *lost = xcalloc(count + 1, sizeof(*lost));

	if (!count)
		return;
	memcpy(lost, e->model->lost.v, count * sizeof(*lost));
	qsort(lost, count, sizeof(*lost), compare_lost);
	for (size_t from = 0; from < count; from += SECTION_MAX)
		lost_section(e, lost + from, section_size(count - from));
}

/* In memory, the two values that are not threads are the largest; in the page they are the
 * smallest. */
static uint64_t releaser_code(uint32_t by)
{
	return by == MODEL_UNKNOWN ? 0 : by == MODEL_NONE ? 1 : (uint64_t)by + 2;
}

static void released_section(struct encoder *e, uint32_t thread, const struct model_blocked *v,
                             uint32_t n)
{
	uint64_t before = e->model->start_ns;

	encoder_clear(e);
	for (uint32_t i = 0; i < n; i++) {
		column_put(&e->full[0], v[i].start_ns - before);
		column_put(&e->full[1], v[i].end_ns - v[i].start_ns);
		column_put(&e->full[2], releaser_code(v[i].by));
		before = v[i].start_ns;
	}
	encoder_full(e, 3);
	blocks_section(e->blocks, n, "\"kind\":\"released\",\"pass\":%zu,\"thread\":%" PRIu32,
	               e->index, thread);
}

void encode_released(struct encoder *e)
{
	uint64_t work = model_blocked_work(e->model);

	for (uint32_t i = 0; e->locks && i < e->model->threads.n; i++) {
		struct model_blocked_list list;

		released_find(&list, e->model, i, &work);
		for (size_t from = 0; from < list.v.n; from += SECTION_MAX)
			released_section(e, i, list.v.v + from, section_size(list.v.n - from));
		vec_done(&list.v);
	}
}

/* SPDX-License-Identifier: MIT */
/* Encodes lanes, calls, stacks, counters and losses into sections. */
#include "payload.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/thread.h"
#include "model/span.h"
#include "report/blocks.h"
#include "report/facts.h"
#include "report/locks.h"
#include "report/queued.h"
#include "report/utf8.h"
#include "trace/names.h"
#include "trace/source.h"
#include "trace/stacks.h"

#define NAMES_BYTES (1 << 20) /* of text that close a section of names */

/* A pass on its way into blocks, with the columns that all sections share. */
struct encoder {
	struct blocks *blocks;
	const struct report_pass *pass;
	const struct model *model;
	const struct rows *rows;
	size_t index; /* of the pass */
	bool locks;   /* shown instead of a GIL */
	struct column full[5];
	struct sparse sparse[3];
};

static void encoder_clear(struct encoder *e)
{
	for (unsigned i = 0; i < 5; i++)
		column_clear(&e->full[i]);
	for (unsigned i = 0; i < 3; i++)
		sparse_clear(&e->sparse[i]);
}

static void add_full(struct encoder *e, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		blocks_add_column(e->blocks, &e->full[i]);
}

static void add_sparse(struct encoder *e, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		blocks_add_sparse(e->blocks, &e->sparse[i]);
}

/* Ids of the source's frames follow those of its stacks. */
static uint32_t frames_shift(const struct source *source)
{
	return source && source->stacks ? stacks_count(source->stacks) - 1 : 0;
}

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
	uint32_t shift = frames_shift(e->pass->source);
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
		size_t left = lane->spans.n - from;
		uint32_t n = left < SECTION_MAX ? (uint32_t)left : SECTION_MAX;

		encoder_clear(e);
		section(e, lane, from, n);
		add_full(e, 1);
		add_sparse(e, 3);
		blocks_section(e->blocks, n,
		               "\"kind\":\"%s\",\"pass\":%zu,\"thread\":%" PRIu32
		               ",\"start\":%" PRIu64 "%s",
		               kind, e->index, thread,
		               lane->spans.v[from].start_ns - e->model->start_ns,
		               e->locks && !strcmp(kind, "gil") ? ",\"locks\":1" : "");
	}
}

static void put_lanes(struct encoder *e)
{
	CLEANUP(free) uint32_t *order = facts_thread_order(e->model);
	size_t n = e->model->threads.n;

	for (size_t i = 0; i < n; i++)
		put_lane(e, "gil", order[i], &e->model->threads.v[order[i]].gil, gil_section);
	for (size_t i = 0; i < n; i++)
		put_lane(e, "cpu", order[i], &e->model->threads.v[order[i]].cpu, cpu_section);
}

/* len and bytes, with what is no UTF-8 replaced. Returns the bytes added. */
static size_t add_text(struct encoder *e, const char *text)
{
	CLEANUP(str_done) struct str clean = { 0 };
	uint8_t len[VARINT_MAX];
	uint32_t cp;

	while ((cp = utf8_next(&text)))
		utf8_add(&clean, cp);
	blocks_add(e->blocks, len, (size_t)(varint_put(len, clean.len) - len));
	blocks_add(e->blocks, str_get(&clean), clean.len);
	return clean.len;
}

/* Names by id, or those that ids lists. */
static void put_names(struct encoder *e, const char *table, const struct names *names,
                      const uint32_t *ids, uint32_t count)
{
	uint32_t start = 0;
	size_t bytes = 0;

	for (uint32_t i = 0; i < count; i++) {
		bytes += add_text(e, names_get(names, ids ? ids[i] : i));
		if (i + 1 < count && i + 1 - start < SECTION_MAX && bytes < NAMES_BYTES)
			continue;
		blocks_section(
			e->blocks, i + 1 - start,
			"\"kind\":\"names\",\"pass\":%zu,\"table\":\"%s\",\"start\":%" PRIu32,
			e->index, table, start);
		start = i + 1;
		bytes = 0;
	}
}

static void flush_row(struct encoder *e, uint32_t thread, unsigned depth, uint32_t n)
{
	add_full(e, 3);
	add_sparse(e, 1);
	blocks_section(e->blocks, n,
	               "\"kind\":\"slices\",\"pass\":%zu,\"thread\":%" PRIu32 ",\"depth\":%u",
	               e->index, thread, depth);
	encoder_clear(e);
}

/* The calls of one depth: those that members lists. */
static void put_row(struct encoder *e, const struct slice_thread *st, uint32_t thread,
                    unsigned depth, const uint32_t *members, size_t count)
{
	uint64_t end = 0, before = e->model->start_ns, start;
	uint32_t n = 0;

	encoder_clear(e);
	for (size_t i = 0; i < count; i++) {
		const struct slice *slice = &st->v[members[i]];

		if (!rows_fits(e->rows, slice, &end, &start))
			continue;
		column_put(&e->full[0], start - before);
		column_put(&e->full[1], end - start);
		column_put(&e->full[2], e->rows->rank[slice->name]);
		if (slice->flags)
			sparse_put(&e->sparse[0], n, slice->flags);
		before = end;
		if (++n == SECTION_MAX) {
			flush_row(e, thread, depth, n);
			n = 0;
			before = e->model->start_ns;
		}
	}
	if (n)
		flush_row(e, thread, depth, n);
}

/* Sort by depth, keeping the order by time, and write row after row. */
static void put_thread_slices(struct encoder *e, const struct slice_thread *st, uint32_t thread)
{
	size_t depths = (size_t)st->max_depth + 1;
	CLEANUP(free) size_t *starts = xcalloc(depths + 1, sizeof(*starts));
	CLEANUP(free) size_t *fill = xcalloc(depths, sizeof(*fill));
	CLEANUP(free) uint32_t *members = xcalloc(st->n + 1, sizeof(*members));

	for (size_t i = 0; i < st->n; i++)
		starts[st->v[i].depth + 1]++;
	for (size_t d = 0; d < depths; d++) {
		starts[d + 1] += starts[d];
		fill[d] = starts[d];
	}
	for (size_t i = 0; i < st->n; i++)
		members[fill[st->v[i].depth]++] = (uint32_t)i;
	for (size_t d = 0; d < depths; d++)
		put_row(e, st, thread, (unsigned)d, members + starts[d], starts[d + 1] - starts[d]);
}

static void put_slices(struct encoder *e)
{
	const struct slices *slices = e->rows->slices;

	if (!slices)
		return;
	put_names(e, "slices", slices->names, e->rows->names, e->rows->name_count);
	for (size_t i = 0; i < slices->thread_count; i++)
		if (e->rows->threads[i] != MODEL_NONE)
			put_thread_slices(e, &slices->threads[i], e->rows->threads[i]);
}

/* n frames from id on; on the page, ids are larger by shift. */
static void stack_section(struct encoder *e, const struct stacks *stacks, uint32_t from, uint32_t n,
                          uint32_t shift)
{
	encoder_clear(e);
	for (uint32_t id = from; id < from + n; id++) {
		const struct stack_frame *frame = stacks_get(stacks, id);

		column_put(&e->full[0], frame->parent ? id - frame->parent : 0);
		column_put(&e->full[1], frame->name);
		column_put(&e->full[2], frame->module);
		column_put(&e->full[3], frame->line);
		column_put(&e->full[4], frame->flags);
	}
	add_full(e, 5);
	blocks_section(e->blocks, n, "\"kind\":\"stacks\",\"pass\":%zu,\"start\":%" PRIu32,
	               e->index, from + shift);
}

static void put_tree(struct encoder *e, const struct stacks *stacks, uint32_t shift)
{
	uint32_t count = stacks ? stacks_count(stacks) : 1;

	for (uint32_t from = 1; from < count; from += SECTION_MAX)
		stack_section(e, stacks, from,
		              count - from < SECTION_MAX ? count - from : SECTION_MAX, shift);
}

static void put_stacks(struct encoder *e)
{
	const struct source *source = e->pass->source;
	uint32_t shift = frames_shift(source);

	if (!shift && (!source || !source->frames || stacks_count(source->frames) <= 1))
		return;
	put_names(e, "stacks", source->names, NULL, names_count(source->names));
	put_tree(e, source->stacks, 0);
	put_tree(e, source->frames, shift);
}

static void flush_counter(struct encoder *e, uint32_t thread, uint32_t counter, uint32_t n)
{
	add_full(e, 2);
	blocks_section(e->blocks, n,
	               "\"kind\":\"counter\",\"pass\":%zu,\"thread\":%" PRIu32
	               ",\"counter\":%" PRIu32,
	               e->index, thread, counter);
	encoder_clear(e);
}

/* The samples that order lists are of one thread and counter. */
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

static void put_counters(struct encoder *e)
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

/* Who had a CPU, as one number. */
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
	add_full(e, 4);
	blocks_section(e->blocks, n, "\"kind\":\"queued\",\"pass\":%zu,\"thread\":%" PRIu32,
	               e->index, thread);
}

static void put_queued(struct encoder *e)
{
	const struct names *names = e->pass->source ? e->pass->source->cpu_names : NULL;

	if (!names || !e->model->starved.n)
		return;
	put_names(e, "cpus", names, NULL, names_count(names));
	for (uint32_t i = 0; i < e->model->threads.n; i++) {
		struct queued queued;

		queued_find(&queued, e->model, i);
		for (size_t from = 0; from < queued.rows.n; from += SECTION_MAX) {
			size_t left = queued.rows.n - from;

			queued_section(e, i, queued.rows.v + from,
			               left < SECTION_MAX ? (uint32_t)left : SECTION_MAX);
		}
		vec_done(&queued.rows);
	}
}

static int compare_lost(const void *a, const void *b)
{
	const struct model_lost *la = a, *lb = b;

	return (la->start_ns > lb->start_ns) - (la->start_ns < lb->start_ns);
}

/* A stretch may have begun before the recording, which is where the page begins. */
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
	add_full(e, 4);
	blocks_section(e->blocks, n, "\"kind\":\"lost\",\"pass\":%zu", e->index);
}

static void put_lost(struct encoder *e)
{
	size_t count = e->model->lost.n;
	CLEANUP(free) struct model_lost *lost = xcalloc(count + 1, sizeof(*lost));

	if (!count)
		return;
	memcpy(lost, e->model->lost.v, count * sizeof(*lost));
	qsort(lost, count, sizeof(*lost), compare_lost);
	for (size_t from = 0; from < count; from += SECTION_MAX)
		lost_section(e, lost + from,
		             count - from < SECTION_MAX ? (uint32_t)(count - from) : SECTION_MAX);
}

/* In memory the two that are no thread are the largest: here the smallest. */
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
	add_full(e, 3);
	blocks_section(e->blocks, n, "\"kind\":\"released\",\"pass\":%zu,\"thread\":%" PRIu32,
	               e->index, thread);
}

static void put_released(struct encoder *e)
{
	for (uint32_t i = 0; e->locks && i < e->model->threads.n; i++) {
		struct model_blocked_list list = { 0 };

		for (size_t k = 0; k < e->model->threads.v[i].gil.spans.n; k++)
			model_blocked(e->model, i, k, &list);
		for (size_t from = 0; from < list.v.n; from += SECTION_MAX)
			released_section(e, i, list.v.v + from,
			                 list.v.n - from < SECTION_MAX ? (uint32_t)(list.v.n - from)
			                                               : SECTION_MAX);
		vec_done(&list.v);
	}
}

static void put_pass(struct encoder *e, const struct report *report, const struct rows *rows,
                     size_t index)
{
	e->index = index;
	e->pass = &report->passes[index];
	e->model = e->pass->model;
	e->locks = locks_of_pass(e->pass);
	e->rows = &rows[index];
	put_lanes(e);
	put_slices(e);
	put_stacks(e);
	put_counters(e);
	put_queued(e);
	put_released(e);
	put_lost(e);
}

struct payload {
	const struct report *report;
	const struct rows *rows;
	struct blocks *blocks;
	pthread_t thread;
};

static void *encode(void *data)
{
	const struct payload *p = data;
	size_t main_pass = (size_t)(report_main_pass(p->report) - p->report->passes);
	struct encoder e = { .blocks = p->blocks };

	for (unsigned i = 0; i < 5; i++)
		column_init(&e.full[i]);
	for (unsigned i = 0; i < 3; i++)
		sparse_init(&e.sparse[i]);
	put_pass(&e, p->report, p->rows, main_pass);
	for (size_t i = 0; i < p->report->pass_count; i++)
		if (i != main_pass)
			put_pass(&e, p->report, p->rows, i);
	blocks_end(p->blocks);
	for (unsigned i = 0; i < 5; i++)
		column_done(&e.full[i]);
	for (unsigned i = 0; i < 3; i++)
		sparse_done(&e.sparse[i]);
	return NULL;
}

int payload_start(struct payload **ret, const struct report *report, const struct rows *rows,
                  struct error *err)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct payload *p = xcalloc(1, sizeof(*p));

	p->report = report;
	p->rows = rows;
	if (blocks_new(&p->blocks, cpus > 1 ? (unsigned)cpus - 1 : 0, err) < 0) {
		free(p);
		return -1;
	}
	if (thread_start(&p->thread, encode, p) < 0) {
		blocks_free(p->blocks);
		free(p);
		return error_set(err, EAGAIN, "cannot start a thread");
	}
	*ret = p;
	return 0;
}

void payload_write(struct payload *payload, FILE *out)
{
	blocks_drain(payload->blocks, out);
}

void payload_free(struct payload *p)
{
	if (!p)
		return;
	blocks_cancel(p->blocks);
	pthread_join(p->thread, NULL);
	blocks_free(p->blocks);
	free(p);
}

/* SPDX-License-Identifier: MIT */
/* Encodes the bulk data of the page: every span, call, stack and sample. */
#include "report/html/encode.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/facts.h"
#include "analysis/locks.h"
#include "analysis/sampled.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "model/span.h"
#include "report/html/blocks.h"
#include "trace/names.h"
#include "trace/source.h"
#include "trace/stacks.h"

/* A pass being encoded into blocks, with the columns that all sections share. */
struct encoder {
	struct blocks *blocks;
	const struct recording_pass *pass;
	const struct model *model;
	const struct rows *rows;
	size_t index; /* of the pass */
	bool locks;   /* there are locks instead of a GIL */
	struct column full[5];
	struct sparse sparse[3];
};

/* Whether slice is kept, in the row that is used up to *end_ns (initially 0). If so, sets its
 * start within the recording, and *end_ns to its end. */
static bool rows_fits(const struct rows *rows, const struct slice *slice, uint64_t *end_ns,
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

/* Handles the columns that all sections share. */

/* Start a section with empty columns. */
static void encoder_clear(struct encoder *e)
{
	for (unsigned i = 0; i < 5; i++)
		column_clear(&e->full[i]);
	for (unsigned i = 0; i < 3; i++)
		sparse_clear(&e->sparse[i]);
}

/* Add the first n columns to the section. */
static void encoder_full(struct encoder *e, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		blocks_add_column(e->blocks, &e->full[i]);
}

static void encoder_sparse(struct encoder *e, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		blocks_add_sparse(e->blocks, &e->sparse[i]);
}

/* The difference of ids of the source's frames on the page, where they follow its stacks. */
static uint32_t encoder_frames_shift(const struct source *source)
{
	return source && source->stacks ? stacks_count(source->stacks) - 1 : 0;
}

/* Encodes lanes of GIL and CPU into sections. */

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
	[GIL_NO] = 1,       [GIL_LOCK_WAIT] = 2, [GIL_STOPPED] = 3,
	[GIL_STOPPING] = 4, [GIL_SPINNING] = 5,
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

static void encode_lanes(struct encoder *e)
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

/* Encodes names, calls and stacks into sections. */

#define NAMES_BYTES (1 << 20) /* of text after which a section of names is closed */

/* Adds length and bytes, with invalid UTF-8 replaced. Returns the number of bytes added. */
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

/* Names by id, or the count names in ids. */
static void encode_names(struct encoder *e, const char *table, const struct names *names,
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
	encoder_full(e, 3);
	encoder_sparse(e, 1);
	blocks_section(e->blocks, n,
	               "\"kind\":\"slices\",\"pass\":%zu,\"thread\":%" PRIu32 ",\"depth\":%u",
	               e->index, thread, depth);
	encoder_clear(e);
}

/* Writes the calls of one depth, whose indices are in members. */
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

/* Sorts by depth, keeping the order of time, and writes one row after the other. */
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

static void encode_slices(struct encoder *e)
{
	const struct slices *slices = e->rows->slices;

	if (!slices)
		return;
	encode_names(e, "slices", slices->names, e->rows->names, e->rows->name_count);
	for (size_t i = 0; i < slices->thread_count; i++)
		if (e->rows->threads[i] != MODEL_NONE)
			put_thread_slices(e, &slices->threads[i], e->rows->threads[i]);
}

/* n frames from id from on; on the page, their ids are larger by shift. */
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
	encoder_full(e, 5);
	blocks_section(e->blocks, n, "\"kind\":\"stacks\",\"pass\":%zu,\"start\":%" PRIu32,
	               e->index, from + shift);
}

static void put_tree(struct encoder *e, const struct stacks *stacks, uint32_t shift)
{
	uint32_t count = stacks ? stacks_count(stacks) : 1;

	for (uint32_t from = 1; from < count; from += SECTION_MAX)
		stack_section(e, stacks, from, section_size(count - from), shift);
}

static void encode_stacks(struct encoder *e)
{
	const struct source *source = e->pass->source;
	uint32_t shift = encoder_frames_shift(source);

	if (!shift && (!source || !source->frames || stacks_count(source->frames) <= 1))
		return;
	encode_names(e, "stacks", source->names, NULL, names_count(source->names));
	put_tree(e, source->stacks, 0);
	put_tree(e, source->frames, shift);
}

/* Reduces the stretches of waits without a GIL to those that the page shows. */

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

/* Sums up which threads and programs had the CPUs during each runnable span. */

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

/* Encodes counters, losses, and the holders of locks and CPUs that other threads waited for. */

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

static void encode_counters(struct encoder *e)
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

static void encode_queued(struct encoder *e)
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

static void encode_lost(struct encoder *e)
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

static void encode_released(struct encoder *e)
{
	uint64_t work = model_blocked_work(e->model);

	for (uint32_t i = 0; i < e->model->threads.n; i++) {
		struct model_blocked_list list;

		released_find(&list, e->model, i, &work);
		for (size_t from = 0; from < list.v.n; from += SECTION_MAX)
			released_section(e, i, list.v.v + from, section_size(list.v.n - from));
		vec_done(&list.v);
	}
}

/* Encodes samples into sections: their times, the stacks, and runs of equal ones per thread. */

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

static void encode_samples(struct encoder *e)
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

/* Runs the thread that encodes the passes, section by section. */

static void put_pass(struct encoder *e, const struct recording *recording, const struct rows *rows,
                     size_t index)
{
	e->index = index;
	e->pass = &recording->passes[index];
	e->model = e->pass->model;
	e->locks = locks_of_pass(e->pass);
	e->rows = &rows[index];
	encode_lanes(e);
	encode_slices(e);
	encode_stacks(e);
	encode_counters(e);
	encode_queued(e);
	encode_released(e);
	encode_lost(e);
	encode_samples(e);
}

struct payload {
	const struct recording *recording;
	const struct rows *rows;
	struct blocks *blocks;
	pthread_t thread;
};

static void *encode(void *data)
{
	const struct payload *p = data;
	size_t main_pass = (size_t)(recording_main_pass(p->recording) - p->recording->passes);
	struct encoder e = { .blocks = p->blocks };

	for (unsigned i = 0; i < 5; i++)
		column_init(&e.full[i]);
	for (unsigned i = 0; i < 3; i++)
		sparse_init(&e.sparse[i]);
	put_pass(&e, p->recording, p->rows, main_pass);
	for (size_t i = 0; i < p->recording->pass_count; i++)
		if (i != main_pass)
			put_pass(&e, p->recording, p->rows, i);
	blocks_end(p->blocks);
	for (unsigned i = 0; i < 5; i++)
		column_done(&e.full[i]);
	for (unsigned i = 0; i < 3; i++)
		sparse_done(&e.sparse[i]);
	return NULL;
}

int payload_start(struct payload **ret, const struct recording *recording, const struct rows *rows,
                  struct error *err)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct payload *p = xcalloc(1, sizeof(*p));

	p->recording = recording;
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

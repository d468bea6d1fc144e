/* SPDX-License-Identifier: MIT */
/* Sorts records by time, stably: merges the runs of two rounds. */
#include "perfdata/event_sort.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/vec.h"

#define STACK_RECORD 1024 /* a record of this many bytes must contain a stack */
#define STACK_AHEAD  2048

/**
 * A stretch of records with non-decreasing times, without records of perf itself in between.
 * @time_ns: time of the record at pos
 * @pos, @end: offsets in the file
 */
struct run {
	uint64_t time_ns;
	uint64_t pos, end;
};

/**
 * @current: the run with the earliest record, not in heap; empty if pos == end
 * @fence_ns: the record at current.pos is next if its time is less
 * @heap: the other runs, the one with the earliest record first
 * @open: the run that the scan is adding to, valid if open.end
 * @last_ns: time of the last record scanned
 * @max_ns: latest time scanned; @round_ns: the same at the previous FINISHED_ROUND
 * @limit_ns: all records up to this time have been scanned
 * @mapped: offset up to which the file is known to be mapped
 * @given: offset of the last record returned; @given_end: its end; @given_ns: its time
 * @first_ns: earliest time that a record contains, UINT64_MAX if none
 */
struct event_sort {
	struct perfdata *pd;
	const struct perf_header *header;
	const uint8_t *data;
	struct perfdata_window *window;
	struct run current;
	uint64_t fence_ns;
	VEC(struct run) heap;
	struct run open;
	uint64_t given, given_end, given_ns;
	uint64_t last_ns, max_ns, round_ns, limit_ns, first_ns;
	uint64_t records, unknown, peak_runs, mapped;
};

struct event_sort *event_sort_new(struct perfdata *pd)
{
	struct event_sort *order = xcalloc(1, sizeof(*order));

	order->pd = pd;
	order->header = perfdata_header(pd);
	order->data = perfdata_data(pd);
	order->window = perfdata_window(pd);
	order->first_ns = UINT64_MAX;
	return order;
}

void event_sort_free(struct event_sort *order)
{
	if (!order)
		return;
	vec_done(&order->heap);
	free(order);
}

/* Used if the layouts of the events differ, so that the record's event must be found. The record is
 * passed by its address, so that the callers' records can stay in registers. */
__attribute__((noinline)) static uint64_t own_time_of_event(const struct perf_header *h,
                                                            const uint8_t *data, uint16_t size)
{
	struct perfdata_record rec;
	const struct sample_layout *l;
	uint32_t event;
	bool is_sample;

	perfdata_at(data, 0, size, &rec);
	is_sample = rec.type == PERF_RECORD_SAMPLE;
	event = header_event_of(h, is_sample, &rec.body);
	if (event == UINT32_MAX)
		return 0;
	l = &h->events.v[event].layout;
	if (is_sample)
		return l->time_pos == SAMPLE_NOWHERE ? 0 : cursor_u64_at(&rec.body, l->time_pos);
	return l->trailer_time == SAMPLE_NOWHERE ? 0 : cursor_u64_back(&rec.body, l->trailer_time);
}

/* The time that the record contains, 0 if none. */
static inline uint64_t own_time(const struct perf_header *h, const struct perfdata_record *rec)
{
	if (rec->type == PERF_RECORD_SAMPLE && h->time_pos != SAMPLE_NOWHERE)
		return cursor_u64_at(&rec->body, h->time_pos);
	if (rec->type != PERF_RECORD_SAMPLE && h->trailer_time != SAMPLE_NOWHERE)
		return cursor_u64_back(&rec->body, h->trailer_time);
	return own_time_of_event(h, rec->body.p - PERFDATA_RECORD_HEADER, rec->size);
}

/* The record's own time or, if it has none, that of the previous record. Like perf, this treats ~0
 * as no time. */
static inline uint64_t time_of(const struct perf_header *h, const struct perfdata_record *rec,
                               uint64_t before)
{
	uint64_t t = own_time(h, rec);

	return t == 0 || t == UINT64_MAX ? before : t;
}

static bool earlier(const struct run *a, const struct run *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->pos < b->pos;
}

static void sift_up(struct event_sort *o, size_t i)
{
	struct run run = o->heap.v[i];

	while (i && earlier(&run, &o->heap.v[(i - 1) / 2])) {
		o->heap.v[i] = o->heap.v[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	o->heap.v[i] = run;
}

static void sift_down(struct event_sort *o)
{
	struct run run = o->heap.v[0];
	size_t i = 0, n = o->heap.n;

	for (size_t child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && earlier(&o->heap.v[child + 1], &o->heap.v[child]))
			child++;
		if (!earlier(&o->heap.v[child], &run))
			break;
		o->heap.v[i] = o->heap.v[child];
	}
	o->heap.v[i] = run;
}

/* Assigns field by field, because the current run's fields have just been stored, and must not be
 * loaded as one. */
static inline void set_run(struct run *to, uint64_t time_ns, uint64_t pos, uint64_t end)
{
	to->time_ns = time_ns;
	to->pos = pos;
	to->end = end;
}

/* Swaps the current run with the earliest of the others. */
static void swap_top(struct event_sort *o)
{
	struct run *top = &o->heap.v[0], *current = &o->current;
	uint64_t time_ns = top->time_ns, pos = top->pos, end = top->end;

	set_run(top, current->time_ns, current->pos, current->end);
	set_run(current, time_ns, pos, end);
	if (o->heap.n > 1)
		sift_down(o);
}

static void pop_top(struct event_sort *o)
{
	o->current = o->heap.v[0];
	o->heap.v[0] = o->heap.v[--o->heap.n];
	if (o->heap.n > 1)
		sift_down(o);
}

static void close_run(struct event_sort *o)
{
	if (!o->open.end)
		return;
	*vec_push(&o->heap) = o->open;
	sift_up(o, o->heap.n - 1);
	o->open.end = 0;
	if (o->heap.n > o->peak_runs)
		o->peak_runs = o->heap.n;
}

static void scan_record(struct event_sort *o, const struct perfdata_record *rec)
{
	uint64_t t = time_of(o->header, rec, o->last_ns);

	if (t < o->last_ns)
		close_run(o);
	if (!o->open.end)
		o->open = (struct run){ .time_ns = t, .pos = rec->offset };
	o->open.end = rec->offset + rec->size;
	o->last_ns = t;
	if (t > o->max_ns)
		o->max_ns = t;
	if (t && t < o->first_ns)
		o->first_ns = t;
}

/* Drops the pages before the earliest offset that may still be read. Until there is a limit no
 * record is returned, so that all are kept: in a recording without times, the runs of each round. */
static void drop_behind(struct event_sort *o)
{
	uint64_t keep = perfdata_tell(o->pd);

	if (!o->limit_ns)
		return;
	if (o->current.pos < o->current.end)
		keep = o->current.pos;
	if (o->given < keep)
		keep = o->given;
	for (size_t i = 0; i < o->heap.n; i++)
		if (o->heap.v[i].pos < keep)
			keep = o->heap.v[i].pos;
	perfdata_drop(o->pd, keep);
}

/* Prefetches the header of a later record. Only a record's header contains its size, but most are
 * as long as the one before. For shorter records the processor's own prefetching is better. */
__attribute__((always_inline)) static inline void prefetch_header(const struct perfdata_record *rec)
{
	if (rec->size >= STACK_RECORD)
		__builtin_prefetch((const void *)((uintptr_t)rec->body.end + 3U * rec->size));
}

/*
 * The fast path for nearly all records: samples that continue the open run and have their time at
 * the common position. It stops before the first other record, which the caller handles.
 */
static void scan_samples(struct event_sort *o)
{
	struct perfdata_window *w = o->window;
	const uint16_t time_pos = o->header->time_pos;
	uint64_t pos = w->pos, last_ns = o->last_ns, n = 0;
	struct perfdata_record rec;

	if (!o->open.end || !last_ns || time_pos == SAMPLE_NOWHERE)
		return;
	while (w->end - pos >= PERFDATA_RECORD_HEADER && pos < o->mapped) {
		uint64_t t;

		perfdata_peek(w->data, pos, &rec);
		if (rec.type != PERF_RECORD_SAMPLE || rec.size < PERFDATA_RECORD_HEADER ||
		    rec.size > w->end - pos)
			break;
		t = cursor_u64_at(&rec.body, time_pos);
		if (t < last_ns || t == UINT64_MAX)
			break;
		prefetch_header(&rec);
		last_ns = t;
		pos += rec.size;
		n++;
	}
	o->records += n;
	o->open.end = w->pos = pos;
	o->last_ns = last_ns;
	if (last_ns > o->max_ns)
		o->max_ns = last_ns;
}

static bool scan_next(struct event_sort *o, struct perfdata_record *ret)
{
	scan_samples(o);
	if (o->window->pos >= o->mapped)
		o->mapped = perfdata_want(o->pd);
	return perfdata_next_quick(o->pd, o->window, ret);
}

/* Scans until the end of a round, or of the file. */
static void scan_round(struct event_sort *o)
{
	struct perfdata_record rec;

	drop_behind(o);
	while (scan_next(o, &rec)) {
		prefetch_header(&rec);
		o->records++;
		if (rec.type < PERF_USER_START) {
			scan_record(o, &rec);
			continue;
		}
		close_run(o);
		if (!perfdata_type_name(rec.type))
			o->unknown++;
		if (rec.type != PERF_USER_FINISHED_ROUND)
			continue;
		o->limit_ns = o->round_ns;
		o->round_ns = o->max_ns;
		return;
	}
	close_run(o);
	o->limit_ns = UINT64_MAX;
}

/* Puts the current run back unless it is used up, and takes the earliest. */
static void choose_current(struct event_sort *o)
{
	if (o->current.pos < o->current.end) {
		if (!o->heap.n || earlier(&o->current, &o->heap.v[0]))
			return;
		swap_top(o);
	} else if (o->heap.n) {
		pop_top(o);
	}
}

/* Sets the time up to which the current run can be followed without checking the others. */
static void set_fence(struct event_sort *o)
{
	uint64_t fence = o->limit_ns < UINT64_MAX ? o->limit_ns + 1 : UINT64_MAX;

	if (o->heap.n && o->heap.v[0].time_ns < fence)
		fence = o->heap.v[0].time_ns;
	o->fence_ns = fence;
}

/*
 * The unwinder reads a record's stack at scattered places, most of them in its first part. Prefetch
 * that part of the record after the next; again, most records are as long as the one before. It
 * must be inlined: gcc 12 would treat the function as one without effect, and drop it.
 */
__attribute__((always_inline)) static inline void prefetch_stack(const struct perfdata_record *rec)
{
	uintptr_t at = (uintptr_t)rec->body.end + rec->size;

	if (rec->size < STACK_RECORD)
		return;
	for (unsigned i = 0; i < STACK_AHEAD; i += 64)
		__builtin_prefetch((const void *)(at + i));
}

/* Moves past the record at current.pos, which has been returned. If another process has changed the
 * file, what is left of the run may be too short for a record. */
static void advance(struct event_sort *o, const struct perfdata_record *rec)
{
	struct run *run = &o->current;
	struct perfdata_record next;

	run->pos += rec->size;
	prefetch_stack(rec);
	if (run->end - run->pos < PERFDATA_RECORD_HEADER) {
		run->pos = run->end;
		o->fence_ns = 0;
		return;
	}
	perfdata_at(o->data, run->pos, run->end, &next);
	run->time_ns = time_of(o->header, &next, run->time_ns);
}

/*
 * perf copies some records twice if it finds the head of a ring buffer before its last position
 * (its "failed to keep up with mmap data"; seen with buffers of two pages, about once in ten
 * recordings that lose records). The copies are in another round, and so in another run.
 */
static bool skip_copy(struct event_sort *o)
{
	struct perfdata_record last, next;

	if (!o->given || o->current.time_ns != o->given_ns)
		return false;
	perfdata_at(o->data, o->given, o->given_end, &last);
	perfdata_at(o->data, o->current.pos, o->current.end, &next);
	if (next.size != last.size || !own_time(o->header, &next) ||
	    memcmp(o->data + o->given, o->data + o->current.pos, last.size) != 0)
		return false;
	advance(o, &next);
	return true;
}

/* Makes the run with the next record current. Returns 0 at the end. */
__attribute__((noinline)) static int find_next(struct event_sort *o)
{
	for (;;) {
		choose_current(o);
		/* Not before there is a limit, because until then first_ns is not certain. */
		if (o->current.pos < o->current.end && o->limit_ns &&
		    o->current.time_ns <= o->limit_ns) {
			if (!skip_copy(o))
				break;
		} else if (o->limit_ns == UINT64_MAX) {
			return 0;
		} else {
			scan_round(o);
		}
	}
	set_fence(o);
	return 1;
}

/* The same if it is another run's turn. Neither function is inlined: they are rarely needed, and
 * event_sort_next would save registers for them on each call. */
__attribute__((noinline)) static int next_turn(struct event_sort *o)
{
	if (o->current.pos == o->current.end || !o->heap.n || !o->limit_ns ||
	    o->heap.v[0].time_ns > o->limit_ns || o->heap.v[0].time_ns == o->given_ns ||
	    !earlier(&o->heap.v[0], &o->current))
		return find_next(o);
	swap_top(o);
	set_fence(o);
	return 1;
}

int event_sort_next(struct event_sort *o, struct perfdata_record *ret, uint64_t *ret_time_ns)
{
	uint64_t time_ns;

	if (o->current.time_ns >= o->fence_ns && !next_turn(o))
		return 0;
	time_ns = o->current.time_ns;
	if (!time_ns && o->first_ns != UINT64_MAX)
		time_ns = o->first_ns;
	*ret_time_ns = time_ns;
	o->given = o->current.pos;
	o->given_ns = o->current.time_ns;
	perfdata_at(o->data, o->current.pos, o->current.end, ret);
	o->given_end = o->given + ret->size;
	advance(o, ret);
	return 1;
}

uint64_t event_sort_records(const struct event_sort *order)
{
	return order->records;
}

uint64_t event_sort_unknown(const struct event_sort *order)
{
	return order->unknown;
}

uint64_t event_sort_peak_runs(const struct event_sort *order)
{
	return order->peak_runs;
}

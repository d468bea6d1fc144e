/* SPDX-License-Identifier: MIT */
/* Follows waits for locks to what other threads did meanwhile. */
#include "analysis/chains.h"

#include <stdlib.h>

#include "analysis/functions.h"
#include "base/alloc.h"
#include "base/idmap.h"
#include "model/owners.h"
#include "model/span.h"
#include "trace/stacks.h"

/* Longer chains are those of a deadlock. */
#define DEPTH_MAX 16

/* A line of code. */
struct place {
	uint32_t name, module, line;
};

/**
 * @work: number of spans that may still be examined, so that the time is bounded
 * @place_of: by frame id, plus 1; 0: not looked up yet
 * @places: by hash; rows by pair of places, end and through
 * @waiter, @waits_in: of the wait that is being followed
 */
struct following {
	const struct recording_pass *pass;
	const struct model *model;
	const struct stacks *frames;
	uint64_t work, blocked_work;
	uint32_t *place_of;
	VEC(struct place) places;
	struct idmap place_ids, rows;
	struct chains *ret;
	uint32_t waiter, waits_in;
};

/* The place of a frame, whatever called it. */
static uint32_t place_of(struct following *f, uint32_t frame)
{
	const struct stack_frame *s;
	uint64_t key;
	uint32_t id;

	if (!frame || f->place_of[frame])
		return f->place_of[frame];
	s = stacks_get(f->frames, frame);
	key = idmap_pair(s->name, s->module) * 31 + s->line;
	while ((id = idmap_get(&f->place_ids, key)) != IDMAP_NONE) {
		const struct place *p = &f->places.v[id];

		if (p->name == s->name && p->module == s->module && p->line == s->line)
			break;
		key++;
	}
	if (id == IDMAP_NONE) {
		id = (uint32_t)f->places.n;
		*vec_push(&f->places) = (struct place){ s->name, s->module, s->line };
		idmap_set(&f->place_ids, key, id);
	}
	return f->place_of[frame] = id + 1;
}

static struct chain *row_of(struct following *f, enum chain_end end, uint32_t at, bool through)
{
	uint64_t key = idmap_pair(place_of(f, f->waits_in), place_of(f, at)) * 2 * CHAIN_ENDS +
	               end * 2 + through;
	uint32_t row = idmap_get(&f->rows, key);

	if (row != IDMAP_NONE)
		return &f->ret->v.v[row];
	idmap_set(&f->rows, key, (uint32_t)f->ret->v.n);
	*vec_push(&f->ret->v) = (struct chain){ .waits_in = f->waits_in,
		                                .at = at,
		                                .thread = MODEL_NONE,
		                                .waiter = f->waiter,
		                                .end = end,
		                                .through = through };
	return &f->ret->v.v[f->ret->v.n - 1];
}

/* How long the thread is known to have slept in this time. */
static uint64_t slept(struct following *f, uint32_t thread, uint64_t from, uint64_t to)
{
	const struct lane *lane = &f->model->threads.v[thread].cpu;
	uint64_t sum = 0;

	for (size_t i = lane_at(lane, from); i < lane->spans.n && f->work; i++, f->work--) {
		uint64_t start = later(lane->spans.v[i].start_ns, from);
		uint64_t end = lane_span_end(lane, i);

		if (start >= to)
			break;
		end = end < to ? end : to;
		if (end > start && (lane->spans.v[i].state == CPU_SLEEPING ||
		                    lane->spans.v[i].state == CPU_UNINTERRUPTIBLE))
			sum += end - start;
	}
	return sum;
}

static void charge(struct following *f, enum chain_end end, uint32_t thread, uint32_t at,
                   uint64_t from, uint64_t to, bool through)
{
	struct chain *row = row_of(f, end, at, through);

	row->ns += to - from;
	row->parts++;
	f->ret->ns += to - from;
	if (end == CHAIN_WITHOUT_GIL)
		row->asleep_ns += slept(f, thread, from, to);
	if (row->parts > 1 && row->thread != thread)
		row->several = true;
	row->thread = row->several ? MODEL_NONE : thread;
	if (to - from <= row->longest_ns)
		return;
	row->longest_ns = to - from;
	row->longest_at_ns = from;
	row->waiter = f->waiter;
}

static void follow(struct following *f, uint32_t thread, uint64_t from, uint64_t to,
                   unsigned depth);

/* The thread waited for the GIL: continue with those that held it. */
static void follow_gil(struct following *f, const struct span *s, uint64_t from, uint64_t to,
                       unsigned depth)
{
	const struct model_gil *gil = s->gil.index < f->model->gils.n
	                                      ? &f->model->gils.v[s->gil.index]
	                                      : NULL;
	size_t i = gil && gil->owners.n ? owners_at(gil, 0, from) : 0;

	for (; gil && i < gil->owners.n && from < to && f->work; i++, f->work--) {
		uint64_t end = i + 1 < gil->owners.n ? gil->owners.v[i + 1].start_ns : gil->end_ns;
		uint32_t owner = gil->owners.v[i].thread;

		end = end < to ? end : to;
		if (end <= from)
			continue;
		if (owner == MODEL_NONE)
			charge(f, CHAIN_FREE, owner, 0, from, end, true);
		else if (owner == MODEL_UNKNOWN)
			charge(f, CHAIN_UNKNOWN, owner, 0, from, end, true);
		else
			follow(f, owner, from, end, depth + 1);
		from = end;
	}
	if (from < to)
		charge(f, CHAIN_UNKNOWN, MODEL_UNKNOWN, 0, from, to, true);
}

/* Threads waited for a lock: continue with those that released it. */
static void follow_lock(struct following *f, uint32_t thread, size_t span, uint64_t from,
                        uint64_t to, unsigned depth)
{
	struct model_blocked_list list = { 0 };

	model_blocked(f->model, thread, span, &f->blocked_work, &list);
	for (size_t i = 0; i < list.v.n; i++) {
		const struct model_blocked *part = &list.v.v[i];
		uint64_t start = later(part->start_ns, from);
		uint64_t end = part->end_ns < to ? part->end_ns : to;

		if (start >= end)
			continue;
		if (part->by == MODEL_NONE)
			charge(f, CHAIN_FREE, part->by, 0, start, end, depth > 0);
		else if (part->by == MODEL_UNKNOWN)
			charge(f, CHAIN_UNKNOWN, part->by, 0, start, end, depth > 0);
		else
			follow(f, part->by, start, end, depth + 1);
	}
	vec_done(&list.v);
}

/* The frame in which the thread released the GIL before this span. */
static uint32_t released_in(const struct lane *lane, size_t span)
{
	while (span-- > 0) {
		if (lane->spans.v[span].state == GIL_HOLD)
			return lane->spans.v[span].gil.frame;
		if (lane->spans.v[span].state == GIL_UNKNOWN)
			return 0;
	}
	return 0;
}

static void follow(struct following *f, uint32_t thread, uint64_t from, uint64_t to, unsigned depth)
{
	const struct model_thread *t = &f->model->threads.v[thread];
	const bool through = depth > 1;

	for (size_t i = lane_at(&t->gil, from); i < t->gil.spans.n && from < to; i++) {
		const struct span *s = &t->gil.spans.v[i];
		uint64_t end = lane_span_end(&t->gil, i);

		end = end < to ? end : to;
		if (s->start_ns > from || end <= from)
			continue;
		if (!f->work || depth > DEPTH_MAX)
			break;
		f->work--;
		switch (s->state) {
		case GIL_HOLD:
			charge(f, CHAIN_HELD_GIL, thread, s->gil.frame, from, end, through);
			break;
		case GIL_WAIT:
		case GIL_SWITCH_WAIT:
		case GIL_FREE_WAIT:
			follow_gil(f, s, from, end, depth);
			break;
		case GIL_LOCK_WAIT:
			follow_lock(f, thread, i, from, end, depth);
			break;
		case GIL_UNKNOWN:
			charge(f, CHAIN_UNKNOWN, thread, 0, from, end, through);
			break;
		default:
			charge(f, CHAIN_WITHOUT_GIL, thread, released_in(&t->gil, i), from, end,
			       through);
		}
		from = end;
	}
	if (from < to)
		charge(f, CHAIN_UNKNOWN, MODEL_UNKNOWN, 0, from, to, through);
}

static int compare_chains(const void *a, const void *b)
{
	const struct chain *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

struct chains chains_find(const struct recording_pass *pass)
{
	const struct model *m = pass->model;
	struct chains ret = { 0 };
	struct following f = {
		.pass = pass,
		.model = m,
		.frames = functions_frames(pass),
		.work = MODEL_WORK + m->gil_events * MODEL_WORK_PER_EVENT,
		.blocked_work = model_blocked_work(m),
		.ret = &ret,
	};

	if (!m->park_events)
		return ret;
	f.place_of = xcalloc(f.frames ? stacks_count(f.frames) : 1, sizeof(*f.place_of));
	for (f.waiter = 0; f.waiter < m->threads.n; f.waiter++) {
		const struct lane *lane = &m->threads.v[f.waiter].gil;

		for (size_t i = 0; i < lane->spans.n; i++) {
			const struct span *s = &lane->spans.v[i];

			if (s->state != GIL_LOCK_WAIT)
				continue;
			f.waits_in = f.frames ? s->gil.frame : 0;
			follow_lock(&f, f.waiter, i, s->start_ns, lane_span_end(lane, i), 0);
		}
	}
	free(f.place_of);
	vec_done(&f.places);
	idmap_done(&f.place_ids);
	idmap_done(&f.rows);
	if (ret.v.n)
		qsort(ret.v.v, ret.v.n, sizeof(*ret.v.v), compare_chains);
	return ret;
}

/* SPDX-License-Identifier: MIT */
/* Places where threads were blocked. */
#include "analysis/locks.h"

#include <stdlib.h>

#include "analysis/facts.h"
#include "analysis/functions.h"
#include "base/alloc.h"
#include "base/idmap.h"
#include "model/owners.h"
#include "model/span.h"
#include "trace/stacks.h"

bool locks_of_pass(const struct recording_pass *pass)
{
	return pass->free_threaded && !pass->model->gil_events && pass->model->park_events;
}

struct locks_stops locks_stops(const struct model *model)
{
	struct locks_stops ret = { 0 };

	for (size_t i = 0; i < model->stops.n; i++) {
		const struct model_stop *stop = &model->stops.v[i];
		uint64_t ns = locks_stop_ns(stop), waiting_ns = locks_stop_waiting_ns(stop);

		if (!stop->start_ns && !stop->stopped_ns)
			continue;
		ret.count++;
		ret.collections += stop->collects;
		ret.ns += ns;
		ret.longest_ns = ns > ret.longest_ns ? ns : ret.longest_ns;
		ret.waiting_ns += waiting_ns;
		if (waiting_ns && (!ret.latest || waiting_ns > locks_stop_waiting_ns(ret.latest)))
			ret.latest = stop;
	}
	return ret;
}

static bool is_same_line(const struct recording_pass *pass, uint32_t a, uint32_t b)
{
	struct function x = function_at(pass, a), y = function_at(pass, b);

	return a == b || (x.name && y.name && x.line == y.line && !strcmp(x.name, y.name) &&
	                  !strcmp(x.file ? x.file : "", y.file ? y.file : ""));
}

static int compare_late(const void *a, const void *b)
{
	const struct locks_late *x = a, *y = b;

	return (x->waiting_ns < y->waiting_ns) - (x->waiting_ns > y->waiting_ns);
}

struct locks_late_list locks_late(const struct recording_pass *pass)
{
	struct locks_late_list ret = { 0 };
	struct idmap rows = { 0 }; /* by thread and frame, since there are many stops */

	for (size_t i = 0; i < pass->model->stops.n; i++) {
		const struct model_stop *stop = &pass->model->stops.v[i];
		uint32_t frame = stop->last == MODEL_NONE ? 0 : stop->last_frame;
		uint64_t key = idmap_pair(stop->last, frame);
		uint64_t ns = locks_stop_waiting_ns(stop);
		uint32_t j = idmap_get(&rows, key);

		if (!ns)
			continue;
		if (j == IDMAP_NONE) {
			for (j = 0; j < ret.v.n && (ret.v.v[j].thread != stop->last ||
			                            !is_same_line(pass, ret.v.v[j].frame, frame));)
				j++;
			idmap_set(&rows, key, j);
		}
		if (j == ret.v.n)
			*vec_push(&ret.v) = (struct locks_late){ stop->last, frame, 0, 0, 0 };
		ret.v.v[j].count++;
		ret.v.v[j].waiting_ns += ns;
		if (ns > ret.v.v[j].longest_ns)
			ret.v.v[j].longest_ns = ns;
	}
	idmap_done(&rows);
	vec_sort(&ret.v, compare_late);
	return ret;
}

/* Waits are grouped by function, not by line. */
static struct locks_place *place_for(struct locks_places *places, const struct recording_pass *pass,
                                     unsigned state, uint32_t frame, const struct model_lock *lock)
{
	const char *of = lock ? lock->of : NULL, *name = lock ? lock->name : NULL;
	const struct stacks *frames = functions_frames(pass);

	for (size_t i = 0; i < places->v.n; i++) {
		struct locks_place *place = &places->v.v[i];

		if (place->state == state && place->of == of && place->name == name &&
		    hogs_same_function(frames, place->frame, frame))
			return place;
	}
	*vec_push(&places->v) =
		(struct locks_place){ .state = state, .frame = frame, .of = of, .name = name };
	return &places->v.v[places->v.n - 1];
}

static void add_span(struct locks_places *places, const struct recording_pass *pass,
                     const struct span *s, uint64_t ns)
{
	const struct model_lock *lock = s->state == GIL_LOCK_WAIT || s->state == GIL_SPINNING
	                                        ? &pass->model->locks.v[s->gil.lock]
	                                        : NULL;
	uint32_t frame = functions_frames(pass) ? s->gil.frame : 0;
	struct locks_place *place = place_for(places, pass, s->state, frame, lock);

	place->count++;
	place->ns += ns;
	if (ns <= place->longest_ns)
		return;
	place->longest_ns = ns;
	/* The row shows the line of its longest wait. */
	place->frame = frame;
}

static int compare_places(const void *a, const void *b)
{
	const struct locks_place *pa = a, *pb = b;

	return (pa->ns < pb->ns) - (pa->ns > pb->ns);
}

struct locks_places locks_places(const struct recording_pass *pass, uint32_t thread)
{
	const struct model *m = pass->model;
	struct locks_places places = { 0 };

	for (size_t i = 0; m->park_events && i < m->threads.n; i++) {
		const struct lane *lane = &m->threads.v[i].gil;

		if (thread != MODEL_NONE && i != thread)
			continue;
		for (size_t k = 0; k < lane->spans.n; k++)
			if (lane->spans.v[k].state >= GIL_LOCK_WAIT)
				add_span(&places, pass, &lane->spans.v[k],
				         lane_span_end(lane, k) - lane->spans.v[k].start_ns);
	}
	vec_sort(&places.v, compare_places);
	return places;
}

/* Follows waits for locks to what other threads did meanwhile. */

/* Longer chains are those of threads that wait for a deadlock of others. */
#define DEPTH_MAX 16

/* A line of code. */
struct place {
	uint32_t name, module, line;
};

/**
 * The places of frames, whatever called them.
 * @of: by frame id, plus 1; 0: not looked up yet
 * @ids: of places, by hash
 */
struct places {
	const struct stacks *frames;
	uint32_t *of;
	VEC(struct place) v;
	struct idmap ids;
};

static void places_init(struct places *p, const struct recording_pass *pass)
{
	p->frames = functions_frames(pass);
	p->of = xcalloc(p->frames ? stacks_count(p->frames) : 1, sizeof(*p->of));
}

static void places_done(struct places *p)
{
	free(p->of);
	vec_done(&p->v);
	idmap_done(&p->ids);
}

/* The number of the frame's place; 0: unknown. */
static uint32_t place_of(struct places *p, uint32_t frame)
{
	const struct stack_frame *s;
	uint64_t key;
	uint32_t id;

	if (!p->frames || !frame || p->of[frame])
		return p->frames && frame ? p->of[frame] : 0;
	s = stacks_get(p->frames, frame);
	key = idmap_pair(s->name, s->module) * 31 + s->line;
	while ((id = idmap_get(&p->ids, key)) != IDMAP_NONE) {
		const struct place *place = &p->v.v[id];

		if (place->name == s->name && place->module == s->module && place->line == s->line)
			break;
		key++;
	}
	if (id == IDMAP_NONE) {
		id = (uint32_t)p->v.n;
		*vec_push(&p->v) = (struct place){ s->name, s->module, s->line };
		idmap_set(&p->ids, key, id);
	}
	return p->of[frame] = id + 1;
}

/* The frame in which a thread released the GIL before the spans from first to last, which have no hold in
 * between: without a GIL, a thread may have a million of them. */
struct released {
	size_t first, last;
	uint32_t frame;
};

/* The frame in which the thread released the GIL before this span. known: one for each thread. */
static uint32_t released_in(struct released *known, const struct model *m, uint32_t thread,
                            size_t span)
{
	const struct lane *lane = &m->threads.v[thread].gil;
	struct released *k = &known[thread];
	size_t i = span;

	if (k->first <= span && span <= k->last)
		return k->frame;
	for (; i > 0; i--) {
		const struct span *s = &lane->spans.v[i - 1];

		if (i == k->last) {
			k->last = span;
			return k->frame;
		}
		if (s->state == GIL_HOLD || s->state == GIL_UNKNOWN) {
			*k = (struct released){ i, span, s->state == GIL_HOLD ? s->gil.frame : 0 };
			return k->frame;
		}
	}
	*k = (struct released){ 0, span, 0 };
	return 0;
}

/* ---- waits for locks */

/**
 * @work: number of spans that may still be examined, so that the time is bounded
 * @rows: by pair of places, end and through
 * @waits: numbers by pair of places; @wait_ns: by number; @of_row: the number of a row's places
 * @waiter, @waits_in, @user_frame, @lock: of the wait that is being followed
 */
struct following {
	const struct model *model;
	uint64_t work, blocked_work;
	struct places places;
	struct released *released;
	struct idmap rows, waits;
	VEC(uint64_t) wait_ns;
	VEC(uint32_t) of_row;
	struct chains *ret;
	uint32_t waiter, waits_in, user_frame, lock;
};

static struct chain *row_of(struct following *f, enum chain_end end, uint32_t at, bool through)
{
	uint64_t places = idmap_pair(place_of(&f->places, f->waits_in),
	                             place_of(&f->places, f->user_frame));
	uint64_t key = (places * 31 + place_of(&f->places, at)) * 2 * CHAIN_ENDS + end * 2 +
	               through;
	uint32_t row = idmap_get(&f->rows, key), wait;

	if (row != IDMAP_NONE)
		return &f->ret->v.v[row];
	if (idmap_add(&f->waits, places, (uint32_t)f->wait_ns.n, &wait))
		*vec_push(&f->wait_ns) = 0;
	*vec_push(&f->of_row) = wait;
	idmap_set(&f->rows, key, (uint32_t)f->ret->v.n);
	*vec_push(&f->ret->v) = (struct chain){ .waits_in = f->waits_in,
		                                .at = at,
		                                .thread = MODEL_NONE,
		                                .waiter = f->waiter,
		                                .lock = f->lock,
		                                .end = end,
		                                .through = through };
	return &f->ret->v.v[f->ret->v.n - 1];
}

/* How long the thread is known to have slept in this time. */
static uint64_t slept(struct following *f, uint32_t thread, uint64_t from, uint64_t to)
{
	const struct lane *lane = &f->model->threads.v[thread].cpu;
	uint64_t sum = 0;

	for (size_t i = lane_at(lane, from);
	     i < lane->spans.n && lane->spans.v[i].start_ns < to && f->work; i++, f->work--)
		if (lane->spans.v[i].state == CPU_SLEEPING ||
		    lane->spans.v[i].state == CPU_UNINTERRUPTIBLE)
			sum += lane_span_in(lane, i, from, to);
	return sum;
}

static void charge(struct following *f, enum chain_end end, uint32_t thread, uint32_t at,
                   uint64_t from, uint64_t to, bool through)
{
	struct chain *row = row_of(f, end, at, through);

	row->ns += to - from;
	f->wait_ns.v[f->of_row.v[row - f->ret->v.v]] += to - from;
	if (row->lock != f->lock)
		row->lock = MODEL_NONE;
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

/* A part of a chain: what the thread did in this time. frame: it released the lock in this frame at its
 * end; 0: unknown, or the end is not a release */
struct link {
	uint32_t thread, frame;
	uint64_t from, to;
	unsigned depth;
};

static void follow(struct following *f, const struct link *link);

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
			follow(f, &(struct link){ owner, 0, from, end, depth + 1 });
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
		else if (part->by == f->waiter && part->kept)
			charge(f, CHAIN_DEADLOCK, part->by, 0, start, end, depth > 0);
		else
			follow(f, &(struct link){ part->by, part->end_ns == end ? part->frame : 0,
			                          start, end, depth + 1 });
	}
	vec_done(&list.v);
}

/* What the thread executed in a hold. It may have gone on after it released the lock, and the hold ended
 * in another function. */
static uint32_t held_in(const struct link *link, const struct span *s, uint64_t end)
{
	return link->frame && end > link->to ? link->frame : s->gil.frame;
}

static void follow(struct following *f, const struct link *link)
{
	const struct model_thread *t = &f->model->threads.v[link->thread];
	const bool through = link->depth > 1;
	uint64_t from = link->from;

	for (size_t i = lane_at(&t->gil, from); i < t->gil.spans.n && from < link->to; i++) {
		const struct span *s = &t->gil.spans.v[i];
		uint64_t span_end = lane_span_end(&t->gil, i);
		uint64_t end = span_end < link->to ? span_end : link->to;

		if (s->start_ns > from || end <= from)
			continue;
		if (!f->work || link->depth > DEPTH_MAX)
			break;
		f->work--;
		switch (s->state) {
		case GIL_HOLD:
			charge(f, CHAIN_HELD_GIL, link->thread, held_in(link, s, span_end), from,
			       end, through);
			break;
		case GIL_WAIT:
		case GIL_SWITCH_WAIT:
		case GIL_FREE_WAIT:
			follow_gil(f, s, from, end, link->depth);
			break;
		case GIL_LOCK_WAIT:
			follow_lock(f, link->thread, i, from, end, link->depth);
			break;
		case GIL_UNKNOWN:
			charge(f, CHAIN_UNKNOWN, link->thread, 0, from, end, through);
			break;
		default:
			charge(f, CHAIN_WITHOUT_GIL, link->thread,
			       released_in(f->released, f->model, link->thread, i), from, end,
			       through);
		}
		from = end;
	}
	if (from < link->to)
		charge(f, CHAIN_UNKNOWN, MODEL_UNKNOWN, 0, from, link->to, through);
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
		.model = m,
		.work = MODEL_WORK + m->gil_events * MODEL_WORK_PER_EVENT,
		.blocked_work = model_blocked_work(m),
		.ret = &ret,
	};

	if (!m->park_events)
		return ret;
	places_init(&f.places, pass);
	f.released = xcalloc(m->threads.n + 1, sizeof(*f.released));
	for (f.waiter = 0; f.waiter < m->threads.n; f.waiter++) {
		const struct lane *lane = &m->threads.v[f.waiter].gil;

		for (size_t i = 0; i < lane->spans.n; i++) {
			const struct span *s = &lane->spans.v[i];

			if (s->state != GIL_LOCK_WAIT)
				continue;
			f.waits_in = f.places.frames ? s->gil.frame : 0;
			f.lock = s->gil.lock;
			f.user_frame = f.waits_in ? lock_user_frame(pass, f.waits_in) : 0;
			follow_lock(&f, f.waiter, i, s->start_ns, lane_span_end(lane, i), 0);
		}
	}
	for (size_t i = 0; i < ret.v.n; i++)
		ret.v.v[i].wait_ns = f.wait_ns.v[f.of_row.v[i]];
	places_done(&f.places);
	free(f.released);
	idmap_done(&f.rows);
	idmap_done(&f.waits);
	vec_done(&f.wait_ns);
	vec_done(&f.of_row);
	vec_sort(&ret.v, compare_chains);
	return ret;
}

/* ---- the critical path */

/* How many spans of a thread's lanes are not later than where the walk was when it was last in this thread. */
struct walk_seen {
	size_t gil, cpu;
};

/**
 * The walk, which is in thread, at at_ns, on its way back to start_ns.
 * @row_ids: indices in path->rows, by place and reason
 * @work: steps that may still be taken
 * @stuck: steps since the path has last got closer to the start
 * @sent_in: the thread released a lock, or sent a signal, at at_ns in this frame; 0: unknown
 * @seen: by thread; @owners: the same of the owners of each GIL. The walk never goes forward
 */
struct walk {
	const struct model *model;
	struct path *path;
	struct path_parts *parts; /* NULL: they are not kept */
	struct places places;
	struct idmap row_ids;
	struct walk_seen *seen;
	size_t *owners;
	uint64_t start_ns, at_ns, work, blocked_work, stuck;
	uint32_t thread, sent_in;
	struct released *released;
};

/* Of equal longest parts, the row has the first one, which comes last. */
static void add_to_row(struct walk *w, const struct path_part *part)
{
	uint64_t key = idmap_pair(place_of(&w->places, part->at), part->reason);
	struct path_part *row;
	uint32_t id;

	if (idmap_add(&w->row_ids, key, (uint32_t)w->path->rows.n, &id))
		*vec_push(&w->path->rows) = (struct path_part){ .thread = part->thread,
			                                        .reason = part->reason };
	row = &w->path->rows.v[id];
	row->at = part->at;
	row->ns += part->ns;
	row->parts++;
	w->path->ns += part->ns;
	if (row->thread != part->thread)
		row->thread = MODEL_NONE;
	if (part->ns < row->longest_ns)
		return;
	row->longest_ns = part->ns;
	row->from_ns = part->from_ns;
}

static void put_part(struct walk *w, uint64_t from, enum path_reason reason, uint32_t at)
{
	const struct path_part part = { .at = at,
		                        .thread = w->thread,
		                        .reason = reason,
		                        .from_ns = from,
		                        .ns = w->at_ns - from };

	if (from >= w->at_ns)
		return;
	if (w->parts)
		*vec_push(&w->parts->v) = part;
	add_to_row(w, &part);
	w->at_ns = from;
	w->stuck = w->sent_in = 0;
}

/* Continues with what another thread did until then, when it was in that frame. */
static void go_to(struct walk *w, uint32_t thread, uint64_t at, uint32_t frame)
{
	put_part(w, at, PATH_HANDOFF, 0);
	w->thread = thread;
	w->sent_in = frame;
	w->stuck++;
}

/* The index of the span that ends at at_ns or contains the time right before. */
static size_t lane_before(const struct lane *lane, uint64_t at, size_t *seen)
{
	*seen = SEARCH_BACK(*seen, i, lane->spans.v[i].start_ns < at);
	return *seen ? *seen - 1 : 0;
}

static enum path_reason reason_of(const struct span *cpu, enum path_reason running)
{
	switch (cpu->state) {
	case CPU_RUNNABLE:
		return PATH_NO_CPU;
	case CPU_SLEEPING:
	case CPU_UNINTERRUPTIBLE:
	case CPU_GIL_SLEEP:
		return PATH_ASLEEP;
	default:
		return running;
	}
}

/* The thread neither waits for the GIL nor for a lock from then on. Another thread may have woken it
 * from a sleep. */
static void walk_own(struct walk *w, uint64_t from, enum path_reason running, uint32_t at)
{
	const struct lane *lane = &w->model->threads.v[w->thread].cpu;

	while (w->at_ns > from && lane->spans.n && w->work) {
		size_t i = lane_before(lane, w->at_ns, &w->seen[w->thread].cpu);
		const struct span *s = &lane->spans.v[i];
		enum path_reason reason = reason_of(s, running);
		uint32_t waker = i + 1 < lane->spans.n ? s[1].cpu.waker : MODEL_NONE;

		w->work--;
		if (reason == PATH_ASLEEP && running == PATH_WITHOUT_GIL && waker < MODEL_UNKNOWN &&
		    waker != w->thread && lane_span_end(lane, i) == w->at_ns) {
			go_to(w, waker, w->at_ns, 0);
			return;
		}
		if (s->start_ns >= w->at_ns)
			break;
		put_part(w, later(s->start_ns, from), reason, at);
	}
	put_part(w, from, running, at);
}

/* The thread waited for the GIL, and got it at at_ns: continue with the one that released it. */
static void walk_gil(struct walk *w, const struct span *s, uint64_t from)
{
	const struct model_gil *gil = s->gil.index < w->model->gils.n
	                                      ? &w->model->gils.v[s->gil.index]
	                                      : NULL;
	size_t *seen = gil ? &w->owners[s->gil.index] : NULL, i = 0;

	if (gil)
		*seen = SEARCH_BACK(*seen, k, gil->owners.v[k].start_ns < w->at_ns);
	i = gil && *seen ? *seen - 1 : 0;
	for (; gil && gil->owners.n && w->work; i--, w->work--) {
		const struct gil_owner *o = &gil->owners.v[i];

		if (o->thread == MODEL_UNKNOWN || o->start_ns >= w->at_ns)
			break;
		if (o->thread < MODEL_UNKNOWN && o->thread != w->thread) {
			go_to(w, o->thread, w->at_ns, 0);
			return;
		}
		put_part(w, later(o->start_ns, from), PATH_HANDOFF, 0);
		if (!i || w->at_ns <= from)
			break;
	}
	put_part(w, from, w->at_ns > from && s->state == GIL_WAIT ? PATH_UNKNOWN : PATH_HANDOFF, 0);
}

/* The thread waited for a lock: continue with the one that released it last. */
static void walk_lock(struct walk *w, size_t span, uint64_t from, uint32_t at)
{
	struct model_blocked_list list = { 0 };

	model_blocked(w->model, w->thread, span, &w->blocked_work, &list);
	for (size_t i = list.v.n; i-- > 0;) {
		const struct model_blocked *part = &list.v.v[i];

		if (part->start_ns >= w->at_ns)
			continue;
		if (part->by < MODEL_UNKNOWN && !part->kept) {
			go_to(w, part->by, part->end_ns < w->at_ns ? part->end_ns : w->at_ns,
			      part->end_ns <= w->at_ns ? part->frame : 0);
			break;
		}
		put_part(w, later(part->start_ns, from),
		         part->by == MODEL_NONE ? PATH_HANDOFF : PATH_TIME_OUT, at);
	}
	if (!list.v.n)
		put_part(w, from, PATH_UNKNOWN, at);
	vec_done(&list.v);
}

/* The thread was without the GIL from then on; it may have waited for signals. */
static void walk_without(struct walk *w, uint64_t from, uint32_t at)
{
	const struct model_thread *t = &w->model->threads.v[w->thread];
	size_t after = SEARCH(t->signals.n, i, t->signals.v[i].from_ns < w->at_ns);
	const struct model_signal *signal = after ? &t->signals.v[after - 1] : NULL;

	if (!signal || signal->to_ns <= from) {
		walk_own(w, from, PATH_WITHOUT_GIL, at);
	} else if (signal->to_ns < w->at_ns) {
		walk_own(w, signal->to_ns, PATH_WITHOUT_GIL, at);
	} else if (signal->by == MODEL_UNKNOWN) {
		put_part(w, later(signal->from_ns, from), PATH_UNKNOWN, at);
	} else if (signal->by == MODEL_NONE || signal->sent_ns > w->at_ns) {
		put_part(w, later(signal->from_ns, from), PATH_TIME_OUT, at);
	} else {
		go_to(w, signal->by, signal->sent_ns, signal->frame);
	}
}

static void step(struct walk *w)
{
	const struct model_thread *t = &w->model->threads.v[w->thread];
	const struct lane *lane = &t->gil;
	const struct span *s;
	uint64_t from;
	size_t i;

	if (!lane->spans.n || t->start_ns >= w->at_ns) {
		if (t->creator != MODEL_NONE)
			go_to(w, t->creator, w->at_ns, 0);
		else
			put_part(w, w->start_ns, PATH_UNKNOWN, 0);
		return;
	}
	if (t->end_ns < w->at_ns) { /* it has ended before; only if the recording is inconsistent */
		put_part(w, later(t->end_ns, w->start_ns), PATH_UNKNOWN, 0);
		return;
	}
	i = lane_before(lane, w->at_ns, &w->seen[w->thread].gil);
	s = &lane->spans.v[i];
	from = later(s->start_ns, w->start_ns);
	switch (s->state) {
	case GIL_HOLD:
		/* The hold goes on after the release, and may end in another function. */
		walk_own(w, from, PATH_GIL,
		         w->sent_in && lane_span_end(lane, i) > w->at_ns ? w->sent_in
		                                                         : s->gil.frame);
		return;
	case GIL_WAIT:
	case GIL_SWITCH_WAIT:
	case GIL_FREE_WAIT:
		walk_gil(w, s, from);
		return;
	case GIL_LOCK_WAIT:
		walk_lock(w, i, from, s->gil.frame);
		return;
	case GIL_UNKNOWN:
		put_part(w, from, PATH_UNKNOWN, 0);
		return;
	default:
		walk_without(w, from, released_in(w->released, w->model, w->thread, i));
	}
}

/* The thread that ended last; of several, the main thread of the first process. */
static uint32_t last_thread(const struct model *m)
{
	uint32_t last = MODEL_NONE;

	for (uint32_t i = 0; i < m->threads.n; i++) {
		const struct model_thread *t = &m->threads.v[i];

		if (last == MODEL_NONE || t->end_ns > m->threads.v[last].end_ns ||
		    (t->end_ns == m->threads.v[last].end_ns && t->main && !m->threads.v[last].main))
			last = i;
	}
	return last;
}

static int compare_parts(const void *a, const void *b)
{
	const struct path_part *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

struct path path_find(const struct recording_pass *pass, struct path_parts *ret_parts)
{
	const struct model *m = pass->model;
	struct path path = { 0 };
	struct walk w = {
		.model = m,
		.path = &path,
		.parts = ret_parts,
		.start_ns = m->start_ns,
		.at_ns = m->end_ns,
		.work = MODEL_WORK + m->gil_events * MODEL_WORK_PER_EVENT,
		.blocked_work = model_blocked_work(m),
		.thread = last_thread(m),
	};

	if (w.thread == MODEL_NONE || !pass->locks_known)
		return path;
	places_init(&w.places, pass);
	w.seen = xcalloc(m->threads.n, sizeof(*w.seen));
	w.owners = xcalloc(m->gils.n, sizeof(*w.owners));
	for (size_t i = 0; i < m->threads.n; i++)
		w.seen[i] = (struct walk_seen){ m->threads.v[i].gil.spans.n,
			                        m->threads.v[i].cpu.spans.n };
	for (size_t i = 0; i < m->gils.n; i++)
		w.owners[i] = m->gils.v[i].owners.n;
	w.released = xcalloc(m->threads.n + 1, sizeof(*w.released));
	while (w.at_ns > w.start_ns && w.work && w.stuck <= m->threads.n) {
		w.work--;
		step(&w);
	}
	put_part(&w, w.start_ns, PATH_UNKNOWN, 0);
	places_done(&w.places);
	idmap_done(&w.row_ids);
	free(w.released);
	free(w.seen);
	free(w.owners);
	vec_sort(&path.rows, compare_parts);
	return path;
}

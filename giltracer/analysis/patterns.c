/* SPDX-License-Identifier: MIT */
/* Finds patterns of waiting, and what each of them cost. */
#include "analysis/patterns.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/owners.h"
#include "model/span.h"
#include "trace/names.h"
#include "trace/stacks.h"

/* A thread that held the GIL while the loop waited, and the function in which it did. */
struct culprit {
	uint32_t thread, frame;
	uint64_t ns;
};

struct culprits {
	VEC(struct culprit) v;
};

/* Whether the frame's function has this name and file. Up to 3.10 a code object has only its plain
 * name. */
static bool is_function(const struct stacks *frames, uint32_t id, const char *name,
                        const char *file)
{
	const struct stack_frame *frame = stacks_get(frames, id);
	const char *full = names_get(stacks_names(frames), frame->name);
	const char *dot = strrchr(full, '.');

	return id && !strcmp(dot ? dot + 1 : full, name) &&
	       str_has_suffix(names_get(stacks_names(frames), frame->module), file);
}

/* Whether the frame belongs to a selector that asyncio's loop called. False for frame 0. */
static bool loops_is_selector(const struct stacks *frames, uint32_t frame)
{
	return frame && is_function(frames, frame, "select", "/selectors.py") &&
	       is_function(frames, stacks_get(frames, frame)->parent, "_run_once",
	                   "/asyncio/base_events.py");
}

/* The frame of the hold at time_ns, or 0. */
static uint32_t hold_frame(const struct lane *lane, uint64_t time_ns)
{
	const struct span *span = lane->spans.n ? &lane->spans.v[lane_at(lane, time_ns)] : NULL;

	return span && span->state == GIL_HOLD ? span->gil.frame : 0;
}

static void blame_one(struct culprits *list, const struct stacks *frames, uint32_t thread,
                      uint32_t frame, uint64_t ns)
{
	for (size_t i = 0; i < list->v.n; i++) {
		struct culprit *c = &list->v.v[i];

		if (c->thread == thread && hogs_same_function(frames, c->frame, frame)) {
			c->ns += ns;
			return;
		}
	}
	*vec_push(&list->v) = (struct culprit){ thread, frame, ns };
}

static void blame_wait(struct culprits *list, const struct model *m, const struct stacks *frames,
                       const struct span *wait, uint64_t end_ns)
{
	const struct model_gil *g = &m->gils.v[wait->gil.index];

	for (size_t i = owners_of(g, 0, wait); i < g->owners.n && g->owners.v[i].start_ns < end_ns;
	     i++) {
		const struct gil_owner *o = &g->owners.v[i];
		uint64_t from = o->start_ns > wait->start_ns ? o->start_ns : wait->start_ns;
		uint64_t to = i + 1 < g->owners.n ? o[1].start_ns : g->end_ns;

		if (o->thread >= m->threads.n)
			continue;
		blame_one(list, frames, o->thread, hold_frame(&m->threads.v[o->thread].gil, from),
		          (to < end_ns ? to : end_ns) - from);
	}
}

/* The one that held the GIL for more than half of the waiting, or NULL. */
static const struct culprit *find_most(const struct culprits *list, uint64_t wait_ns)
{
	const struct culprit *most = NULL;

	for (size_t i = 0; i < list->v.n; i++)
		if (!most || list->v.v[i].ns > most->ns)
			most = &list->v.v[i];
	return most && most->ns * 2 > wait_ns ? most : NULL;
}

static void name_culprit(struct pattern *p, const struct culprits *list,
                         const struct stacks *frames)
{
	const struct culprit *most = find_most(list, p->ns);
	const struct stack_frame *frame;

	p->other = most ? most->thread : MODEL_NONE;
	if (!most || !most->frame)
		return;
	frame = stacks_get(frames, most->frame);
	p->function = names_get(stacks_names(frames), frame->name);
	p->file = names_get(stacks_names(frames), frame->module);
	p->line = frame->line;
}

/* Sets all members of p but the share, for its thread. Returns false if no wait of the thread is a
 * loop's. */
static bool loops_measure(struct pattern *p, const struct model *m, const struct stacks *frames)
{
	const struct lane *lane = &m->threads.v[p->thread].gil;
	struct culprits list = { 0 };

	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *wait = &lane->spans.v[i];
		uint64_t end_ns = lane_span_end(lane, i);

		if (wait->state != GIL_WAIT || end_ns - wait->start_ns < PATTERN_SHORT_NS ||
		    !loops_is_selector(frames, wait->gil.frame))
			continue;
		p->count++;
		p->ns += end_ns - wait->start_ns;
		if (end_ns - wait->start_ns > p->longest_ns)
			p->longest_ns = end_ns - wait->start_ns;
		blame_wait(&list, m, frames, wait, end_ns);
	}
	name_culprit(p, &list, frames);
	vec_done(&list.v);
	return p->count != 0;
}

struct loops_wait loops_waited(const struct model *m, const struct stacks *frames, uint32_t thread,
                               uint64_t from_ns, uint64_t to_ns)
{
	const struct lane *lane = &m->threads.v[thread].gil;
	struct loops_wait ret = { .holder = MODEL_NONE };
	struct culprits list = { 0 };
	const struct culprit *most;

	for (size_t i = lane->spans.n ? lane_at(lane, from_ns) : 0; i < lane->spans.n; i++) {
		struct span wait = lane->spans.v[i];
		uint64_t end_ns = lane_span_end(lane, i);

		if (wait.start_ns >= to_ns)
			break;
		if (wait.start_ns < from_ns)
			wait.start_ns = from_ns;
		if (end_ns > to_ns)
			end_ns = to_ns;
		if (end_ns <= wait.start_ns ||
		    (wait.state != GIL_WAIT && wait.state != GIL_SWITCH_WAIT))
			continue;
		ret.ns += end_ns - wait.start_ns;
		if (wait.state == GIL_WAIT && wait.gil.index < m->gils.n)
			blame_wait(&list, m, frames, &wait, end_ns);
	}
	most = find_most(&list, ret.ns);
	if (most) {
		ret.holder = most->thread;
		ret.frame = most->frame;
	}
	vec_done(&list.v);
	return ret;
}

#define MAX_PAIRS_OF 256 /* threads; with more, pairs are not examined */

/**
 * @by: by waker: the waits of one thread for it; all 0 in between
 * @wakers: those of that thread
 */
struct finder {
	const struct model *m;
	struct patterns *ret;
	const struct stacks *frames;
	uint64_t interval_ns;
	struct pattern *by;
	VEC(uint32_t) wakers;
};

static unsigned percent(uint64_t part, uint64_t whole)
{
	return whole ? (unsigned)((double)part * 100 / (double)whole) : 0;
}

/* Adds the pattern if it happened often enough and cost enough. Its share is that of ns in
 * whole. */
static void add_if_significant(struct finder *f, struct pattern p, uint64_t whole)
{
	p.share = percent(p.ns, whole);
	if (p.count >= PATTERN_COUNT && p.share >= PATTERN_SHARE)
		*vec_push(&f->ret->v) = p;
}

static uint64_t life(const struct model_thread *t)
{
	return model_thread_life_ns(t);
}

/* The thread that held the GIL for more than half of the time for which thread waited. */
static uint32_t main_culprit(const struct model *m, uint32_t thread)
{
	const struct model_blame *most = NULL;

	for (size_t i = model_find_blame(m, thread);
	     i < m->blame.n && m->blame.v[i].waiter == thread; i++) {
		const struct model_blame *b = &m->blame.v[i];

		if (b->holder < MODEL_UNKNOWN && (!most || b->wait_ns > most->wait_ns))
			most = b;
	}
	return most && most->wait_ns * 2 > m->threads.v[thread].gil_ns[GIL_WAIT] ? most->holder
	                                                                         : MODEL_NONE;
}

/* Whether most of the thread's waiting passed while the GIL was free: it had no CPU, or was woken
 * late. */
static bool waits_for_nobody(const struct model *m, uint32_t thread)
{
	uint64_t handover_ns = 0;

	for (size_t i = model_find_blame(m, thread);
	     i < m->blame.n && m->blame.v[i].waiter == thread; i++)
		if (m->blame.v[i].holder == MODEL_NONE)
			handover_ns += m->blame.v[i].wait_ns;
	return handover_ns * 2 > m->threads.v[thread].gil_ns[GIL_WAIT];
}

/*
 * How long the thread was without the GIL before the wait at i, and how long it held the GIL before
 * that; returns false if unknown. A switch wait does not count as time without it, because a thread
 * that had to release the GIL requests it again at once.
 */
static bool before_wait(const struct lane *lane, size_t i, uint64_t *away_ns, uint64_t *hold_ns)
{
	uint64_t end_ns = lane->spans.v[i].start_ns;

	for (*away_ns = 0; i--; end_ns = lane->spans.v[i].start_ns) {
		const struct span *s = &lane->spans.v[i];

		if (s->state == GIL_HOLD) {
			*hold_ns = end_ns - s->start_ns;
			return true;
		}
		if (s->state == GIL_NO)
			*away_ns += end_ns - s->start_ns;
		else if (s->state != GIL_SWITCH_WAIT)
			return false;
	}
	return false;
}

static void add(struct pattern *p, uint64_t ns)
{
	p->count++;
	p->ns += ns;
	if (ns > p->longest_ns)
		p->longest_ns = ns;
}

/* not_loops: leave out waits of an event loop when its selector returns. */
static void find_in_lane(struct finder *f, uint32_t thread, bool not_loops)
{
	const struct model_thread *t = &f->m->threads.v[thread];
	struct pattern convoy = { .kind = PATTERN_CONVOY, .thread = thread };
	struct pattern late = { .kind = PATTERN_LATE_WAKEUPS, .thread = thread };
	uint64_t away_ns, hold_ns, wakeups = 0;

	if (percent(t->gil_ns[GIL_WAIT], life(t)) < PATTERN_SHARE || waits_for_nobody(f->m, thread))
		return;
	for (size_t i = 1; i < t->gil.spans.n; i++) {
		uint64_t ns = lane_span_end(&t->gil, i) - t->gil.spans.v[i].start_ns;

		if (t->gil.spans.v[i].state != GIL_WAIT ||
		    (not_loops && loops_is_selector(f->frames, t->gil.spans.v[i].gil.frame)) ||
		    !before_wait(&t->gil, i, &away_ns, &hold_ns))
			continue;
		if (away_ns >= PATTERN_SHORT_NS) {
			wakeups++;
			if (ns >= PATTERN_SHORT_NS)
				add(&late, ns);
		} else if (hold_ns < PATTERN_SHORT_NS && ns >= f->interval_ns * 8 / 10) {
			add(&convoy, ns);
		}
	}
	convoy.other = late.other = main_culprit(f->m, thread);
	add_if_significant(f, convoy, life(t));
	if (late.count * 2 >= wakeups)
		add_if_significant(f, late, life(t));
}

/* Adds loop starvation if the thread's event loop starves. Returns whether it does. */
static bool find_starvation(struct finder *f, uint32_t thread)
{
	struct pattern p = { .kind = PATTERN_LOOP_STARVATION, .thread = thread };
	size_t n = f->ret->v.n;

	if (f->frames && loops_measure(&p, f->m, f->frames))
		add_if_significant(f, p, life(&f->m->threads.v[thread]));
	return f->ret->v.n > n;
}

struct pair {
	uint64_t switches, handover_ns, hold_ns;
};

/* Counts how often the GIL went from a to b while a thread waited for it, how long it was free
 * meanwhile, and how long b held it. A GIL that is free and that no thread wants is not handed
 * over. */
static void count_pairs(const struct model *m, const struct model_gil *g, struct pair *pairs)
{
	uint32_t holder = MODEL_NONE, from = MODEL_NONE;
	uint64_t free_ns = 0;
	bool wanted = false;

	for (size_t i = 0; i < g->owners.n; i++) {
		const struct gil_owner *o = &g->owners.v[i];
		uint64_t ns = (i + 1 < g->owners.n ? o[1].start_ns : g->end_ns) - o->start_ns;
		struct pair *p;

		if (o->thread == MODEL_NONE) {
			wanted = o->waiters;
			free_ns += wanted && ns < MODEL_HANDOVER_NS ? ns : 0;
			continue;
		}
		if (o->thread == MODEL_UNKNOWN) {
			holder = from = MODEL_NONE;
			continue;
		}
		if (o->thread != holder) {
			from = wanted ? holder : MODEL_NONE;
			holder = o->thread;
			if (from != MODEL_NONE) {
				p = &pairs[from * m->threads.n + holder];
				p->switches++;
				p->handover_ns += free_ns;
			}
		}
		if (from != MODEL_NONE)
			pairs[from * m->threads.n + holder].hold_ns += ns;
		free_ns = 0;
		wanted = o->waiters;
	}
}

static void find_ping_pong(struct finder *f)
{
	const struct model *m = f->m;
	size_t n = m->threads.n;
	uint64_t wall_ns = m->end_ns - m->start_ns;
	CLEANUP(free) struct pair *pairs = NULL;

	if (n > MAX_PAIRS_OF)
		return;
	pairs = xcalloc(n * n + 1, sizeof(*pairs));
	for (size_t i = 0; i < m->gils.n; i++)
		count_pairs(m, &m->gils.v[i], pairs);
	for (uint32_t a = 0; a < n; a++) {
		for (uint32_t b = a + 1; b < n; b++) {
			const struct pair *there = &pairs[a * n + b], *back = &pairs[b * n + a];
			uint64_t switches = there->switches + back->switches;
			uint64_t hold_ns = there->hold_ns + back->hold_ns;
			uint64_t ns = there->handover_ns + back->handover_ns;

			/* A thousand a second: less than a millisecond each. */
			if (!switches || switches < wall_ns / 1000000 ||
			    hold_ns / switches > PATTERN_QUICK_NS)
				continue;
			add_if_significant(f,
			                   (struct pattern){ .kind = PATTERN_PING_PONG,
			                                     .thread = a,
			                                     .other = b,
			                                     .count = switches,
			                                     .ns = ns,
			                                     .longest_ns = hold_ns / switches },
			                   wall_ns);
		}
	}
}

/* How long a thread waited for one GIL, without its switch waits. */
struct gil_wait {
	uint32_t gil, thread;
	uint64_t ns;
};

struct gil_waits {
	VEC(struct gil_wait) v;
};

static int by_gil(const void *va, const void *vb)
{
	const struct gil_wait *a = va, *b = vb;

	if (a->gil != b->gil)
		return a->gil < b->gil ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
}

/* Collects the waits, sorted by GIL and thread. In m->blame, the rows of one waiter for one GIL are
 * neighbours. */
static void collect_waits(struct gil_waits *ret, const struct model *m)
{
	for (size_t i = 0; i < m->blame.n; i++) {
		const struct model_blame *b = &m->blame.v[i];
		struct gil_wait *last = ret->v.n ? &ret->v.v[ret->v.n - 1] : NULL;

		if (last && last->gil == b->gil && last->thread == b->waiter)
			last->ns += b->wait_ns;
		else
			*vec_push(&ret->v) = (struct gil_wait){ b->gil, b->waiter, b->wait_ns };
	}
	vec_sort(&ret->v, by_gil);
}

/* Adds how long each thread held the GIL to hold_ns. */
static void add_holds(const struct model_gil *g, uint64_t *hold_ns)
{
	for (size_t i = 0; i < g->owners.n; i++) {
		const struct gil_owner *o = &g->owners.v[i];

		if (o->thread < MODEL_UNKNOWN)
			hold_ns[o->thread] += (i + 1 < g->owners.n ? o[1].start_ns : g->end_ns) -
			                      o->start_ns;
	}
}

/* @waits: the n waits of threads for one GIL */
static void find_oversubscription(struct finder *f, const struct gil_wait *waits, size_t n)
{
	const struct model *m = f->m;
	const struct model_gil *g = &m->gils.v[waits->gil];
	uint64_t wall_ns = m->end_ns - m->start_ns, waited_ns = 0;
	CLEANUP(free) uint64_t *hold_ns = NULL;
	unsigned takers = 0;

	for (size_t i = 0; i < n; i++)
		waited_ns += waits[i].ns;
	if (percent(g->held_ns, wall_ns) < PATTERN_BUSY || waited_ns < 2 * wall_ns)
		return;
	hold_ns = xcalloc(m->threads.n, sizeof(*hold_ns));
	add_holds(g, hold_ns);
	for (size_t i = 0; i < n; i++) {
		uint32_t t = waits[i].thread;

		takers += percent(hold_ns[t], wall_ns) >= PATTERN_SHARE / 2 &&
		          percent(waits[i].ns, life(&m->threads.v[t])) >= 3 * PATTERN_SHARE;
	}
	if (takers >= 3)
		*vec_push(&f->ret->v) = (struct pattern){ .kind = PATTERN_OVERSUBSCRIPTION,
			                                  .thread = MODEL_NONE,
			                                  .other = MODEL_NONE,
			                                  .count = takers,
			                                  .ns = waited_ns,
			                                  .share = percent(waited_ns, wall_ns) };
}

/* Judges each GIL by itself: a process may have several, and a thread waits for one of them at a
 * time. */
static void find_oversubscriptions(struct finder *f)
{
	struct gil_waits waits = { 0 };

	collect_waits(&waits, f->m);
	for (size_t i = 0, end; i < waits.v.n; i = end) {
		for (end = i + 1; end < waits.v.n && waits.v.v[end].gil == waits.v.v[i].gil; end++)
			;
		find_oversubscription(f, &waits.v.v[i], end - i);
	}
	vec_done(&waits.v);
}

/* How long the thread waited for the GIL in [start, end). */
static uint64_t waited_in(const struct lane *lane, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t ns = 0;

	for (size_t i = lane_at(lane, start_ns);
	     i < lane->spans.n && lane->spans.v[i].start_ns < end_ns; i++)
		if (lane->spans.v[i].state == GIL_WAIT)
			ns += lane_span_in(lane, i, start_ns, end_ns);
	return ns;
}

static void add_waker(struct finder *f, uint32_t waker, uint64_t ns)
{
	if (!f->by[waker].count)
		*vec_push(&f->wakers) = waker;
	add(&f->by[waker], ns);
}

static int compare_wakers(const void *va, const void *vb)
{
	const uint32_t *a = va, *b = vb;

	return (*a > *b) - (*a < *b);
}

/* Adds the patterns of the thread's wakers, in the order of threads, and forgets them. */
static void take_wakers(struct finder *f, uint32_t thread)
{
	vec_sort(&f->wakers, compare_wakers);
	for (size_t i = 0; i < f->wakers.n; i++) {
		struct pattern *p = &f->by[f->wakers.v[i]];

		p->kind = PATTERN_LOCK_ACROSS_WAIT;
		p->thread = thread;
		p->other = f->wakers.v[i];
		add_if_significant(f, *p, life(&f->m->threads.v[thread]));
		*p = (struct pattern){ 0 };
	}
	f->wakers.n = 0;
}

/* Finds sleeps without the GIL that ended when another thread, which had itself waited for the GIL,
 * woke the sleeper. */
static void find_lock_across_wait(struct finder *f, uint32_t thread)
{
	const struct model *m = f->m;
	const struct model_thread *t = &m->threads.v[thread];

	/* Fewer sleeps than PATTERN_COUNT, of two spans each, are no pattern. */
	if (percent(t->cpu_ns[CPU_SLEEPING], life(t)) < PATTERN_SHARE ||
	    t->cpu.spans.n < 2 * PATTERN_COUNT)
		return;
	for (size_t i = 1; i < t->cpu.spans.n; i++) {
		const struct span *s = &t->cpu.spans.v[i - 1], *woken = &t->cpu.spans.v[i];
		uint64_t ns;

		if (s->state != CPU_SLEEPING || woken->state != CPU_RUNNABLE ||
		    woken->cpu.waker == MODEL_NONE || woken->cpu.waker == thread ||
		    t->gil.spans.v[lane_at(&t->gil, s->start_ns)].state != GIL_NO)
			continue;
		ns = waited_in(&m->threads.v[woken->cpu.waker].gil, s->start_ns, woken->start_ns);
		if (ns)
			add_waker(f, woken->cpu.waker, ns);
	}
	take_wakers(f, thread);
}

/* No pattern is certain if most states are unknown, or if the recording is too short for anything
 * to happen repeatedly. */
static bool is_vague(const struct model *m)
{
	uint64_t unknown_ns = 0, life_ns = 0;

	for (size_t i = 0; i < m->threads.n; i++) {
		life_ns += life(&m->threads.v[i]);
		if (m->threads.v[i].holds)
			unknown_ns += m->threads.v[i].gil_ns[GIL_UNKNOWN] -
			              m->threads.v[i].suspended_ns;
	}
	return m->end_ns - m->start_ns < PATTERN_RECORDING_NS || percent(unknown_ns, life_ns) >= 50;
}

static int most_expensive_first(const void *va, const void *vb)
{
	const struct pattern *a = va, *b = vb;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return (int)a->kind - (int)b->kind;
}

void patterns_find(struct patterns *ret, const struct model *m, const struct stacks *frames,
                   uint64_t interval_ns)
{
	struct finder f = { .m = m, .ret = ret, .frames = frames, .interval_ns = interval_ns };

	*ret = (struct patterns){ 0 };
	if (is_vague(m))
		return;
	f.by = xcalloc(m->threads.n + 1, sizeof(*f.by));
	for (uint32_t i = 0; i < m->threads.n; i++) {
		find_in_lane(&f, i, find_starvation(&f, i));
		find_lock_across_wait(&f, i);
	}
	free(f.by);
	vec_done(&f.wakers);
	find_ping_pong(&f);
	find_oversubscriptions(&f);
	vec_sort(&ret->v, most_expensive_first);
}

void patterns_done(struct patterns *patterns)
{
	vec_done(&patterns->v);
}

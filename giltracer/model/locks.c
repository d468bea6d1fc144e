/* SPDX-License-Identifier: MIT */
/*
 * What blocks where the GIL is off. Threads park for a lock, and stand while another one has
 * stopped the world; both end when some thread unparks them. In the lane, that is what a thread
 * does without the GIL.
 */
#include "base/search.h"
#include "model/internal.h"

#include <stdlib.h>

#include "trace/names.h"

static struct span *last(struct model *m, uint32_t thread)
{
	return lane_last(&m->threads.v[thread].gil);
}

/* Equal keys lie side by side. *ret_key: where the next one would go. */
static uint32_t find(const struct model *m, uint32_t proc, uint64_t address, uint32_t *ret_key)
{
	uint32_t lock, key = address_key(proc, address);

	while ((lock = idmap_get(&m->priv->lock_keys, key)) != IDMAP_NONE) {
		if (m->locks.v[lock].address == address && m->priv->locks.v[lock].proc == proc)
			return lock;
		key++;
	}
	*ret_key = key;
	return MODEL_NONE;
}

static uint32_t lock_of(struct model *m, uint32_t proc, const struct event *ev)
{
	uint32_t key = 0, lock = find(m, proc, ev->park.address, &key);

	if (lock == MODEL_NONE) {
		lock = (uint32_t)m->locks.n;
		*vec_push(&m->locks) = (struct model_lock){ .pid = m->priv->procs.v[proc].pid,
			                                    .address = ev->park.address,
			                                    .of = "" };
		*vec_push(&m->priv->locks) = (struct lock_book){ .proc = proc };
		idmap_set(&m->priv->lock_keys, key, lock);
	}
	/* An address may be another object's later: the last one names it. */
	m->locks.v[lock].world = ev->park.kind == PARK_WORLD;
	if (ev->park.of && m->priv->options.names)
		m->locks.v[lock].of = names_get(m->priv->options.names, ev->park.of);
	return lock;
}

struct span lock_span(struct model *m, uint32_t thread, uint64_t t)
{
	const struct thread_state *ts = &m->priv->threads.v[thread];
	struct span span = { t, MODEL_NONE, 0, GIL_NO, 0, -1 };

	if (ts->lock != MODEL_NONE) {
		bool world = m->locks.v[ts->lock].world;

		span.state = world ? GIL_STOPPED : GIL_LOCK_WAIT;
		span.ref = ts->lock;
		/* It stood before it came back to Python. */
		span.stack = world ? ts->frame : 0;
	} else if (ts->flags & THREAD_STOPPING) {
		const struct span *was = lane_last(&m->threads.v[thread].gil);

		span.state = GIL_STOPPING;
		span.stack = was->state == GIL_STOPPING ? was->stack : 0;
	}
	return span;
}

static void leave_lock(struct model *m, uint32_t thread)
{
	struct thread_state *ts = &m->priv->threads.v[thread];

	if (ts->lock != MODEL_NONE)
		m->priv->locks.v[ts->lock].waiters--;
	ts->lock = MODEL_NONE;
}

void lock_forget(struct model *m, uint32_t thread)
{
	leave_lock(m, thread);
	m->priv->threads.v[thread].flags &= ~(uint32_t)(THREAD_ASKED_OFF | THREAD_LEFT_OFF |
	                                                THREAD_STOPPING);
}

static void unpark(struct model *m, uint32_t thread)
{
	leave_lock(m, thread);
	m->priv->threads.v[thread].started_ns = 0;
}

/* Whatever it does without the GIL; a hold goes on until it is released. */
static void go_on(struct model *m, uint32_t thread, uint64_t t)
{
	/* The last span is not that of the release any more. */
	m->priv->threads.v[thread].flags &= ~(uint32_t)(THREAD_SAVED | THREAD_RELEASED);
	if (gil_state_is_without(last(m, thread)->state))
		gil_without(m, thread, t);
}

void lock_park(struct model *m, uint32_t thread, uint64_t t, const struct event *ev)
{
	gil_prove_without(m, thread, t);
	unpark(m, thread);
	if (ev->park.kind != PARK_EVENT) {
		uint32_t lock = lock_of(m, m->priv->threads.v[thread].proc, ev);

		m->priv->threads.v[thread].lock = lock;
		m->priv->locks.v[lock].waiters++;
	}
	go_on(m, thread, t);
}

void lock_parked(struct model *m, uint32_t thread, uint64_t t)
{
	unpark(m, thread);
	go_on(m, thread, t);
}

void lock_unpark(struct model *m, uint32_t thread, uint64_t t, uint64_t address)
{
	uint32_t key = 0, lock = find(m, m->priv->threads.v[thread].proc, address, &key);
	struct lock_book *book;

	go_on(m, thread, t);
	if (lock == MODEL_NONE)
		return;
	book = &m->priv->locks.v[lock];
	if (book->waiters)
		*vec_push(&book->releases) = (struct lock_release){ t, thread };
}

void lock_stop_world(struct model *m, uint32_t thread, uint64_t t)
{
	m->priv->threads.v[thread].started_ns = 0;
	m->priv->threads.v[thread].flags |= THREAD_STOPPING;
	go_on(m, thread, t);
}

void lock_start_world(struct model *m, uint32_t thread, uint64_t t, uint32_t frame)
{
	struct thread_state *ts = &m->priv->threads.v[thread];

	if (last(m, thread)->state == GIL_STOPPING)
		last(m, thread)->stack = frame;
	ts->flags &= ~(uint32_t)THREAD_STOPPING;
	ts->started_ns = t;
	go_on(m, thread, t);
}

/* It went on stopping them since it began to let them go, if all that it did since was to do so. */
void lock_started_world(struct model *m, uint32_t thread, uint64_t t)
{
	struct lane *lane = &m->threads.v[thread].gil;
	const struct span *s = lane_last(lane);

	if (lane->spans.n > 1 && s->state == GIL_NO && s[-1].state == GIL_STOPPING &&
	    s->start_ns == m->priv->threads.v[thread].started_ns)
		lane->spans.n--;
	go_on(m, thread, t);
}

/* It sleeps until it is notified of something: the lock is its own. */
static void make_idle(struct model *m, uint32_t thread)
{
	struct lane *lane = &m->threads.v[thread].gil;
	struct span *s = lane_last(lane);

	unpark(m, thread);
	s->state = GIL_NO;
	s->ref = MODEL_NONE;
	if (lane->spans.n > 1 && s[-1].state == GIL_NO && !s[-1].flags)
		lane->spans.n--;
}

void lock_frame(struct model *m, uint32_t thread, const struct event *ev)
{
	if (last(m, thread)->state != GIL_LOCK_WAIT)
		return;
	if (ev->flags & EVF_NOTIFIED)
		make_idle(m, thread);
	else
		last(m, thread)->stack = ev->gil.frame;
}

void lock_gil_off(struct model *m, uint32_t thread, uint64_t t, const struct event *ev)
{
	struct thread_state *ts = &m->priv->threads.v[thread];

	gil_turned_off(m, thread, t);
	ts->flags &= ~(uint32_t)(THREAD_SAVED | THREAD_RELEASED);
	ts->started_ns = 0;
	gil_without(m, thread, t);
	ts->flags |= ev->type == EV_REQUEST ? THREAD_ASKED_OFF : THREAD_LEFT_OFF;
	if (ev->type != EV_REQUEST)
		return;
	ts->frame = ev->gil.frame;
	lock_frame(m, thread, ev);
}

/* ---- totals */

static void add_stretch(struct model_blocked_list *list, uint32_t by, uint64_t start_ns,
                        uint64_t end_ns)
{
	if (start_ns < end_ns)
		*vec_push(&list->v) = (struct model_blocked){ start_ns, end_ns, by };
}

void model_blocked(const struct model *m, uint32_t thread, size_t span,
                   struct model_blocked_list *list)
{
	const struct lane *lane = &m->threads.v[thread].gil;
	const struct span *s = &lane->spans.v[span];
	uint64_t at = s->start_ns, end_ns = lane_span_end(lane, span);
	const struct lock_book *book;
	bool released;
	size_t i;

	if (s->state != GIL_LOCK_WAIT && s->state != GIL_STOPPED)
		return;
	book = &m->priv->locks.v[s->ref];
	i = SEARCH_AFTER(book->releases.v, book->releases.n, time_ns, at);
	/* With a GIL, the span begins when that is let go, after what it had itself. */
	released = i && book->releases.v[i - 1].thread == thread;
	for (; i < book->releases.n && book->releases.v[i].time_ns <= end_ns; i++) {
		const struct lock_release *r = &book->releases.v[i];

		/* What it had itself, it lets go as it falls asleep. */
		add_stretch(list, r->thread == thread ? MODEL_NONE : r->thread, at, r->time_ns);
		at = r->time_ns;
		released = true;
	}
	add_stretch(list, released ? MODEL_NONE : MODEL_UNKNOWN, at, end_ns);
}

static void blame_state(struct model *m, uint32_t thread, struct ledger *l, enum gil_state state)
{
	const struct lane *lane = &m->threads.v[thread].gil;
	struct model_blocked_list list = { 0 };

	for (size_t i = 0; i < lane->spans.n; i++)
		if (lane->spans.v[i].state == state)
			model_blocked(m, thread, i, &list);
	for (size_t i = 0; i < list.v.n; i++)
		ledger_charge(l, list.v.v[i].by, list.v.v[i].start_ns, list.v.v[i].end_ns);
	vec_done(&list.v);
	for (size_t i = 0; i < l->used.n; i++) {
		struct model_blame *row = &l->rows[l->used.v[i]];

		*vec_push(&m->lock_blame) = (struct model_lock_blame){
			thread,       row->holder,     state,
			row->wait_ns, row->longest_ns, row->longest_at_ns
		};
		*row = (struct model_blame){ 0 };
	}
	l->used.n = 0;
}

void lock_finish(struct model *m)
{
	struct ledger l = { .threads = m->threads.n };

	if (!m->park_events)
		return;
	l.rows = xcalloc(m->threads.n + 2, sizeof(*l.rows));
	for (uint32_t i = 0; i < m->threads.n; i++) {
		blame_state(m, i, &l, GIL_LOCK_WAIT);
		blame_state(m, i, &l, GIL_STOPPED);
	}
	vec_done(&l.used);
	free(l.rows);
}

void lock_done(struct model *m)
{
	for (size_t i = 0; i < m->priv->locks.n; i++)
		vec_done(&m->priv->locks.v[i].releases);
	vec_done(&m->priv->locks);
	idmap_done(&m->priv->lock_keys);
	vec_done(&m->locks);
	vec_done(&m->lock_blame);
}

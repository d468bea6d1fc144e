/* SPDX-License-Identifier: MIT */
/* If the GIL is off, threads park until they get a lock, or while another thread has stopped the
 * world. Both end when a thread unparks them. In the GIL lane these are states without the GIL. */
#include "model/locks.h"

#include "base/vec.h"
#include "model/blame.h"
#include "model/gil.h"
#include "model/private.h"
#include "model/thread.h"

#include <stdlib.h>

#include "trace/names.h"

/* The world of an interpreter is stopped by one thread at a time; there are few interpreters. */
#define STOPS_AT_ONCE 16

static struct span *last(struct model *m, uint32_t thread)
{
	return lane_last(&m->threads.v[thread].gil);
}

static struct parking *parking_of(struct model *m, uint32_t thread)
{
	return &m->priv->threads.v[thread].parking;
}

/* ---- waits and releases */

/* The lock at an address, and its key; if there is none, the key for it. */
static uint32_t find(const struct model *m, uint32_t proc, uint64_t address, uint64_t *ret_key)
{
	uint64_t key = address_key(proc, address);
	uint32_t lock;

	while ((lock = idmap_get(&m->priv->lock_keys, key)) != IDMAP_NONE) {
		*ret_key = key;
		if (m->locks.v[lock].address == address && m->priv->locks.v[lock].proc == proc)
			return lock;
		key++;
	}
	*ret_key = key;
	return MODEL_NONE;
}

/* Whether the lock at this address belongs to another object than that of the event. The name may have
 * been found later. */
static bool is_other(const struct lock_tracker *lock, const struct event *ev)
{
	return !lock->waiters && lock->of && ev->park.of &&
	       (lock->of != ev->park.of || (lock->name && lock->name != ev->park.name));
}

static uint32_t lock_of(struct model *m, uint32_t proc, const struct event *ev)
{
	uint64_t key = 0;
	uint32_t lock = find(m, proc, ev->park.address, &key);

	if (lock == MODEL_NONE || is_other(&m->priv->locks.v[lock], ev) ||
	    (m->priv->locks.v[lock].gone && !m->priv->locks.v[lock].waiters)) {
		lock = (uint32_t)m->locks.n;
		*vec_push(&m->locks) = (struct model_lock){ .pid = m->priv->procs.v[proc].pid,
			                                    .address = ev->park.address,
			                                    .of = "",
			                                    .name = "" };
		*vec_push(&m->priv->locks) = (struct lock_tracker){ .proc = proc };
		idmap_set(&m->priv->lock_keys, key, lock);
	}
	m->locks.v[lock].world = ev->park.kind == PARK_WORLD;
	m->locks.v[lock].runtime |= (ev->flags & EVF_RUNTIME) != 0;
	if (ev->park.of || ev->park.name) {
		m->priv->locks.v[lock].of = ev->park.of;
		m->priv->locks.v[lock].name = ev->park.name;
	}
	return lock;
}

struct span locks_span(struct model *m, uint32_t thread, uint64_t t)
{
	const struct parking *parking = parking_of(m, thread);
	struct span span = gil_span(t, GIL_NO, MODEL_NONE, 0);

	if (parking->lock != MODEL_NONE) {
		bool world = m->locks.v[parking->lock].world;

		span.state = world ? GIL_STOPPED : parking->spins ? GIL_SPINNING : GIL_LOCK_WAIT;
		span.gil.lock = parking->lock;
		/* The thread was stopped before it ran any Python code after the request. */
		span.gil.frame = world ? parking->frame : parking->lock_frame;
	} else if (parking->stopping) {
		const struct span *was = lane_last(&m->threads.v[thread].gil);

		span.state = GIL_STOPPING;
		span.gil.frame = was->state == GIL_STOPPING    ? was->gil.frame
		                 : parking->stop != MODEL_NONE ? m->stops.v[parking->stop].frame
		                                               : 0;
	}
	return span;
}

/* The time of the last event or, once model_finish has set it, the end. */
static uint64_t now(const struct model *m)
{
	return m->end_ns ? m->end_ns : m->priv->now_ns;
}

/* Which thread sent the signal that ended a wait. If others wait for the same one, and several threads
 * sent it meanwhile, that is unknown. */
static void find_sender(struct model_signal *signal, const struct lock_tracker *tracker)
{
	for (size_t i = tracker->releases.n; i-- > 0;) {
		const struct lock_release *sent = &tracker->releases.v[i];

		if (sent->time_ns < signal->from_ns || sent->time_ns > signal->to_ns)
			return;
		if (signal->by != MODEL_NONE && signal->by != sent->thread) {
			signal->by = MODEL_UNKNOWN;
			return;
		}
		signal->by = sent->thread;
		signal->frame = sent->frame;
		signal->sent_ns = sent->time_ns;
		if (!tracker->waiters)
			return;
	}
}

/* A thread begins to wait for the lock, or a signal; or it no longer does. */
static void join_crowd(struct model *m, uint32_t lock, uint64_t t)
{
	struct lock_tracker *tracker = &m->priv->locks.v[lock];

	if (!tracker->waiters++)
		tracker->wanted_since_ns = t;
	if (tracker->waiters > m->locks.v[lock].most_waiters)
		m->locks.v[lock].most_waiters = tracker->waiters;
}

static void leave_crowd(struct model *m, uint32_t lock)
{
	struct lock_tracker *tracker = &m->priv->locks.v[lock];

	if (!--tracker->waiters)
		m->locks.v[lock].wanted_ns += now(m) - tracker->wanted_since_ns;
}

/* The thread no longer waits for a signal. */
static void leave_event(struct model *m, uint32_t thread, uint64_t t)
{
	struct parking *parking = parking_of(m, thread);
	uint32_t lock = parking->event;
	struct lock_tracker *tracker = &m->priv->locks.v[lock];
	struct model_signal signal = { .from_ns = parking->event_ns,
		                       .to_ns = t,
		                       .sent_ns = t,
		                       .by = MODEL_NONE,
		                       .waits_in = parking->lock_frame };

	parking->event = MODEL_NONE;
	leave_crowd(m, lock);
	find_sender(&signal, tracker);
	*vec_push(&m->threads.v[thread].signals) = signal;
}

/* ---- deadlocks */

static bool is_same_deadlock(const struct model_deadlock *a, const struct model_deadlock *b)
{
	uint32_t shift = 0;

	if (a->count != b->count)
		return false;
	while (shift < a->count && b->threads[shift] != a->threads[0])
		shift++;
	for (uint32_t i = 0; i < a->count; i++)
		if (a->threads[i] != b->threads[(i + shift) % b->count])
			return false;
	return true;
}

static void add_deadlock(struct model *m, const struct model_deadlock *d)
{
	uint32_t i = 0;

	while (i < m->deadlocks.n && !is_same_deadlock(&m->deadlocks.v[i], d))
		i++;
	if (i == MODEL_DEADLOCKS)
		return;
	if (i == m->deadlocks.n)
		*vec_push(&m->deadlocks) = *d;
	else if (!m->deadlocks.v[i].times) /* a release ended the wait that seemed to be one */
		m->deadlocks.v[i] = *d;
	for (uint32_t k = 0; k < d->count; k++)
		parking_of(m, d->threads[k])->deadlock = i;
}

/* The thread waits for a lock that another one has: follows those to a thread that does not wait, or
 * back to this one. */
static void find_deadlock(struct model *m, uint32_t thread, uint64_t t)
{
	struct model_deadlock d = { .start_ns = t };

	for (uint32_t at = thread; d.count < MODEL_DEADLOCK_THREADS;) {
		const struct parking *parking = parking_of(m, at);

		if (parking->lock == MODEL_NONE || parking->holder == MODEL_NONE)
			return;
		d.threads[d.count++] = at;
		at = parking->holder;
		if (at == thread) {
			add_deadlock(m, &d);
			return;
		}
	}
}

/* The thread has begun to wait for a lock, and another one has it. */
static void begin_behind(struct model *m, uint32_t thread, uint64_t t, uint32_t tid)
{
	struct parking *parking = parking_of(m, thread);
	uint32_t holder = thread_find(m, tid);

	if (parking->lock == MODEL_NONE || holder == MODEL_NONE || holder == thread)
		return;
	parking->holder = holder;
	*vec_push(&m->threads.v[thread].kept) = (struct model_kept){ t, holder };
	find_deadlock(m, thread, t);
}

/* A wait ends. @stuck: nobody released the lock. What ends by a release was no deadlock. */
static void leave_deadlock(struct model *m, uint32_t thread, bool stuck)
{
	struct model_deadlock *d;

	if (parking_of(m, thread)->deadlock == MODEL_NONE)
		return;
	d = &m->deadlocks.v[parking_of(m, thread)->deadlock];
	for (uint32_t i = 0; i < d->count; i++)
		parking_of(m, d->threads[i])->deadlock = MODEL_NONE;
	if (!stuck)
		return;
	if (!d->times++)
		d->end_ns = now(m);
}

static void finish_deadlocks(struct model *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->deadlocks.n; i++)
		if (m->deadlocks.v[i].times)
			m->deadlocks.v[n++] = m->deadlocks.v[i];
	m->deadlocks.n = n;
}

/* ---- events */

static void leave_holder(struct model *m, uint32_t thread, bool stuck)
{
	struct parking *parking = parking_of(m, thread);

	leave_deadlock(m, thread, stuck);
	if (parking->holder != MODEL_NONE && !stuck)
		m->threads.v[thread].kept.n--;
	parking->holder = MODEL_NONE;
}

static void leave_lock(struct model *m, uint32_t thread, bool stuck)
{
	struct parking *parking = parking_of(m, thread);

	leave_holder(m, thread, stuck);
	if (parking->event != MODEL_NONE)
		leave_event(m, thread, m->priv->now_ns);
	if (parking->lock != MODEL_NONE) {
		leave_crowd(m, parking->lock);
		m->priv->locks.v[parking->lock].unsure -= parking->unsure;
	}
	parking->lock = MODEL_NONE;
	parking->unsure = parking->doubted = false;
}

/* The thread does something else. If it let the others continue before any of them slept, that was not
 * recorded, but it was soon after they had stopped. */
static void leave_stop(struct model *m, uint32_t thread)
{
	struct parking *parking = parking_of(m, thread);
	const struct model_stop *stop = parking->stop == MODEL_NONE ? NULL
	                                                            : &m->stops.v[parking->stop];
	struct lane *lane = &m->threads.v[thread].gil;

	parking->stop = MODEL_NONE;
	parking->looks = false;
	if (!stop || !parking->stopping || !stop->stopped_ns)
		return;
	parking->stopping = false;
	if (lane_last(lane)->state == GIL_STOPPING) {
		uint64_t since_ns =
			lane_last(lane)->start_ns; /* Before that, it may have held the GIL. */
		struct span span = gil_span(later(stop->stopped_ns, since_ns), GIL_NO, MODEL_NONE,
		                            0);

		lane_overwrite(lane, &span, true);
	}
}

/* The last span is not a wait for a lock. */
static void forget_wait(struct model *m, uint32_t thread)
{
	struct lane *lane = &m->threads.v[thread].gil;
	struct span *s = lane_last(lane);

	s->state = GIL_NO;
	s->gil.lock = MODEL_NONE;
	if (lane->spans.n > 1 && s[-1].state == GIL_NO && !s[-1].flags)
		lane->spans.n--;
}

/* A wait for the lock in the last span turns out to be for a signal. */
static void make_signal(struct model *m, uint32_t thread)
{
	struct parking *parking = parking_of(m, thread);
	const struct span *s = last(m, thread);

	m->priv->locks.v[parking->lock].unsure--;
	parking->unsure = parking->doubted = false;
	leave_holder(m, thread, false);
	if (s->state != GIL_LOCK_WAIT)
		return;
	parking->event = parking->lock;
	parking->event_ns = s->start_ns;
	parking->lock = MODEL_NONE;
	forget_wait(m, thread);
}

void locks_judge(struct model *m, uint32_t thread)
{
	const struct parking *parking = parking_of(m, thread);
	const struct lock_tracker *tracker;

	if (!parking->doubted)
		return;
	tracker = &m->priv->locks.v[parking->lock];
	if (!tracker->releases.n ||
	    tracker->releases.v[tracker->releases.n - 1].time_ns < last(m, thread)->start_ns)
		make_signal(m, thread);
}

void locks_forget(struct model *m, uint32_t thread, bool is_known)
{
	struct parking *parking = parking_of(m, thread);

	leave_stop(m, thread);
	leave_lock(m, thread, is_known);
	parking->stopping = false;
}

static void unpark(struct model *m, uint32_t thread, bool stuck)
{
	leave_lock(m, thread, stuck);
	parking_of(m, thread)->started_ns = 0;
	parking_of(m, thread)->spins = false;
}

/* Begins the span of the thread's current state, unless it holds or requests a GIL. */
static void update_span(struct model *m, uint32_t thread, uint64_t t)
{
	/* The last span no longer starts at the release of the GIL. */
	m->priv->threads.v[thread].flags &= ~(uint32_t)(THREAD_SAVED | THREAD_RELEASED);
	if (gil_state_is_without(last(m, thread)->state))
		gil_without(m, thread, t);
}

static void park(struct model *m, uint32_t thread, uint64_t t, const struct event *ev)
{
	uint32_t lock;

	gil_prove_without(m, thread, t);
	leave_stop(m, thread);
	unpark(m, thread, false);
	parking_of(m, thread)->spins = ev->type == EV_SPIN;
	lock = lock_of(m, m->priv->threads.v[thread].proc, ev);
	join_crowd(m, lock, t);
	m->priv->locks.v[lock].stopped = thread;
	if (ev->park.kind != PARK_WORLD)
		parking_of(m, thread)->lock_frame = ev->park.frame;
	if (ev->park.kind != PARK_EVENT) {
		parking_of(m, thread)->lock = lock;
		if (ev->park.kind == PARK_WORLD && ev->park.frame)
			parking_of(m, thread)->frame = ev->park.frame;
		parking_of(m, thread)->unsure = ev->park.kind == PARK_LOCK &&
		                                !(ev->flags & EVF_TURN);
		m->priv->locks.v[lock].unsure += parking_of(m, thread)->unsure;
		parking_of(m, thread)->doubted = ev->flags & EVF_DOUBT;
	} else {
		parking_of(m, thread)->event = lock;
		parking_of(m, thread)->event_ns = t;
	}
	update_span(m, thread, t);
}

/* The thread that is the last one to stop tells the one that stops the world. */
static bool is_last_to_stop(struct model *m, uint32_t thread, const struct event *ev)
{
	for (size_t i = m->stops.n; i-- > 0 && m->stops.n - i <= STOPS_AT_ONCE;) {
		struct model_stop *stop = &m->stops.v[i];

		if (stop->address != ev->park.address || stop->stopped_ns || stop->start_ns ||
		    m->threads.v[stop->by].pid != m->threads.v[thread].pid)
			continue;
		stop->last = thread;
		stop->last_frame = ev->park.frame;
		return true;
	}
	return false;
}

/* The thread lets others continue. */
static void start_others(struct model *m, uint32_t thread, uint64_t t, uint32_t frame)
{
	struct parking *parking = parking_of(m, thread);

	if (parking->stop != MODEL_NONE)
		return;
	parking->stop = (uint32_t)m->stops.n;
	*vec_push(&m->stops) = (struct model_stop){
		.by = thread,
		.last = MODEL_NONE,
		.late = MODEL_NONE,
		.frame = frame,
		.request_ns = t,
		.start_ns = t,
		.inferred = true,
	};
}

/* It is letting others continue until it has let the last one. */
static void extend_stopping(struct model *m, uint32_t thread, uint64_t t)
{
	struct parking *parking = parking_of(m, thread);
	struct lane *lane = &m->threads.v[thread].gil;
	struct span *s = lane_last(lane);

	if (lane->spans.n < 2 || s->state != GIL_NO || s[-1].state != GIL_STOPPING ||
	    s->start_ns < m->stops.v[parking->stop].start_ns)
		return;
	if (parking->started_ns == s->start_ns)
		parking->started_ns = t;
	s->start_ns = t;
}

/* It lets one continue. Its request was not later than the other one stopped: it is recorded when the
 * thread begins to wait for others, for which it needs a CPU, and not if it does not have to wait. */
static void start_other(struct model *m, uint32_t thread, uint32_t other)
{
	struct model_stop *stop = &m->stops.v[parking_of(m, thread)->stop];
	struct lane *lane = &m->threads.v[thread].gil;
	uint64_t from_ns = last(m, other)->start_ns, end_ns = stop->start_ns;
	size_t i = lane->spans.n;
	struct span span;

	if (last(m, other)->state != GIL_STOPPED || from_ns >= stop->request_ns)
		return;
	/* Since then it tried to get locks at most, to stop the others. */
	while (i-- > 0) {
		const struct span *s = &lane->spans.v[i];
		bool own = s->state == GIL_STOPPING && s->start_ns >= stop->request_ns;

		if (s->state != GIL_NO && s->state != GIL_SPINNING && !own)
			return;
		if (own && i + 1 < lane->spans.n)
			end_ns = s[1].start_ns;
		if (s->start_ns <= from_ns)
			break;
	}
	if (i >= lane->spans.n)
		return;
	stop->request_ns = from_ns;
	span = gil_span(from_ns, GIL_STOPPING, MODEL_NONE, SPAN_INFERRED_START);
	span.gil.frame = stop->frame;
	lane_overwrite(lane, &span, true);
	span = gil_span(end_ns, GIL_NO, MODEL_NONE, 0);
	lane_push(lane, &span, true);
}

static void make_signals(struct model *m, uint32_t lock)
{
	for (uint32_t i = 0; i < m->threads.n && m->priv->locks.v[lock].unsure; i++)
		if (parking_of(m, i)->lock == lock && parking_of(m, i)->unsure)
			make_signal(m, i);
}

static void release(struct model *m, uint32_t thread, uint64_t t, const struct event *ev)
{
	uint64_t key = 0;
	uint32_t lock = find(m, m->priv->threads.v[thread].proc, ev->park.address, &key);
	struct lock_tracker *tracker;

	if (ev->park.address && is_last_to_stop(m, thread, ev))
		return;
	if (lock != MODEL_NONE && m->locks.v[lock].world) {
		start_others(m, thread, t, ev->park.frame);
		start_other(m, thread, m->priv->locks.v[lock].stopped);
		extend_stopping(m, thread, t);
	} else if (!parking_of(m, thread)->stopping) {
		leave_stop(m, thread);
	}
	update_span(m, thread, t);
	if (lock == MODEL_NONE)
		return;
	if (ev->flags & EVF_SIGNAL) {
		make_signals(m, lock);
		m->locks.v[lock].signal = true;
	}
	tracker = &m->priv->locks.v[lock];
	/* Threads that are about to be stopped may not be asleep yet: see released_before. */
	if (tracker->waiters || m->locks.v[lock].world)
		*vec_push(&tracker->releases) = (struct lock_release){ t, thread, ev->park.frame };
	m->locks.v[lock].releases += tracker->waiters != 0;
}

static void stop_world(struct model *m, uint32_t thread, uint64_t t, const struct event *ev)
{
	struct parking *parking = parking_of(m, thread);

	parking->started_ns = 0;
	if (parking->stopping && parking->looks) {
		parking->looks = false;
		m->stops.v[parking->stop].stopped_ns = 0;
		return;
	}
	leave_stop(m, thread);
	parking->stopping = true;
	parking->stop = (uint32_t)m->stops.n;
	*vec_push(&m->stops) = (struct model_stop){
		.by = thread,
		.last = MODEL_NONE,
		.late = MODEL_NONE,
		.frame = ev->park.frame,
		.address = ev->park.address,
		.request_ns = t,
		.collects = ev->flags & EVF_COLLECTS,
	};
	update_span(m, thread, t);
}

static void stopped_world(struct model *m, uint32_t thread, uint64_t t, bool looks)
{
	struct parking *parking = parking_of(m, thread);

	if (!parking->stopping || parking->stop == MODEL_NONE)
		return;
	m->stops.v[parking->stop].stopped_ns = t;
	parking->looks = looks;
}

static void note_late(struct model *m, uint32_t thread, uint64_t t, const struct event *ev)
{
	struct parking *parking = parking_of(m, thread);
	struct model_stop *stop;

	if (parking->stop == MODEL_NONE || !parking->stopping)
		return;
	stop = &m->stops.v[parking->stop];
	stop->late = thread_find(m, (uint32_t)ev->park.address);
	stop->late_frame = ev->park.frame;
	stop->late_ns = t;
}

/* A thread that released its state, to sleep or to run other code, tells nobody that it stopped. The thread
 * that waits looks every millisecond. */
#define LATE_NS 3000000

static void find_last(struct model_stop *stop)
{
	if (stop->late == MODEL_NONE)
		return;
	if (stop->last == MODEL_NONE && stop->stopped_ns &&
	    stop->stopped_ns - stop->late_ns < LATE_NS)
		stop->last = stop->late;
	if (stop->last == stop->late && stop->late_frame)
		stop->last_frame = stop->late_frame;
}

static void start_world(struct model *m, uint32_t thread, uint64_t t, uint32_t frame)
{
	struct parking *parking = parking_of(m, thread);

	if (last(m, thread)->state == GIL_STOPPING && frame)
		last(m, thread)->gil.frame = frame;
	if (parking->stopping && parking->stop != MODEL_NONE)
		m->stops.v[parking->stop].start_ns = t;
	else
		parking->stop = MODEL_NONE;
	start_others(m, thread, t, frame);
	parking->stopping = parking->looks = false;
	parking->started_ns = t;
	update_span(m, thread, t);
}

/* Starting the other threads again is part of stopping the world, if the thread did nothing else in
 * between. */
static void started_world(struct model *m, uint32_t thread, uint64_t t)
{
	struct lane *lane = &m->threads.v[thread].gil;
	const struct span *s = lane_last(lane);

	if (lane->spans.n > 1 && s->state == GIL_NO && s[-1].state == GIL_STOPPING &&
	    s->start_ns == parking_of(m, thread)->started_ns)
		lane->spans.n--;
	update_span(m, thread, t);
}

static void set_frame(struct model *m, uint32_t thread, const struct event *ev)
{
	if (last(m, thread)->state == GIL_LOCK_WAIT)
		last(m, thread)->gil.frame = ev->gil.frame;
}

/* The thread got what it waited for, and it is not known which thread released it: that is unknown of
 * other threads that wait for the same, too. */
static void release_by_unknown(struct model *m, uint32_t thread, uint64_t t)
{
	const struct parking *parking = parking_of(m, thread);
	uint32_t lock = parking->lock != MODEL_NONE ? parking->lock : parking->event;

	if (lock != MODEL_NONE)
		*vec_push(&m->priv->locks.v[lock].releases) =
			(struct lock_release){ t, MODEL_UNKNOWN, 0 };
}

/* Of the first two threads with this order, the first one that is not this thread. */
static uint32_t order_of_other(const struct model *m, uint32_t order, uint32_t thread)
{
	while (order < m->orders.n && m->orders.v[order].thread == thread)
		order = m->orders.v[order].again;
	return order < m->orders.n ? order : MODEL_NONE;
}

static bool is_known_inversion(const struct model *m, uint32_t order)
{
	while (order < m->orders.n && m->orders.v[order].reverse == MODEL_NONE)
		order = m->orders.v[order].again;
	return order < m->orders.n;
}

/* The thread has taken the lock of the event while it has another one. */
static void add_order(struct model *m, uint32_t thread, const struct event *ev)
{
	struct model_order order = {
		.outer = parking_of(m, thread)->outer,
		.inner = lock_of(m, m->priv->threads.v[thread].proc, ev),
		.thread = thread,
		.frame = ev->park.frame,
		.again = MODEL_NONE,
		.reverse = MODEL_NONE,
	};
	struct idmap *keys = &m->priv->order_keys;
	uint32_t other = idmap_get(keys, idmap_pair(order.inner, order.outer)), first;

	/* Records may be lost between the two events. */
	parking_of(m, thread)->outer = MODEL_NONE;
	if (order.outer == MODEL_NONE || m->orders.n == MODEL_ORDERS)
		return;
	if (!idmap_add(keys, idmap_pair(order.outer, order.inner), (uint32_t)m->orders.n, &first)) {
		if (m->orders.v[first].thread == thread || m->orders.v[first].again != MODEL_NONE)
			return;
		m->orders.v[first].again = (uint32_t)m->orders.n;
	}
	if (!is_known_inversion(m, first) && !is_known_inversion(m, other))
		order.reverse = order_of_other(m, other, thread);
	*vec_push(&m->orders) = order;
}

static void forget_lock(struct model *m, uint32_t thread, const struct event *ev)
{
	uint64_t key;
	uint32_t lock = find(m, m->priv->threads.v[thread].proc, ev->park.address, &key);

	if (lock != MODEL_NONE)
		m->priv->locks.v[lock].gone = true;
}

static void feed_park(struct model *m, const struct event *ev, uint32_t thread, uint64_t t)
{
	/* What a thread does to stop the world is part of that. */
	if ((ev->type == EV_SPIN || ev->type == EV_SPUN) && parking_of(m, thread)->stopping)
		return;
	switch (ev->type) {
	case EV_PARK:
	case EV_SPIN:
		park(m, thread, t, ev);
		break;
	case EV_OUTER:
		parking_of(m, thread)->outer = lock_of(m, m->priv->threads.v[thread].proc, ev);
		break;
	case EV_INNER:
		add_order(m, thread, ev);
		break;
	case EV_GONE:
		forget_lock(m, thread, ev);
		break;
	case EV_HOLDER:
		begin_behind(m, thread, t, ev->holder.tid);
		break;
	case EV_PARKED:
	case EV_SPUN:
		if (ev->flags & EVF_MISSED)
			release_by_unknown(m, thread, t);
		locks_judge(m, thread);
		unpark(m, thread, ev->flags & EVF_LEFT);
		update_span(m, thread, t);
		break;
	case EV_UNPARK:
		release(m, thread, t, ev);
		break;
	case EV_STOP_WORLD:
		stop_world(m, thread, t, ev);
		break;
	case EV_LATE:
		note_late(m, thread, t, ev);
		break;
	case EV_STOPPED_WORLD:
		stopped_world(m, thread, t, ev->flags & EVF_LOOKS);
		break;
	case EV_START_WORLD:
		start_world(m, thread, t, ev->gil.frame);
		break;
	case EV_STARTED_WORLD:
		started_world(m, thread, t);
		break;
	}
}

bool locks_feed(struct model *m, const struct event *ev, uint32_t thread, uint64_t t)
{
	if (ev->type >= EV_PARK) {
		m->park_events++;
		feed_park(m, ev, thread, t);
		return true;
	}
	if (ev->type == EV_REQUEST)
		set_frame(m, thread, ev);
	return false;
}

static void add_stretch(struct model_blocked_list *list, uint32_t by, uint32_t frame,
                        uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns < end_ns)
		*vec_push(&list->v) = (struct model_blocked){ start_ns, end_ns, by, frame, false };
}

/* A wait during which nobody released the lock: the thread that had it at its start still has it. */
static void add_kept(const struct model *m, uint32_t thread, struct model_blocked_list *list,
                     uint64_t start_ns, uint64_t end_ns)
{
	const struct model_thread *t = &m->threads.v[thread];
	size_t after = SEARCH(t->kept.n, i, t->kept.v[i].from_ns <= start_ns);
	const struct model_kept *kept = after ? &t->kept.v[after - 1] : NULL;
	bool known = kept && kept->from_ns == start_ns;

	add_stretch(list, known ? kept->holder : MODEL_UNKNOWN, 0, start_ns, end_ns);
	if (known && start_ns < end_ns)
		list->v.v[list->v.n - 1].kept = true;
}

/*
 * The world may be started again after a thread has noticed the request to stop and before it
 * sleeps. Then it was released before its span began, while it still ran, and it wakes at once.
 */
static bool released_before(const struct model *m, const struct span *s, size_t span,
                            const struct lock_release *before)
{
	return m->locks.v[s->gil.lock].world && span && before->time_ns >= s[-1].start_ns;
}

bool model_blocked(const struct model *m, uint32_t thread, size_t span, uint64_t *work,
                   struct model_blocked_list *list)
{
	const struct lane *lane = &m->threads.v[thread].gil;
	const struct span *s = &lane->spans.v[span];
	uint64_t at = s->start_ns, end_ns = lane_span_end(lane, span);
	const struct lock_tracker *tracker;
	bool released;
	size_t i;

	if (s->state != GIL_LOCK_WAIT && s->state != GIL_STOPPED)
		return true;
	tracker = &m->priv->locks.v[s->gil.lock];
	i = SEARCH(tracker->releases.n, k, tracker->releases.v[k].time_ns <= at);
	/* If the thread released the lock itself, its span begins after that release. */
	released = i && (tracker->releases.v[i - 1].thread == thread ||
	                 released_before(m, s, span, &tracker->releases.v[i - 1]));
	for (; i < tracker->releases.n && tracker->releases.v[i].time_ns <= end_ns; i++) {
		const struct lock_release *r = &tracker->releases.v[i];

		if (!*work) {
			add_stretch(list, MODEL_UNKNOWN, 0, at, end_ns);
			return false;
		}
		--*work;
		/* A lock that the waiter itself held is free once the waiter sleeps. */
		add_stretch(list, r->thread == thread ? MODEL_NONE : r->thread, r->frame, at,
		            r->time_ns);
		at = r->time_ns;
		released = true;
	}
	if (released)
		add_stretch(list, MODEL_NONE, 0, at, end_ns);
	else
		add_kept(m, thread, list, at, end_ns);
	return true;
}

/**
 * @work: as for model_blocked()
 * @rows: number of rows that may still be added
 * @ledger: charges of one thread in one state
 * @list: stretches of one span
 */
struct blaming {
	struct model *model;
	uint64_t work, rows;
	struct ledger ledger;
	struct model_blocked_list list;
};

static void charge(struct blaming *b, const struct model_blocked *part)
{
	struct ledger *l = &b->ledger;
	uint32_t by = part->by;

	if (by < MODEL_UNKNOWN && !l->rows[by].wait_ns && l->used.n >= b->rows) {
		by = MODEL_UNKNOWN;
		b->model->caveats[CAVEAT_COARSE]++;
	}
	ledger_charge(l, by, part->start_ns, part->end_ns);
}

static void add_rows(struct blaming *b, uint32_t thread, enum gil_state state)
{
	struct ledger *l = &b->ledger;

	for (size_t i = 0; i < l->used.n; i++) {
		struct model_blame *row = &l->rows[l->used.v[i]];

		*vec_push(&b->model->lock_blame) = (struct model_lock_blame){
			thread,       row->holder,     state,
			row->wait_ns, row->longest_ns, row->longest_at_ns
		};
		*row = (struct model_blame){ 0 };
	}
	b->rows -= l->used.n < b->rows ? l->used.n : b->rows;
	l->used.n = 0;
}

static void blame_state(struct blaming *b, uint32_t thread, enum gil_state state)
{
	const struct lane *lane = &b->model->threads.v[thread].gil;

	for (size_t i = 0; i < lane->spans.n; i++) {
		if (lane->spans.v[i].state != state)
			continue;
		b->list.v.n = 0;
		if (!model_blocked(b->model, thread, i, &b->work, &b->list))
			b->model->caveats[CAVEAT_COARSE]++;
		for (size_t k = 0; k < b->list.v.n; k++)
			charge(b, &b->list.v.v[k]);
	}
	add_rows(b, thread, state);
}

/* A thread executes no Python between its release of the GIL and its wait for a lock. */
static void set_frames(struct lane *lane)
{
	uint32_t frame = 0;

	for (size_t i = 0; i < lane->spans.n; i++) {
		struct span *s = &lane->spans.v[i];

		if (s->state == GIL_HOLD)
			frame = s->gil.frame;
		else if (s->state == GIL_UNKNOWN)
			frame = 0;
		else if (s->state == GIL_LOCK_WAIT && !s->gil.frame)
			s->gil.frame = frame;
	}
}

static void name_lock(struct model *m, const struct names *names, size_t i)
{
	m->locks.v[i].of = names_get(names, m->priv->locks.v[i].of);
	m->locks.v[i].name = names_get(names, m->priv->locks.v[i].name);
}

void locks_finish(struct model *m)
{
	struct blaming b = {
		.model = m,
		.work = model_blocked_work(m),
		.rows = MODEL_BLAME_ROWS + m->park_events * MODEL_BLAME_ROWS_PER_EVENT,
		.ledger = { .threads = m->threads.n },
	};
	const struct names *names = m->priv->options.names;

	if (!m->park_events)
		return;
	for (size_t i = 0; i < m->stops.n; i++)
		find_last(&m->stops.v[i]);
	for (size_t i = 0; names && i < m->locks.n; i++)
		name_lock(m, names, i);
	b.ledger.rows = xcalloc(m->threads.n + 2, sizeof(*b.ledger.rows));
	for (uint32_t i = 0; i < m->threads.n; i++) {
		set_frames(&m->threads.v[i].gil);
		blame_state(&b, i, GIL_LOCK_WAIT);
		blame_state(&b, i, GIL_STOPPED);
	}
	finish_deadlocks(m);
	vec_done(&b.list.v);
	vec_done(&b.ledger.used);
	free(b.ledger.rows);
}

void locks_done(struct model *m)
{
	for (size_t i = 0; i < m->priv->locks.n; i++)
		vec_done(&m->priv->locks.v[i].releases);
	vec_done(&m->priv->locks);
	idmap_done(&m->priv->lock_keys);
	idmap_done(&m->priv->order_keys);
	vec_done(&m->orders);
	vec_done(&m->locks);
	vec_done(&m->stops);
	vec_done(&m->lock_blame);
	vec_done(&m->deadlocks);
}

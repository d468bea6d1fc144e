/* SPDX-License-Identifier: MIT */
/* Counting: what a thread adds to its slot in the page of totals (totals.h) when it uses a GIL. */
#ifndef GILTRACER_PRELOAD_COUNT_H
#define GILTRACER_PRELOAD_COUNT_H

#include "preload/internal.h"
#include "preload/totals.h"

/**
 * @on: this process has a page
 * @named: threads report their names when they start; @told: the observer tells them
 * @mult: totals_header.mult
 */
struct counting {
	bool on, named, told;
	uint64_t mult;
};

extern struct counting counting;

/* @slot: NULL: nothing is counted; @seq: its previous seq */
struct count {
	struct totals_slot *slot;
	uint64_t seq;
};

/* A GIL has been created: this process has a page from now on, if the folder exists. Returns
 * whether that is so now. */
bool count_begin(void);
void count_in_child(void);

/* A program that was already running has a page in this folder from now on, possibly again. False:
 * impossible. */
bool count_begin_in(const char *dir);

/* It has none any more. Other threads may be writing to it meanwhile. count_stop makes no system call, and leaves
 * it mapped. */
void count_stop(void);
void count_end(void);

/* The thread's slot is of a page that is over. */
void count_forget(struct self *me);

/* The thread, which has just released the GIL, takes a slot for its name if the observer has told that. */
void count_learn_name(struct self *me, const struct gil *g);

/* The thread holds the GIL. */
void count_held(struct self *me, struct gil *g);

/* A GIL was created, or destroyed. */
void count_gil_made(struct gil *g);
void count_gil_gone(const struct gil *g);

/* The holder of the GIL was asked to release it. Its mutex is locked. */
void count_asked(const struct gil *g);

/* The number of a line that waits for a lock, or TOTALS_LOCK_OTHER. */
uint32_t count_lock_line(const char *where);

/* The thread has waited for a lock for this time, in this line. */
void count_lock_wait(struct self *me, uint32_t line, uint64_t ticks);

/* The thread is one of a free-threaded CPython, which may never use its GIL. */
void count_nogil_thread(struct self *me);

/* Opens a file of the folder of pages; negative: there is none. */
long count_open_file(const char *name);

/* Replaces the thread's slot by one for this GIL; me->slot is NULL if there is none. */
void count_take_slot(struct self *me, const struct gil *g);

/* The calling thread, which holds a GIL, has a new name. */
void count_named(const char *name);

/* ---- waited_for.c: waits by holder. The GIL's mutex is locked. */

/* The thread has begun to wait. */
void waited_begin(struct self *me, struct gil *g);

/* Begins a change, to be ended by one of the next two functions; a stamp is taken in between. */
void waited_open(struct gil *g);

/* The thread has taken the GIL at stamp or, if another thread holds it, given up. Called before
 * count_acquired. */
void waited_acquired(struct self *me, struct gil *g, const struct count *c, uint64_t stamp);
void waited_released(struct gil *g, uint64_t stamp);

/* The thread, which holds the GIL, has changed its group. Called with the mutex not locked. */
void waited_named(const struct self *me, struct gil *g);

/* ---- names.c */

/* The code at caller creates a thread. */
void names_thread_starts(const void *caller);

/* ---- inline, because it is executed twice for each release */

#define COUNT_SET(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)
#define COUNT_ADD(field, value) COUNT_SET(field, (field) + (value))

/* Begins to change the thread's slot, until count_close(). */
static inline struct count count_open(struct self *me, const struct gil *g)
{
	struct count c = { .slot = NULL };

	if (!counting.on)
		return c;
	if (UNLIKELY(me->slot_gil != g))
		count_take_slot(me, g);
	c.slot = me->slot;
	if (UNLIKELY(!c.slot))
		return c;
	c.seq = c.slot->seq;
	COUNT_SET(c.slot->seq, c.seq | 1);
	atomic_thread_fence(memory_order_release);
	return c;
}

/* In a signal handler, leaves the end of the change to the interrupted function. */
static inline void count_close(const struct count *c)
{
	if (LIKELY(!(c->seq & 1)))
		__atomic_store_n(&c->slot->seq, c->seq + 2, __ATOMIC_RELEASE);
}

/* Changes the state and returns for how long the thread was in the previous one. Counters of
 * different CPUs may differ by a few ticks. */
static inline uint64_t count_change(struct totals_slot *slot, enum totals_state state,
                                    uint64_t stamp)
{
	uint64_t since = slot->since;

	if (UNLIKELY(stamp < since))
		stamp = since;
	COUNT_SET(slot->since, stamp);
	COUNT_SET(slot->state, state);
	return stamp - since;
}

static inline void count_duration(uint64_t *histogram, uint64_t ticks)
{
	uint64_t units = TOTALS_NS(ticks, counting.mult) >> TOTALS_BUCKET_BITS;
	unsigned i = units ? 64 - (unsigned)__builtin_clzll(units) : 0;

	if (UNLIKELY(i >= TOTALS_BUCKETS))
		i = TOTALS_BUCKETS - 1;
	COUNT_ADD(histogram[i], 1);
}

/* The group that holds the GIL; may be called without its mutex. */
static inline uint32_t count_holder(const struct gil *g)
{
	if (!g->waited)
		return TOTALS_OTHERS;
	return __atomic_load_n(&g->holder, __ATOMIC_RELAXED) ? g->group : TOTALS_NOBODY;
}

static inline void count_request(struct self *me, const struct gil *g, uint64_t stamp)
{
	struct count c = count_open(me, g);

	if (!c.slot)
		return;
	count_change(c.slot, TOTALS_WAIT, stamp);
	COUNT_SET(c.slot->holder, count_holder(g));
	COUNT_SET(c.slot->compared, 0);
	count_close(&c);
}

static inline void count_waited(struct totals_slot *slot, uint64_t ticks)
{
	COUNT_ADD(slot->wait, ticks);
	if (!slot->compared)
		COUNT_ADD(slot->wait_for[slot->holder], ticks);
	count_duration(slot->waits, ticks);
	if (ticks <= slot->longest_wait)
		return;
	COUNT_SET(slot->longest_wait, ticks);
	COUNT_SET(slot->longest_wait_end, slot->since);
}

/* The thread has taken the GIL or, with another state, given up. */
static inline void count_acquired(const struct count *c, enum totals_state state, uint64_t stamp)
{
	enum totals_state before;
	uint64_t ticks;

	if (!c->slot)
		return;
	before = c->slot->state;
	ticks = count_change(c->slot, state, stamp);
	if (before == TOTALS_WAIT)
		count_waited(c->slot, ticks);
	else if (UNLIKELY(before == TOTALS_HOLD)) /* of a GIL initialized again by fork */
		COUNT_ADD(c->slot->hold, ticks);
	count_close(c);
}

static inline void count_released(const struct count *c, uint64_t stamp, uint64_t asked)
{
	struct totals_slot *slot = c->slot;
	uint64_t ticks;

	if (!slot)
		return;
	if (LIKELY(slot->state == TOTALS_HOLD)) {
		ticks = count_change(slot, TOTALS_FREE, stamp);
		COUNT_ADD(slot->hold, ticks);
		count_duration(slot->holds, ticks);
		if (ticks > slot->longest_hold) {
			COUNT_SET(slot->longest_hold, ticks);
			COUNT_SET(slot->longest_hold_end, slot->since);
		}
		if (UNLIKELY(asked && asked < slot->since))
			COUNT_ADD(slot->kept,
			          slot->since - asked < ticks ? slot->since - asked : ticks);
	}
	count_close(c);
}

/* A forced switch: the thread waits, from its release on, until another thread has taken the
 * GIL. */
static inline void count_switch(struct self *me, const struct gil *g)
{
	struct count c = count_open(me, g);

	if (!c.slot)
		return;
	if (c.slot->state == TOTALS_FREE)
		COUNT_SET(c.slot->state, TOTALS_SWITCH);
	count_close(&c);
}

static inline void count_switched(struct self *me, const struct gil *g)
{
	struct count c = count_open(me, g);

	if (!c.slot)
		return;
	if (c.slot->state == TOTALS_SWITCH)
		COUNT_ADD(c.slot->switch_wait,
		          count_change(c.slot, TOTALS_FREE, clock_stamp_after()));
	count_close(&c);
}

#endif

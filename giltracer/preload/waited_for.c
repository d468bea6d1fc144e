/* SPDX-License-Identifier: MIT */
/*
 * Waits by holder. While any thread waits, the page contains for how long each group of threads has
 * held the GIL (totals_waited.held), and a wait is compared with the values at its beginning. So
 * the cost of a wait does not depend on the number of other waits, and a GIL without waits costs
 * nothing.
 */
#include "preload/count.h"

void waited_open(struct gil *g)
{
	struct totals_waited *w = g->waited;

	COUNT_SET(w->seq, w->seq | 1);
	atomic_thread_fence(memory_order_release);
}

static void waited_close(struct totals_waited *w)
{
	__atomic_store_n(&w->seq, (w->seq | 1) + 1, __ATOMIC_RELEASE);
}

/* Charges the time since the last change to the group. Counters of different CPUs may differ by
 * a few ticks. */
static void charge(struct totals_waited *w, uint32_t group, uint64_t stamp)
{
	if (stamp <= w->last)
		return;
	COUNT_ADD(w->held[group], stamp - w->last);
	COUNT_SET(w->last, stamp);
}

/* The time since the request, spent waiting for the mutex, remains with the group that held the
 * GIL at the request. */
void waited_begin(struct self *me, struct gil *g)
{
	struct totals_waited *w = g->waited;
	struct count c = count_open(me, g);
	uint64_t stamp;

	if (!c.slot)
		return;
	if (w) {
		waited_open(g);
		stamp = clock_stamp_after();
		if (g->compared)
			charge(w, w->holder, stamp);
		else
			COUNT_SET(w->last, stamp);
		COUNT_SET(w->holder, count_holder(g));
		for (unsigned i = 0; i < TOTALS_GROUPS; i++)
			COUNT_SET(c.slot->seen[i], w->held[i]);
		waited_close(w);
		g->compared++;
		COUNT_SET(c.slot->compared, 1);
	}
	count_close(&c);
}

/* Adds the differences, and the rest of the wait. */
static void add_wait(struct totals_slot *slot, const struct totals_waited *w, uint64_t stamp)
{
	uint64_t left = stamp > slot->since ? stamp - slot->since : 0;

	for (unsigned i = 0; i < TOTALS_GROUPS; i++) {
		uint64_t ticks = w->held[i] - slot->seen[i];

		if (ticks > left)
			ticks = left;
		COUNT_ADD(slot->wait_for[i], ticks);
		left -= ticks;
	}
	COUNT_ADD(slot->wait_for[slot->holder], left);
}

void waited_named(const struct self *me, struct gil *g)
{
	real_lock(g->mutex);
	if (g->compared) {
		waited_open(g);
		charge(g->waited, g->waited->holder, clock_stamp());
		COUNT_SET(g->waited->holder, me->group);
		waited_close(g->waited);
	}
	g->group = me->group;
	real_unlock(g->mutex);
}

void waited_acquired(struct self *me, struct gil *g, const struct count *c, uint64_t stamp)
{
	struct totals_waited *w = g->waited;

	charge(w, g->holder ? w->holder : TOTALS_NOBODY, stamp);
	if (me->waits && c->slot && c->slot->compared) {
		add_wait(c->slot, w, stamp);
		g->compared--;
	}
	if (!g->holder)
		COUNT_SET(w->holder, me->group);
	waited_close(w);
}

void waited_released(struct gil *g, uint64_t stamp)
{
	charge(g->waited, g->waited->holder, stamp);
	COUNT_SET(g->waited->holder, TOTALS_NOBODY);
	waited_close(g->waited);
}

/* SPDX-License-Identifier: MIT */
/*
 * For whom threads wait. While any do, the page says how long each group of threads has held the GIL
 * since (totals_waited.held); a wait is compared with what that was at its beginning. So what a wait
 * costs does not depend on how many others wait, and a GIL that nobody waits for costs nothing.
 */
#include "preload/count.h"

void waited_open(struct gil *g)
{
	struct totals_waited *w = g->waited;

	COUNT_SET(w->seq, w->seq | 1);
	atomic_thread_fence(memory_order_release);
}

static void close_it(struct totals_waited *w)
{
	__atomic_store_n(&w->seq, (w->seq | 1) + 1, __ATOMIC_RELEASE);
}

/* What has passed is the group's. Counters of different CPUs may differ by a few ticks. */
static void charge(struct totals_waited *w, uint32_t group, uint64_t stamp)
{
	if (stamp <= w->last)
		return;
	COUNT_ADD(w->held[group], stamp - w->last);
	COUNT_SET(w->last, stamp);
}

/* Between the request and here, the mutex was another's: that is for the group that had the GIL then. */
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
		close_it(w);
		g->compared++;
		COUNT_SET(c.slot->compared, 1);
	}
	count_close(&c);
}

/* The differences, and what is missing to the whole wait. */
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
		close_it(g->waited);
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
	close_it(w);
}

void waited_released(struct gil *g, uint64_t stamp)
{
	charge(g->waited, g->waited->holder, stamp);
	COUNT_SET(g->waited->holder, TOTALS_NOBODY);
	close_it(g->waited);
}

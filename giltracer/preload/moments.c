/* SPDX-License-Identifier: MIT */
/*
 * Tells the launcher of the first wait, hold or step of an event loop that is longer than asked for, at
 * its end, or before if it still goes on. The next one is told when the launcher has looked.
 */
#include "preload/internal.h"

/* Returns whether it was told. */
static bool tell(enum preload_moment moment, pid_t tid, uint64_t ticks, bool ended)
{
	struct preload_control *control = process.control;
	uint32_t none = 0;

	if (!process.on || !control->longest[moment] || ticks <= control->longest[moment] ||
	    !__atomic_compare_exchange_n(&control->moment, &none, UINT32_MAX, false,
	                                 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	control->moment_pid = (uint32_t)process.pid;
	control->moment_tid = (uint32_t)tid;
	control->moment_ticks = ticks;
	control->moment_ended = ended;
	__atomic_store_n(&control->moment, 1 + moment, __ATOMIC_RELEASE);
	return true;
}

/* Another time may have been told since, which this does not end. */
static void end(bool *noticed, pid_t tid, uint64_t ticks)
{
	struct preload_control *control = process.control;

	if (!*noticed)
		return;
	*noticed = false;
	if (control->moment_pid != (uint32_t)process.pid || control->moment_tid != (uint32_t)tid)
		return;
	control->moment_ticks = ticks;
	__atomic_store_n(&control->moment_ended, 1, __ATOMIC_RELEASE);
}

void moments_waited(struct self *me, uint64_t stamp, bool ended)
{
	uint64_t ticks = stamp - me->requested_stamp;

	if (ended && me->noticed)
		end(&me->noticed, me->tid, ticks);
	else if (!me->noticed)
		me->noticed = tell(PRELOAD_MOMENT_WAIT, me->tid, ticks, ended) && !ended;
}

void moments_held(struct gil *g, pid_t tid, uint64_t stamp, bool ended)
{
	uint64_t held = stamp - g->taken_stamp, kept = stamp - g->asked_stamp;

	if (ended && g->noticed)
		end(&g->noticed, tid, g->asked_stamp ? kept : held);
	else if (!g->noticed)
		g->noticed = (tell(PRELOAD_MOMENT_HOLD, tid, held, ended) ||
		              (g->asked_stamp && tell(PRELOAD_MOMENT_KEPT, tid, kept, ended))) &&
		             !ended;
}

void moments_stepped(uint64_t ticks)
{
	tell(PRELOAD_MOMENT_STEP, process_gettid(), ticks, true);
}

/* SPDX-License-Identifier: MIT */
/*
 * From uprobes to the library. While uprobes record the GIL, the library, which sees the same
 * events, counts turns. If these cost the process too much, it asks the launcher, which then lets
 * the library record and removes the uprobes.
 *
 * No event is lost meanwhile: the library begins before the uprobes end, and the first record of
 * each thread is the event before the first one that it records, because a thread may be preempted
 * between an event and its uprobe until the uprobes have gone. trace/merge.c drops what both have.
 */
#include "preload/internal.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* CPU time of the process when turns were last added up, 0: not known; how much more than
 * PRELOAD_SLOW_PERCENT of it uprobes have cost. Atomic, because the GILs of a process, with a mutex each,
 * share them. */
static uint64_t since_ns;
static int64_t excess_ns;

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	if (syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

bool handover_keep(struct self *me, enum preload_type type, uint64_t stamp, const struct gil *g)
{
	if (process_counts()) {
		/* Uprobes do not have requests to release. */
		if (type == PRELOAD_ASKED)
			return true;
		me->last = type;
		me->last_stamp = stamp;
		me->last_gil = g;
		return true;
	}
	if (me->last) {
		type = me->last;
		me->last = PRELOAD_END;
		stream_put_gil(me, type, me->last_stamp, me->last_gil);
	}
	return false;
}

/* Time in which uprobes cost little does not excuse later time in which they cost much. */
void handover_turn(struct gil *g)
{
	struct preload_control *control = process.control;
	uint64_t turn_ns = __atomic_load_n(&control->turn_ns, __ATOMIC_RELAXED), now_ns, last_ns;
	int64_t excess = 0;

	if (++g->turns % PRELOAD_SLOW_TURNS || !turn_ns)
		return;
	now_ns = cpu_ns();
	last_ns = __atomic_exchange_n(&since_ns, now_ns, __ATOMIC_RELAXED);
	/* A forked child has a CPU clock of its own. */
	if (last_ns && now_ns > last_ns) {
		excess = (int64_t)(turn_ns * PRELOAD_SLOW_TURNS) -
		         (int64_t)((now_ns - last_ns) / 100 * PRELOAD_SLOW_PERCENT);
		excess = __atomic_add_fetch(&excess_ns, excess, __ATOMIC_RELAXED);
	}
	if (excess > PRELOAD_SLOW_NS)
		__atomic_store_n(&control->slow, 1, __ATOMIC_RELAXED);
	if (excess < 0 || excess > PRELOAD_SLOW_NS)
		__atomic_store_n(&excess_ns, 0, __ATOMIC_RELAXED);
}

void handover_begin(uint64_t turn_ns)
{
	if (!process.control)
		return;
	process.control->is_measured = 1;
	for (unsigned i = 0; i < GILS_MAX; i++)
		gils[i].turns = 0;
	__atomic_store_n(&since_ns, cpu_ns(), __ATOMIC_RELAXED);
	__atomic_store_n(&excess_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&process.control->turn_ns, turn_ns, __ATOMIC_RELEASE);
}

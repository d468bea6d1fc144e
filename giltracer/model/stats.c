/* SPDX-License-Identifier: MIT */
/* Totals, computed once from the finished lanes and owners. */
#include "model/stats.h"

#include "model/private.h"

static void longest(uint64_t *ns, uint64_t *at_ns, const struct span *s, uint64_t span_ns)
{
	if (span_ns <= *ns)
		return;
	*ns = span_ns;
	*at_ns = s->start_ns;
}

static void count_hold(struct model *m, struct model_thread *mt, const struct span *s, uint64_t ns)
{
	mt->holds++;
	if (s->flags & SPAN_INFERRED_END) {
		mt->releases_inferred++;
		m->caveats[CAVEAT_INFERRED_RELEASE]++;
	} else if (!(s->flags & SPAN_OPEN_END)) {
		mt->releases_probed++;
	}
	longest(&mt->longest_hold_ns, &mt->longest_hold_at_ns, s, ns);
}

static void count_wait(struct model_thread *mt, const struct span *s, uint64_t ns)
{
	mt->waits++;
	longest(&mt->longest_wait_ns, &mt->longest_wait_at_ns, s, ns);
}

/* Adds the time for which a thread without a GIL was blocked. */
static void count_off(struct model *m, struct model_thread *mt, const struct span *s, uint64_t ns)
{
	struct model_lock *lock;

	if (s->state == GIL_STOPPING) {
		mt->worlds_stopped++;
		longest(&mt->longest_stopping_ns, &mt->longest_stopping_at_ns, s, ns);
	}
	if (s->state == GIL_SPINNING) {
		mt->spins++;
		m->locks.v[s->gil.lock].spins++;
		m->locks.v[s->gil.lock].spin_ns += ns;
	}
	if (s->state != GIL_LOCK_WAIT && s->state != GIL_STOPPED)
		return;
	lock = &m->locks.v[s->gil.lock];
	lock->waits++;
	lock->wait_ns += ns;
	if (ns > lock->longest_ns)
		lock->longest_ns = ns;
	if (s->state == GIL_LOCK_WAIT) {
		mt->lock_waits++;
		longest(&mt->longest_lock_wait_ns, &mt->longest_lock_wait_at_ns, s, ns);
	} else {
		mt->stops++;
		longest(&mt->longest_stop_ns, &mt->longest_stop_at_ns, s, ns);
	}
}

static void thread_stats(struct model *m, struct model_thread *mt)
{
	for (size_t i = 0; i < mt->gil.spans.n; i++) {
		const struct span *s = &mt->gil.spans.v[i];
		uint64_t ns = lane_span_end(&mt->gil, i) - s->start_ns;

		mt->gil_ns[s->state] += ns;
		if (s->state == GIL_HOLD)
			count_hold(m, mt, s, ns);
		else if (s->state == GIL_WAIT)
			count_wait(mt, s, ns);
		else if (s->state == GIL_FREE_WAIT)
			mt->free_waits++;
		else
			count_off(m, mt, s, ns);
	}
	for (size_t i = 0; i < mt->cpu.spans.n; i++)
		mt->cpu_ns[mt->cpu.spans.v[i].state] += lane_span_end(&mt->cpu, i) -
		                                        mt->cpu.spans.v[i].start_ns;
}

static void gil_stats(struct model_gil *g)
{
	for (size_t i = 0; i < g->owners.n; i++) {
		const struct gil_owner *o = &g->owners.v[i];
		uint64_t end_ns = i + 1 < g->owners.n ? o[1].start_ns : g->end_ns;
		uint64_t ns = end_ns - o->start_ns;

		if (o->thread == MODEL_NONE)
			g->handover_ns += ns * o->waiters;
		else if (o->thread != MODEL_UNKNOWN)
			g->held_ns += ns;
		if (o->waiters)
			g->wanted_ns += ns;
	}
}

void stats_finish(struct model *m)
{
	for (size_t i = 0; i < m->threads.n; i++)
		thread_stats(m, &m->threads.v[i]);
	for (size_t i = 0; i < m->gils.n; i++)
		gil_stats(&m->gils.v[i]);
}

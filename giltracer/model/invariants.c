/* SPDX-License-Identifier: MIT */
/*
 * Checks the invariants in one walk over lanes and owners. That no instant has two holders follows
 * from two facts: every hold is owned by its thread throughout, and the time for which a GIL is
 * owned is the sum of its holds.
 */
#include "model/owners.h"
#include "model/private.h"

#include <errno.h>
#include <inttypes.h>

#include "base/cleanup.h"

static int check_lane(const struct model_thread *mt, const struct lane *lane, const char *what,
                      const uint64_t *ns, size_t states, struct error *err)
{
	uint64_t at = mt->start_ns, sum = 0;

	if (!lane->spans.n || lane->spans.v[0].start_ns != at || lane->end_ns != mt->end_ns)
		return error_set(err, EINVAL, "thread %u: its %s lane does not span its life",
		                 mt->tid, what);
	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *s = &lane->spans.v[i];

		if (s->start_ns < at || lane_span_end(lane, i) < s->start_ns || s->state >= states)
			return error_set(err, EINVAL, "thread %u at %" PRIu64 ": bad %s span",
			                 mt->tid, s->start_ns, what);
		at = s->start_ns;
	}
	for (size_t i = 0; i < states; i++)
		sum += ns[i];
	if (sum != mt->end_ns - mt->start_ns)
		return error_set(err, EINVAL, "thread %u: %s states are %" PRIu64 " ns of %" PRIu64,
		                 mt->tid, what, sum, mt->end_ns - mt->start_ns);
	return 0;
}

/* Per GIL: how long it was held and waited for, summed over the threads; queued_ns: how long it was
 * waited for according to its owners. at: index of the owner at the last checked hold or free wait
 * of thread. */
struct sums {
	uint64_t held_ns, waited_ns, queued_ns;
	uint32_t thread; /* the thread for which at is set, plus 1 */
	size_t at;
};

static int check_owners(const struct model_gil *g, size_t threads, struct sums *sum,
                        struct error *err)
{
	for (size_t i = 0; i < g->owners.n; i++) {
		const struct gil_owner *o = &g->owners.v[i];
		uint64_t end_ns = i + 1 < g->owners.n ? o[1].start_ns : g->end_ns;

		if ((i ? o->start_ns <= o[-1].start_ns : o->start_ns != g->start_ns) ||
		    o->start_ns > g->end_ns || (o->thread >= threads && o->thread < MODEL_UNKNOWN))
			return error_set(err, EINVAL, "GIL %#" PRIx64 " at %" PRIu64 ": bad owner",
			                 g->address, o->start_ns);
		sum->queued_ns += o->waiters * (end_ns - o->start_ns);
	}
	return 0;
}

/* A hold must be owned by its thread throughout, a free wait by nobody. */
static int check_owner(const struct model *m, struct sums *sum, uint32_t thread,
                       const struct span *s, uint64_t end_ns, struct error *err)
{
	const struct model_gil *g = &m->gils.v[s->gil.index];
	uint32_t owner = s->state == GIL_HOLD ? thread : MODEL_NONE;
	size_t i;

	if (s->start_ns == end_ns)
		return 0;
	if (sum->thread != thread + 1)
		sum->at = 0;
	sum->thread = thread + 1;
	i = sum->at = owners_of(g, sum->at, s);
	for (; i < g->owners.n && g->owners.v[i].start_ns < end_ns; i++)
		if (g->owners.v[i].thread != owner)
			return error_set(err, EINVAL,
			                 "thread %u at %" PRIu64 ": %s what another one owns",
			                 m->threads.v[thread].tid, s->start_ns,
			                 s->state == GIL_HOLD ? "holds" : "finds free");
	sum->held_ns += s->state == GIL_HOLD ? end_ns - s->start_ns : 0;
	return 0;
}

static int check_spans(const struct model *m, struct sums *sums, uint32_t thread, struct error *err)
{
	const struct lane *lane = &m->threads.v[thread].gil;

	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *s = &lane->spans.v[i];
		uint64_t end_ns = lane_span_end(lane, i);

		if (s->state != GIL_HOLD && s->state != GIL_WAIT && s->state != GIL_FREE_WAIT)
			continue;
		if (s->gil.index >= m->gils.n)
			return error_set(err, EINVAL, "thread %u at %" PRIu64 ": no such GIL",
			                 m->threads.v[thread].tid, s->start_ns);
		if (s->state == GIL_WAIT)
			sums[s->gil.index].waited_ns += end_ns - s->start_ns;
		else if (check_owner(m, &sums[s->gil.index], thread, s, end_ns, err) < 0)
			return -1;
	}
	return 0;
}

static int check_gils(const struct model *m, const struct sums *sums, struct error *err)
{
	for (size_t i = 0; i < m->gils.n; i++) {
		const struct model_gil *g = &m->gils.v[i];

		if (g->held_ns != sums[i].held_ns)
			return error_set(err, EINVAL,
			                 "GIL %#" PRIx64 ": held for %" PRIu64
			                 " ns, by threads for %" PRIu64,
			                 g->address, g->held_ns, sums[i].held_ns);
		if (sums[i].queued_ns != sums[i].waited_ns)
			return error_set(err, EINVAL,
			                 "GIL %#" PRIx64 ": waited for %" PRIu64
			                 " ns, by threads for %" PRIu64,
			                 g->address, sums[i].queued_ns, sums[i].waited_ns);
	}
	return 0;
}

static int check_blame(const struct model *m, struct error *err)
{
	CLEANUP(free) uint64_t *wait_ns = xcalloc(m->threads.n + 1, sizeof(*wait_ns));

	for (size_t i = 0; i < m->blame.n; i++) {
		const struct model_blame *b = &m->blame.v[i];

		if (b->waiter >= m->threads.n || b->waiter == b->holder)
			return error_set(err, EINVAL, "blame row %zu: no such waiter", i);
		wait_ns[b->waiter] += b->wait_ns;
	}
	for (size_t i = 0; i < m->threads.n; i++)
		if (wait_ns[i] != m->threads.v[i].gil_ns[GIL_WAIT])
			return error_set(err, EINVAL,
			                 "thread %u: waits %" PRIu64 " ns, others are blamed for "
			                 "%" PRIu64,
			                 m->threads.v[i].tid, m->threads.v[i].gil_ns[GIL_WAIT],
			                 wait_ns[i]);
	return 0;
}

static int check_lock_blame(const struct model *m, enum gil_state state, struct error *err)
{
	CLEANUP(free) uint64_t *ns = xcalloc(m->threads.n + 1, sizeof(*ns));

	for (size_t i = 0; i < m->lock_blame.n; i++) {
		const struct model_lock_blame *b = &m->lock_blame.v[i];

		if (b->waiter >= m->threads.n || b->waiter == b->by)
			return error_set(err, EINVAL, "lock blame row %zu: no such waiter", i);
		if (b->state == state)
			ns[b->waiter] += b->wait_ns;
	}
	for (size_t i = 0; i < m->threads.n; i++)
		if (ns[i] != m->threads.v[i].gil_ns[state])
			return error_set(err, EINVAL,
			                 "thread %u: blocked for %" PRIu64 " ns, others are blamed "
			                 "for %" PRIu64,
			                 m->threads.v[i].tid, m->threads.v[i].gil_ns[state], ns[i]);
	return 0;
}

/* There are no rows unless the recording shows which thread had each CPU. */
static int check_cpu_blame(const struct model *m, struct error *err)
{
	CLEANUP(free) uint64_t *ns = xcalloc(m->threads.n + 1, sizeof(*ns));

	for (size_t i = 0; i < m->cpu_blame.n; i++) {
		const struct model_cpu_blame *s = &m->cpu_blame.v[i];

		if (s->thread >= m->threads.n || s->thread == s->by)
			return error_set(err, EINVAL, "CPU blame row %zu: no such thread", i);
		ns[s->thread] += s->runnable_ns;
	}
	for (size_t i = 0; m->cpu_blame.n && i < m->threads.n; i++)
		if (ns[i] != m->threads.v[i].cpu_ns[CPU_RUNNABLE])
			return error_set(
				err, EINVAL,
				"thread %u: runnable for %" PRIu64 " ns, charged to others "
				"%" PRIu64,
				m->threads.v[i].tid, m->threads.v[i].cpu_ns[CPU_RUNNABLE], ns[i]);
	return 0;
}

int model_check(const struct model *m, struct error *err)
{
	CLEANUP(free) struct sums *sums = xcalloc(m->gils.n + 1, sizeof(*sums));

	for (uint32_t i = 0; i < m->threads.n; i++) {
		const struct model_thread *mt = &m->threads.v[i];

		if (check_lane(mt, &mt->gil, "GIL", mt->gil_ns, GIL_STATES, err) < 0 ||
		    check_lane(mt, &mt->cpu, "CPU", mt->cpu_ns, CPU_STATES, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < m->gils.n; i++)
		if (check_owners(&m->gils.v[i], m->threads.n, &sums[i], err) < 0)
			return -1;
	for (uint32_t i = 0; i < m->threads.n; i++)
		if (check_spans(m, sums, i, err) < 0)
			return -1;
	if (check_gils(m, sums, err) < 0)
		return -1;
	if (check_blame(m, err) < 0 || check_lock_blame(m, GIL_LOCK_WAIT, err) < 0 ||
	    check_lock_blame(m, GIL_STOPPED, err) < 0)
		return -1;
	return check_cpu_blame(m, err);
}

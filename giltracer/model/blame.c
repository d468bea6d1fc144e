/* SPDX-License-Identifier: MIT */
/*
 * Free waits are told from the others. Blame: each wait is cut at the changes of its GIL's owner,
 * and each piece is charged to the owner of that piece. The pieces of a wait are the wait, so the
 * sums agree by construction.
 */
#include "model/blame.h"

#include "model/owners.h"
#include "model/private.h"

static size_t row_of(const struct ledger *l, uint32_t holder)
{
	if (holder == MODEL_NONE)
		return l->threads;
	return holder == MODEL_UNKNOWN ? l->threads + 1 : holder;
}

static inline void charge(struct ledger *l, uint32_t holder, uint64_t start_ns, uint64_t end_ns)
{
	size_t i = row_of(l, holder);
	struct model_blame *row = &l->rows[i];

	if (start_ns == end_ns)
		return;
	if (!row->wait_ns)
		*vec_push(&l->used) = (uint32_t)i;
	row->holder = holder;
	row->wait_ns += end_ns - start_ns;
	if (end_ns - start_ns > row->longest_ns) {
		row->longest_ns = end_ns - start_ns;
		row->longest_at_ns = start_ns;
	}
}

void ledger_charge(struct ledger *l, uint32_t holder, uint64_t start_ns, uint64_t end_ns)
{
	charge(l, holder, start_ns, end_ns);
}

/* Stretches that differ in the number of waiters only are one overlap, and there may be as many as
 * there are waits: of each, where the next one of another owner is. Caller frees. */
static uint32_t *runs_of(const struct model_gil *g)
{
	uint32_t *next = xcalloc(g->owners.n + 1, sizeof(*next));

	for (size_t i = g->owners.n; i-- > 0;)
		next[i] = i + 1 < g->owners.n && g->owners.v[i + 1].thread == g->owners.v[i].thread
		                  ? next[i + 1]
		                  : (uint32_t)i + 1;
	return next;
}

/* Whether the wait is complete: from a request to its acquire, without a loss. */
static bool is_whole(const struct lane *lane, size_t i)
{
	const struct span *s = &lane->spans.v[i];

	return !(s->flags & SPAN_INFERRED_START) && i + 1 < lane->spans.n &&
	       s[1].state == GIL_HOLD && s[1].gil.index == s->gil.index;
}

/*
 * If nobody held the GIL during the wait, for certain, make it a free wait, and take it out of the
 * waiters of its stretches. first: the owner at its start. A wait that shares a stretch with
 * another one, which began as it ended, cannot be taken out.
 */
static bool take_out(struct model_gil *g, const uint32_t *runs, size_t first,
                     const struct lane *lane, size_t i)
{
	struct span *wait = &lane->spans.v[i];
	uint64_t end_ns = lane_span_end(lane, i);
	size_t end = first;

	if (!is_whole(lane, i))
		return false;
	if (first < g->owners.n && g->owners.v[first].start_ns < end_ns &&
	    (g->owners.v[first].thread != MODEL_NONE ||
	     (runs[first] < g->owners.n && g->owners.v[runs[first]].start_ns < end_ns)))
		return false;
	while (end < g->owners.n && g->owners.v[end].start_ns < end_ns)
		end++;
	if (wait->start_ns != end_ns &&
	    (g->owners.v[first].start_ns != wait->start_ns ||
	     (end < g->owners.n ? g->owners.v[end].start_ns : g->end_ns) != end_ns))
		return false;
	wait->state = GIL_FREE_WAIT;
	for (size_t o = first; o < end && wait->start_ns != end_ns; o++)
		g->owners.v[o].waiters--;
	return true;
}

/* Divide a wait. first: the owner at its start. Whether a thread held the GIL during it. */
static bool divide(struct ledger *l, const struct model_gil *g, const uint32_t *runs, size_t first,
                   uint64_t start_ns, uint64_t end_ns)
{
	bool contended = false;
	size_t i = first;

	while (start_ns < end_ns) {
		uint32_t holder = g->owners.v[i].thread;
		uint64_t until;

		i = runs[i];
		until = i < g->owners.n ? g->owners.v[i].start_ns : end_ns;
		if (until > end_ns)
			until = end_ns;
		charge(l, holder, start_ns, until);
		contended |= holder < MODEL_UNKNOWN;
		start_ns = until;
	}
	return contended;
}

static void blame_thread(struct model *m, uint32_t *const *runs, uint32_t thread, struct ledger *l)
{
	struct model_thread *mt = &m->threads.v[thread];
	uint32_t gil = MODEL_NONE;
	size_t hint = 0;

	for (size_t i = 0; i < mt->gil.spans.n; i++) {
		const struct span *s = &mt->gil.spans.v[i];
		uint64_t end_ns = lane_span_end(&mt->gil, i);

		if (s->state != GIL_WAIT)
			continue;
		if (s->gil.index != gil)
			hint = 0;
		gil = s->gil.index;
		hint = owners_of(&m->gils.v[gil], hint, s);
		if (!take_out(&m->gils.v[gil], runs[gil], hint, &mt->gil, i))
			mt->contended_waits += divide(l, &m->gils.v[gil], runs[gil], hint,
			                              s->start_ns, end_ns);
	}
	for (size_t i = 0; i < l->used.n; i++) {
		struct model_blame *row = &l->rows[l->used.v[i]];

		row->waiter = thread;
		*vec_push(&m->blame) = *row;
		*row = (struct model_blame){ 0 };
	}
	l->used.n = 0;
}

void blame_finish(struct model *m)
{
	struct ledger l = { .rows = xcalloc(m->threads.n + 2, sizeof(*l.rows)),
		            .threads = m->threads.n };
	uint32_t **runs = xcalloc(m->gils.n + 1, sizeof(*runs));

	for (size_t i = 0; i < m->gils.n; i++)
		runs[i] = runs_of(&m->gils.v[i]);
	for (uint32_t i = 0; i < m->threads.n; i++)
		blame_thread(m, runs, i, &l);
	for (size_t i = 0; i < m->gils.n; i++)
		free(runs[i]);
	free(runs);
	vec_done(&l.used);
	free(l.rows);
}

size_t model_find_blame(const struct model *m, uint32_t waiter)
{
	size_t low = 0, high = m->blame.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->blame.v[mid].waiter < waiter)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

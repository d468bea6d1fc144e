/* SPDX-License-Identifier: MIT */
/*
 * Blame: each wait is cut at the changes of its GIL's owner, and each piece is charged to the owner
 * of that piece. The pieces of a wait are the wait, so the sums agree by construction.
 */
#include "model/internal.h"

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

/* Divide a wait. first: the owner at its start; *contended: a thread held; *free: nobody did, for
 * certain. */
static void divide(struct ledger *l, const struct model_gil *g, size_t first, uint64_t start_ns,
                   uint64_t end_ns, bool *contended, bool *free)
{
	size_t i = first;

	while (start_ns < end_ns) {
		uint32_t holder = g->owners.v[i].thread;
		uint64_t until;

		/* Stretches that differ in the number of waiters only are one overlap. */
		while (++i < g->owners.n && g->owners.v[i].thread == holder)
			;
		until = i < g->owners.n ? g->owners.v[i].start_ns : end_ns;
		if (until > end_ns)
			until = end_ns;
		charge(l, holder, start_ns, until);
		*contended |= holder < MODEL_UNKNOWN;
		*free &= holder == MODEL_NONE;
		start_ns = until;
	}
}

static void blame_thread(struct model *m, uint32_t thread, struct ledger *l)
{
	struct model_thread *mt = &m->threads.v[thread];
	uint32_t gil = MODEL_NONE;
	size_t hint = 0;

	for (size_t i = 0; i < mt->gil.spans.n; i++) {
		const struct span *s = &mt->gil.spans.v[i];
		uint64_t end_ns = lane_span_end(&mt->gil, i);
		bool contended = false, free = true;

		if (s->state != GIL_WAIT)
			continue;
		if (s->ref != gil)
			hint = 0;
		gil = s->ref;
		hint = owners_of(&m->gils.v[gil], hint, s);
		divide(l, &m->gils.v[gil], hint, s->start_ns, end_ns, &contended, &free);
		mt->contended_waits += contended;
		mt->free_wait_ns += free ? end_ns - s->start_ns : 0;
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

	for (uint32_t i = 0; i < m->threads.n; i++)
		blame_thread(m, i, &l);
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

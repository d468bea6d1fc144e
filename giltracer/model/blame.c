/* SPDX-License-Identifier: MIT */
/*
 * Separates free waits from other waits, then assigns blame: each wait is cut where the owner of
 * its GIL changes, and each piece is charged to the owner at that time. The pieces add up to the
 * wait, so the sums agree by construction.
 */
#include "model/blame.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/vec.h"
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
	if (holder == MODEL_NONE && end_ns - start_ns >= MODEL_HANDOVER_NS)
		row->no_cpu_ns += end_ns - start_ns;
	if (end_ns - start_ns > row->longest_ns) {
		row->longest_ns = end_ns - start_ns;
		row->longest_at_ns = start_ns;
	}
}

void ledger_charge(struct ledger *l, uint32_t holder, uint64_t start_ns, uint64_t end_ns)
{
	charge(l, holder, start_ns, end_ns);
}

/* Consecutive stretches that differ only in the number of waiters form one overlap, and there may
 * be as many stretches as waits. For each stretch, the result holds the index of the next one with
 * another owner. Caller frees. */
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

/**
 * @runs: of each GIL, see runs_of()
 * @work: number of pairs of a wait and an owner's stretch that may still be examined
 * @rows: number of rows that may still be added
 * @ledger: charges of one thread for one GIL
 */
struct blaming {
	struct model *model;
	uint32_t **runs;
	uint64_t work, rows;
	struct ledger ledger;
};

static bool spend(struct blaming *b, uint64_t work)
{
	bool enough = work <= b->work;

	b->work -= enough ? work : b->work;
	return enough;
}

/* The index of the first owner's stretch that does not start before time_ns. after: the index of a
 * stretch that starts earlier. */
static size_t owner_from(const struct model_gil *g, size_t after, uint64_t time_ns)
{
	size_t i = owners_at(g, after, time_ns);

	return i < g->owners.n && g->owners.v[i].start_ns < time_ns ? i + 1 : i;
}

/*
 * If it is certain that nobody held the GIL during the wait, the wait becomes a free wait and no
 * longer counts among the waiters of its stretches. first: index of the owner at its start. Not
 * possible if the wait shares a stretch with another wait, which began when this one ended.
 */
static bool make_free_wait(struct blaming *b, struct model_gil *g, const uint32_t *runs,
                           size_t first, const struct lane *lane, size_t i)
{
	struct span *wait = &lane->spans.v[i];
	uint64_t end_ns = lane_span_end(lane, i);
	size_t end;

	if (!is_whole(lane, i))
		return false;
	if (first < g->owners.n && g->owners.v[first].start_ns < end_ns &&
	    (g->owners.v[first].thread != MODEL_NONE ||
	     (runs[first] < g->owners.n && g->owners.v[runs[first]].start_ns < end_ns)))
		return false;
	end = first < g->owners.n ? owner_from(g, first, end_ns) : first;
	if (wait->start_ns != end_ns &&
	    (g->owners.v[first].start_ns != wait->start_ns ||
	     (end < g->owners.n ? g->owners.v[end].start_ns : g->end_ns) != end_ns))
		return false;
	if (!spend(b, end - first))
		return false;
	wait->state = GIL_FREE_WAIT;
	for (size_t o = first; o < end && wait->start_ns != end_ns; o++)
		g->owners.v[o].waiters--;
	return true;
}

/* Divides a wait among the owners. first: index of the owner at its start. Returns whether a thread
 * held the GIL during the wait. */
static bool divide(struct blaming *b, const struct model_gil *g, const uint32_t *runs, size_t first,
                   uint64_t start_ns, uint64_t end_ns)
{
	bool contended = false;
	size_t i = first;

	while (start_ns < end_ns) {
		uint32_t holder = g->owners.v[i].thread;
		uint64_t until;

		if (!spend(b, 1) || b->ledger.used.n >= b->rows) {
			charge(&b->ledger, MODEL_UNKNOWN, start_ns, end_ns);
			b->model->caveats[CAVEAT_COARSE]++;
			return true;
		}
		i = runs[i];
		until = i < g->owners.n ? g->owners.v[i].start_ns : end_ns;
		if (until > end_ns)
			until = end_ns;
		charge(&b->ledger, holder, start_ns, until);
		contended |= holder < MODEL_UNKNOWN;
		start_ns = until;
	}
	return contended;
}

/* The blame rows of a thread for one of its GILs. */
static void add_rows(struct blaming *b, uint32_t thread, uint32_t gil)
{
	struct ledger *l = &b->ledger;

	for (size_t i = 0; i < l->used.n; i++) {
		struct model_blame *row = &l->rows[l->used.v[i]];

		row->waiter = thread;
		row->gil = gil;
		*vec_push(&b->model->blame) = *row;
		*row = (struct model_blame){ 0 };
	}
	b->rows -= l->used.n < b->rows ? l->used.n : b->rows;
	l->used.n = 0;
}

/* Blames the waits for one GIL, in order of time: those at the n indices of spans or, without
 * indices, all waits among the first n spans. */
static void blame_waits(struct blaming *b, uint32_t thread, const uint32_t *waits, size_t n)
{
	struct model_thread *mt = &b->model->threads.v[thread];
	uint32_t gil = MODEL_NONE;
	size_t hint = 0;

	for (size_t k = 0; k < n; k++) {
		size_t i = waits ? waits[k] : k;
		const struct span *s = &mt->gil.spans.v[i];
		struct model_gil *g;

		if (s->state != GIL_WAIT)
			continue;
		gil = s->gil.index;
		g = &b->model->gils.v[gil];
		hint = owners_of(g, hint, s);
		if (!make_free_wait(b, g, b->runs[gil], hint, &mt->gil, i))
			mt->contended_waits += divide(b, g, b->runs[gil], hint, s->start_ns,
			                              lane_span_end(&mt->gil, i));
	}
	add_rows(b, thread, gil);
}

static int by_gil(const void *va, const void *vb, void *data)
{
	const struct lane *lane = data;
	uint32_t a = *(const uint32_t *)va, b = *(const uint32_t *)vb;
	uint32_t ga = lane->spans.v[a].gil.index, gb = lane->spans.v[b].gil.index;

	if (ga != gb)
		return ga < gb ? -1 : 1;
	return (a > b) - (a < b);
}

/* Few threads wait for more than one GIL. */
static bool has_several(const struct lane *lane)
{
	uint32_t gil = MODEL_NONE;

	for (size_t i = 0; i < lane->spans.n; i++) {
		if (lane->spans.v[i].state != GIL_WAIT)
			continue;
		if (gil != MODEL_NONE && gil != lane->spans.v[i].gil.index)
			return true;
		gil = lane->spans.v[i].gil.index;
	}
	return false;
}

static void blame_several(struct blaming *b, uint32_t thread)
{
	struct lane *lane = &b->model->threads.v[thread].gil;
	CLEANUP(free) uint32_t *waits = xcalloc(lane->spans.n, sizeof(*waits));
	size_t n = 0;

	for (size_t i = 0; i < lane->spans.n; i++)
		if (lane->spans.v[i].state == GIL_WAIT)
			waits[n++] = (uint32_t)i;
	qsort_r(waits, n, sizeof(*waits), by_gil, lane);
	for (size_t i = 0, end; i < n; i = end) {
		uint32_t gil = lane->spans.v[waits[i]].gil.index;

		for (end = i; end < n && lane->spans.v[waits[end]].gil.index == gil; end++)
			;
		blame_waits(b, thread, &waits[i], end - i);
	}
}

void blame_finish(struct model *m)
{
	struct blaming b = {
		.model = m,
		.runs = xcalloc(m->gils.n + 1, sizeof(*b.runs)),
		.work = MODEL_WORK + m->gil_events * MODEL_WORK_PER_EVENT,
		.rows = MODEL_BLAME_ROWS + m->gil_events * MODEL_BLAME_ROWS_PER_EVENT,
		.ledger = { .rows = xcalloc(m->threads.n + 2, sizeof(*b.ledger.rows)),
		            .threads = m->threads.n },
	};

	for (size_t i = 0; i < m->gils.n; i++)
		b.runs[i] = runs_of(&m->gils.v[i]);
	for (uint32_t i = 0; i < m->threads.n; i++) {
		if (has_several(&m->threads.v[i].gil))
			blame_several(&b, i);
		else
			blame_waits(&b, i, NULL, m->threads.v[i].gil.spans.n);
	}
	for (size_t i = 0; i < m->gils.n; i++)
		free(b.runs[i]);
	free(b.runs);
	vec_done(&b.ledger.used);
	free(b.ledger.rows);
}

size_t model_find_blame(const struct model *m, uint32_t waiter)
{
	return SEARCH(m->blame.n, i, m->blame.v[i].waiter < waiter);
}

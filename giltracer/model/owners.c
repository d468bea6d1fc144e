/* SPDX-License-Identifier: MIT */
/* The owners of a GIL: updated with each event, and derived from the lanes again if an event
 * changed the past. */
#include "model/owners.h"

#include "model/private.h"

#include <stdlib.h>
#include <string.h>

static bool same(const struct gil_owner *a, const struct gil_owner *b)
{
	return a->thread == b->thread && a->waiters == b->waiters;
}

/* Appends a stretch, but no empty one and none that repeats the last. */
static inline void push(struct model_gil *gil, const struct gil_owner *o)
{
	size_t n = gil->owners.n;

	if (n && gil->owners.v[n - 1].start_ns == o->start_ns)
		gil->owners.n = --n;
	if (!n || !same(&gil->owners.v[n - 1], o))
		*vec_push(&gil->owners) = *o;
}

/* Records the state of the GIL from now on. */
void owners_mark(struct model *m, uint32_t gil, uint64_t t)
{
	const struct gil_tracker *s = &m->priv->gils.v[gil];
	struct gil_owner o = { .start_ns = t, .thread = s->holder, .waiters = s->waiters };

	if (o.thread == MODEL_NONE && !s->known)
		o.thread = MODEL_UNKNOWN;
	push(&m->gils.v[gil], &o);
}

/* Inserts a change at time_ns that keeps the owner. first: index of the first change that is not
 * earlier. */
static void insert(struct model_gil *g, size_t first, uint64_t time_ns)
{
	struct gil_owner o = g->owners.v[first - 1];

	o.start_ns = time_ns;
	(void)vec_push(&g->owners);
	memmove(&g->owners.v[first + 1], &g->owners.v[first],
	        (g->owners.n - 1 - first) * sizeof(*g->owners.v));
	g->owners.v[first] = o;
}

/* Makes thread the owner in all changes from first on. */
static void rename_from(struct model_gil *g, size_t first, uint32_t thread)
{
	size_t n = first;

	for (size_t i = first; i < g->owners.n; i++) {
		struct gil_owner o = g->owners.v[i];

		o.thread = thread;
		if (!n || !same(&g->owners.v[n - 1], &o))
			g->owners.v[n++] = o;
	}
	g->owners.n = n;
}

bool owners_claim(struct model *m, uint32_t gil, uint32_t thread, uint64_t since_ns)
{
	struct model_gil *g = &m->gils.v[gil];
	size_t first = g->owners.n;

	while (first && g->owners.v[first - 1].start_ns >= since_ns)
		if (g->owners.v[--first].thread != MODEL_NONE)
			return false;
	/* A hold of length 0 left no trace; the GIL has been free since before it. */
	if (first && (first == g->owners.n || g->owners.v[first].start_ns > since_ns)) {
		if (g->owners.v[first - 1].thread != MODEL_NONE)
			return false;
		insert(g, first, since_ns);
	}
	rename_from(g, first, thread);
	return true;
}

size_t owners_at(const struct model_gil *g, size_t hint, uint64_t time_ns)
{
	size_t low = hint, step = 1, high, more;

	while (low + step < g->owners.n && g->owners.v[low + step].start_ns <= time_ns) {
		low += step;
		step *= 2;
	}
	high = low + step < g->owners.n ? low + step : g->owners.n;
	more = SEARCH(high - low, i, g->owners.v[low + i].start_ns <= time_ns);
	return more ? low + more - 1 : low;
}

void owners_forget(struct model *m, uint32_t gil)
{
	rename_from(&m->gils.v[gil], 0, MODEL_UNKNOWN);
}

#define UNKNOWN_PAIRS (1 << 20) /* pairs of a GIL and a stretch with unknown owners */

struct edge { /* at time_ns the holder becomes thread, or the number of waiters or of unknown
               * threads changes */
	uint64_t time_ns;
	uint32_t thread;
	int8_t hold, wait, unknown;
};

struct edges {
	VEC(struct edge) v;
};

static int edge_order(const void *va, const void *vb)
{
	const struct edge *a = va, *b = vb;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->hold - b->hold; /* the end of a hold before the start of the next */
}

/* Adds the two ends of a span. */
static void add_edges(struct edges *edges, struct edge e, uint64_t end_ns)
{
	*vec_push(&edges->v) = e;
	e.time_ns = end_ns;
	e.hold = (int8_t)-e.hold;
	e.wait = (int8_t)-e.wait;
	e.unknown = (int8_t)-e.unknown;
	*vec_push(&edges->v) = e;
}

/* Collects the edges of a thread's spans, by GIL. An unknown span makes the owners of all GILs
 * unknown. */
static void collect(const struct model *m, uint32_t thread, struct edges *of_gil,
                    struct edges *unknown)
{
	const struct lane *lane = &m->threads.v[thread].gil;

	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *s = &lane->spans.v[i];
		uint64_t end_ns = lane_span_end(lane, i);
		struct edge e = { .time_ns = s->start_ns, .thread = thread };

		if (end_ns == s->start_ns)
			continue;
		e.hold = s->state == GIL_HOLD;
		e.wait = s->state == GIL_WAIT;
		e.unknown = s->state == GIL_UNKNOWN && s->flags & (SPAN_LOST | SPAN_STOPPED);
		if (e.hold || e.wait)
			add_edges(&of_gil[s->gil.index], e, end_ns);
		else if (e.unknown)
			add_edges(unknown, e, end_ns);
	}
}

static void rebuild(struct model *m, uint32_t gil, struct edges *edges, const struct edges *all)
{
	struct gil_tracker *gs = &m->priv->gils.v[gil];
	struct model_gil *g = &m->gils.v[gil];
	uint64_t start_ns = g->start_ns;
	int32_t waiters = 0, unknown = 0;
	uint32_t holder = MODEL_NONE;

	*vec_push(&edges->v) = (struct edge){ .time_ns = start_ns };
	if (gs->known && gs->known_ns > start_ns)
		*vec_push(&edges->v) = (struct edge){ .time_ns = gs->known_ns };
	for (size_t i = 0; i < all->v.n; i++)
		*vec_push(&edges->v) = all->v.v[i];
	vec_sort(&edges->v, edge_order);
	g->owners.n = 0;
	for (size_t i = 0; i < edges->v.n; i++) {
		const struct edge *e = &edges->v.v[i];
		struct gil_owner o;

		if (e->hold)
			holder = e->hold > 0 ? e->thread : MODEL_NONE;
		waiters += e->wait;
		unknown += e->unknown;
		o = (struct gil_owner){ e->time_ns > start_ns ? e->time_ns : start_ns, holder,
			                (uint32_t)waiters };
		if (holder == MODEL_NONE && (unknown || !gs->known || e->time_ns < gs->known_ns))
			o.thread = MODEL_UNKNOWN;
		push(g, &o);
	}
}

/* Merges overlapping unknown stretches, regardless of the number of threads: each GIL needs all of
 * them. */
static void join(struct edges *unknown)
{
	int32_t threads = 0;
	size_t n = 0;

	vec_sort(&unknown->v, edge_order);
	for (size_t i = 0; i < unknown->v.n; i++) {
		struct edge e = unknown->v.v[i];

		threads += e.unknown;
		if (threads == (e.unknown > 0))
			unknown->v.v[n++] = e;
	}
	unknown->v.n = n;
}

static size_t count_dirty(const struct model *m, uint32_t proc)
{
	size_t n = 0;

	for (uint32_t g = m->priv->procs.v[proc].first_gil; g != MODEL_NONE;
	     g = m->priv->gils.v[g].next)
		n += m->priv->gils.v[g].dirty;
	return n;
}

/* Each GIL has to consider each stretch: if there are many of both, merge the stretches into
 * one. */
static void limit(struct model *m, uint32_t proc, struct edges *unknown)
{
	if (count_dirty(m, proc) * unknown->v.n <= UNKNOWN_PAIRS || unknown->v.n <= 2)
		return;
	unknown->v.v[1] = unknown->v.v[unknown->v.n - 1];
	m->caveats[CAVEAT_COARSE] += unknown->v.n / 2 - 1;
	unknown->v.n = 2;
}

/* Rebuilds all dirty GILs of a process in one walk over its threads, because there may be many of
 * both. */
static void rebuild_process(struct model *m, uint32_t proc, const uint32_t *threads, size_t n,
                            struct edges *of_gil)
{
	struct edges unknown = { 0 };

	for (size_t i = 0; i < n; i++)
		collect(m, threads[i], of_gil, &unknown);
	join(&unknown);
	limit(m, proc, &unknown);
	for (uint32_t g = m->priv->procs.v[proc].first_gil; g != MODEL_NONE;
	     g = m->priv->gils.v[g].next) {
		if (m->priv->gils.v[g].dirty)
			rebuild(m, g, &of_gil[g], &unknown);
		vec_done(&of_gil[g].v);
	}
	vec_done(&unknown.v);
}

/* The threads of all processes, grouped by process: those of proc are from first[proc] up to
 * first[proc + 1]. Caller frees both. */
static uint32_t *by_process(const struct model *m, size_t **ret_first)
{
	size_t *first = xcalloc(m->priv->procs.n + 2, sizeof(*first));
	uint32_t *threads = xcalloc(m->threads.n + 1, sizeof(*threads));

	for (size_t t = 0; t < m->threads.n; t++)
		first[m->priv->threads.v[t].proc + 2]++;
	for (size_t p = 2; p < m->priv->procs.n + 2; p++)
		first[p] += first[p - 1];
	for (uint32_t t = 0; t < m->threads.n; t++)
		threads[first[m->priv->threads.v[t].proc + 1]++] = t;
	*ret_first = first;
	return threads;
}

static void rebuild_dirty(struct model *m)
{
	struct edges *of_gil = xcalloc(m->gils.n + 1, sizeof(*of_gil));
	size_t *first;
	uint32_t *threads = by_process(m, &first);

	for (uint32_t proc = 0; proc < m->priv->procs.n; proc++)
		if (count_dirty(m, proc))
			rebuild_process(m, proc, &threads[first[proc]],
			                first[proc + 1] - first[proc], of_gil);
	free(threads);
	free(first);
	free(of_gil);
}

void owners_rebuild(struct model *m, uint32_t gil)
{
	for (uint32_t g = 0; g < m->gils.n; g++)
		m->priv->gils.v[g].dirty = g == gil;
	rebuild_dirty(m);
}

uint64_t owners_waited(const struct model_gil *g, size_t *hint, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t ns = 0;

	*hint = owners_at(g, *hint, from_ns);
	for (size_t i = *hint; i < g->owners.n && g->owners.v[i].start_ns < to_ns; i++) {
		uint64_t end = i + 1 < g->owners.n ? g->owners.v[i + 1].start_ns : g->end_ns;

		ns += overlap_ns(g->owners.v[i].start_ns, end, from_ns, to_ns) *
		      g->owners.v[i].waiters;
	}
	return ns;
}

/* A GIL lives as long as its process. */
void owners_finish(struct model *m)
{
	struct model_private *p = m->priv;
	uint64_t *ends_ns = xcalloc(p->procs.n + 1, sizeof(*ends_ns));

	rebuild_dirty(m);
	for (size_t i = 0; i < m->threads.n; i++) {
		uint64_t *end_ns = &ends_ns[p->threads.v[i].proc];

		*end_ns = later(*end_ns, m->threads.v[i].end_ns);
	}
	for (uint32_t i = 0; i < m->gils.n; i++) {
		struct model_gil *g = &m->gils.v[i];

		g->end_ns = ends_ns[p->gils.v[i].proc];
		while (g->owners.n && g->owners.v[g->owners.n - 1].start_ns >= g->end_ns)
			g->owners.n--;
	}
	free(ends_ns);
}

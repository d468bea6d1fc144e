/* SPDX-License-Identifier: MIT */
/*
 * Medians come from histograms whose buckets are 1/16 of a power of two wide. The lower end of the
 * median's bucket is used, because the estimate is a lower bound.
 */
#include "model/probe_cost.h"

#include "model/span.h"

#define TAKE_NS    100 /* time to take a free GIL without probes, as measured */
#define FEW        16  /* fewer free waits than this give no useful median */
#define SUB_BITS   4
#define SUBBUCKETS (1 << SUB_BITS)
#define BUCKETS    (64 << SUB_BITS)

struct histogram {
	uint64_t n;
	uint32_t counts[BUCKETS];
};

static unsigned bucket_of(uint64_t ns)
{
	unsigned shift;

	if (ns < SUBBUCKETS)
		return (unsigned)ns;
	shift = 63 - (unsigned)__builtin_clzll(ns) - SUB_BITS;
	return ((shift + 1) << SUB_BITS) + (unsigned)(ns >> shift) - SUBBUCKETS;
}

static uint64_t bucket_start_ns(unsigned bucket)
{
	unsigned shift;

	if (bucket < SUBBUCKETS)
		return bucket;
	shift = (bucket >> SUB_BITS) - 1;
	return (uint64_t)(SUBBUCKETS + (bucket & (SUBBUCKETS - 1))) << shift;
}

static void add_free_waits(struct histogram *h, const struct model *m, const struct model_thread *t)
{
	for (size_t i = 0; i < t->gil.spans.n; i++) {
		const struct span *s = &t->gil.spans.v[i];

		if (m->probes_end_ns && s->start_ns >= m->probes_end_ns)
			return;
		if (s->state != GIL_FREE_WAIT)
			continue;
		h->counts[bucket_of(lane_span_end(&t->gil, i) - s->start_ns)]++;
		h->n++;
	}
}

/* How much longer a free wait takes with probes than without. */
static uint64_t probe_ns(const struct histogram *h)
{
	uint64_t seen = 0, median_ns = 0;

	if (h->n < FEW)
		return 0;
	for (unsigned i = 0; i < BUCKETS; i++) {
		seen += h->counts[i];
		if (seen * 2 >= h->n) {
			median_ns = bucket_start_ns(i);
			break;
		}
	}
	return median_ns > TAKE_NS ? median_ns - TAKE_NS : 0;
}

/* Whether the cost is a share of the known part of the thread's life that is worth a note. */
static bool probe_cost_matters(const struct model_thread *t)
{
	uint64_t known_ns = t->end_ns - t->start_ns - t->gil_ns[GIL_UNKNOWN];

	return t->probe_cost_ns && t->probe_cost_ns >= known_ns / 100 * PROBE_COST_NOTE_PERCENT;
}

/* The cost is at most the time in which the state of the thread is known. */
static void set_cost(struct model *m, struct model_thread *t, uint64_t count, uint64_t each_ns)
{
	uint64_t known_ns = t->end_ns - t->start_ns - t->gil_ns[GIL_UNKNOWN];

	t->probe_cost_ns = each_ns && count > known_ns / each_ns ? known_ns : count * each_ns;
	m->caveats[CAVEAT_PROBE_COST] += probe_cost_matters(t);
}

static bool is_slow(const struct model *m)
{
	uint64_t cost_ns = 0, running_ns = 0;

	for (size_t i = 0; i < m->threads.n; i++) {
		cost_ns += m->threads.v[i].probe_cost_ns;
		running_ns += m->threads.v[i].cpu_ns[CPU_RUNNING];
	}
	return running_ns && cost_ns > running_ns / 100 * PROBES_SLOW_PERCENT;
}

static void use_measured(struct model *m, uint64_t turn_ns)
{
	for (size_t i = 0; i < m->threads.n; i++)
		set_cost(m, &m->threads.v[i], m->threads.v[i].probe_turns,
		         turn_ns > TAKE_NS ? turn_ns - TAKE_NS : 0);
}

static void estimate(struct model *m)
{
	struct histogram of_all = { 0 };
	uint64_t each_ns;

	for (size_t i = 0; i < m->threads.n; i++)
		if (m->threads.v[i].free_waits)
			add_free_waits(&of_all, m, &m->threads.v[i]);
	each_ns = probe_ns(&of_all);
	for (size_t i = 0; i < m->threads.n; i++) {
		struct model_thread *t = &m->threads.v[i];
		struct histogram own = { 0 };

		if (t->free_waits < FEW) {
			set_cost(m, t, t->probe_events, each_ns);
			continue;
		}
		add_free_waits(&own, m, t);
		set_cost(m, t, t->probe_events, probe_ns(&own));
	}
}

void probe_cost_finish(struct model *m, uint64_t turn_ns)
{
	if (turn_ns)
		use_measured(m, turn_ns);
	else
		estimate(m);
	m->caveats[CAVEAT_PROBES_SLOW] = !m->probes_end_ns && is_slow(m);
}

/* SPDX-License-Identifier: MIT */
/* Finds out which waiters are known to have requested the GIL's release, and which holders could
 * have released it. */
#include "analysis/overdue_holds.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/vec.h"
#include "model/span.h"

void overdue_add_off_cpu(const struct lane *lane, size_t i, uint64_t from_ns, uint64_t to_ns,
                         uint64_t *runnable_ns, uint64_t *asleep_ns)
{
	uint64_t from = later(lane->spans.v[i].start_ns, from_ns);
	uint64_t to = lane_span_end(lane, i) < to_ns ? lane_span_end(lane, i) : to_ns;
	uint8_t state = lane->spans.v[i].state;

	if (state != CPU_UNKNOWN && state != CPU_RUNNING && to > from)
		*(state == CPU_RUNNABLE ? runnable_ns : asleep_ns) += to - from;
}

void overdue_off_cpu(const struct model_thread *thread, uint64_t from_ns, uint64_t to_ns,
                     uint64_t *ret_runnable_ns, uint64_t *ret_asleep_ns)
{
	const struct lane *lane = &thread->cpu;

	*ret_runnable_ns = *ret_asleep_ns = 0;
	for (size_t i = lane_at(lane, from_ns);
	     i < lane->spans.n && lane->spans.v[i].start_ns < to_ns; i++)
		overdue_add_off_cpu(lane, i, from_ns, to_ns, ret_runnable_ns, ret_asleep_ns);
}

/* A wait for a GIL that is long enough to request its release. */
struct wait {
	uint64_t start_ns, end_ns;
	uint32_t gil, thread;
};

/*
 * The number of examined pairs of waits and holds is bounded: PAIRS_MAX for each wait and, beyond
 * that, the HOLD_MIN longest waits of each hold. Leaving waits out can only make a hold appear to
 * have been requested later.
 */
#define PAIRS_MAX 64
#define HOLD_MIN  16

/**
 * @waits: sorted by GIL and start
 * @first: index of each GIL's first wait; the last element is the end of the last GIL's waits
 * @latest: a tree over waits, as an array: latest[leaves + i] is the end of wait i, and latest[k]
 *          the later of latest[2 * k] and latest[2 * k + 1]. leaves is a power of two
 * @asked: by thread: the number of the hold for which its request was last found
 * @holds: number of holds examined; @pairs: number of pairs of a wait and a hold that may still be
 * examined
 */
struct overdue {
	const struct model *model;
	uint64_t interval_ns;
	VEC(struct wait) waits;
	size_t *first;
	uint64_t *latest;
	size_t leaves;
	uint32_t *asked;
	uint32_t holds;
	uint64_t pairs;
	uint64_t bounded; /* holds for which not all waits were examined */
};

static int by_gil_and_start(const void *va, const void *vb)
{
	const struct wait *a = va, *b = vb;

	if (a->gil != b->gil)
		return a->gil < b->gil ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
}

static void collect(struct overdue *o)
{
	for (uint32_t t = 0; t < o->model->threads.n; t++) {
		const struct lane *lane = &o->model->threads.v[t].gil;

		for (size_t i = 0; i < lane->spans.n; i++)
			if (lane->spans.v[i].state == GIL_WAIT &&
			    lane_span_end(lane, i) - lane->spans.v[i].start_ns > o->interval_ns)
				*vec_push(&o->waits) = (struct wait){ lane->spans.v[i].start_ns,
					                              lane_span_end(lane, i),
					                              lane->spans.v[i].gil.index,
					                              t };
	}
	if (o->waits.n)
		qsort(o->waits.v, o->waits.n, sizeof(*o->waits.v), by_gil_and_start);
}

static void make_tree(struct overdue *o)
{
	for (o->leaves = 1; o->leaves <= o->waits.n;)
		o->leaves *= 2;
	o->latest = xcalloc(2 * o->leaves, sizeof(*o->latest));
	for (size_t i = 0; i < o->waits.n; i++)
		o->latest[o->leaves + i] = o->waits.v[i].end_ns;
	for (size_t k = o->leaves; k-- > 1;)
		o->latest[k] = later(o->latest[2 * k], o->latest[2 * k + 1]);
}

/* The first wait from index i on that ends after time_ns, or leaves if there is none. */
static size_t next_after(const struct overdue *o, size_t i, uint64_t time_ns)
{
	size_t k = o->leaves + i;

	while (o->latest[k] <= time_ns) {
		/* Go up until there is a right neighbour below the same parent. */
		while (k % 2)
			k /= 2;
		if (!k)
			return o->leaves;
		k++;
	}
	while (k < o->leaves)
		k = 2 * k + (o->latest[2 * k] <= time_ns);
	return k - o->leaves;
}

struct overdue *overdue_new(const struct model *model, uint64_t interval_ns)
{
	struct overdue *o = xcalloc(1, sizeof(*o));

	o->model = model;
	o->interval_ns = interval_ns;
	return o;
}

/* Called only if a hold needs the index: in many recordings none does. */
static void make_index(struct overdue *o)
{
	size_t gils = o->model->gils.n;

	o->asked = xcalloc(o->model->threads.n + 1, sizeof(*o->asked));
	o->first = xcalloc(gils + 1, sizeof(*o->first));
	collect(o);
	make_tree(o);
	for (size_t i = o->waits.n; i-- > 0;)
		o->first[o->waits.v[i].gil] = i;
	o->first[gils] = o->waits.n;
	for (size_t g = gils; g-- > 0;)
		if (!o->first[g] && (!o->waits.n || o->waits.v[0].gil != g))
			o->first[g] = o->first[g + 1];
	o->pairs = PAIRS_MAX * o->waits.n;
}

uint64_t overdue_bounded(const struct overdue *o)
{
	return o->bounded;
}

void overdue_free(struct overdue *o)
{
	if (!o)
		return;
	vec_done(&o->waits);
	free(o->first);
	free(o->latest);
	free(o->asked);
	free(o);
}

static bool is_asleep(const struct span *span)
{
	return span->state == CPU_SLEEPING || span->state == CPU_GIL_SLEEP;
}

/* The time at which the thread went to sleep again at least interval_ns after from_ns, having slept
 * since from_ns. */
static uint64_t asleep_again(const struct lane *cpu, uint64_t from_ns, uint64_t to_ns,
                             uint64_t interval_ns)
{
	bool slept = false;

	for (size_t i = lane_at(cpu, from_ns); i < cpu->spans.n && cpu->spans.v[i].start_ns < to_ns;
	     i++) {
		const struct span *span = &cpu->spans.v[i];

		if (span->start_ns < from_ns || !is_asleep(span))
			continue;
		if (slept && span->start_ns >= from_ns + interval_ns)
			return span->start_ns;
		slept = true;
	}
	return OVERDUE_NEVER;
}

/* When the waiting thread is known to have requested the release. An interval that began under
 * another holder does not count, because the waiter starts a new interval at its end. */
static uint64_t asked_by(const struct overdue *o, const struct wait *wait,
                         const struct overdue_hold *h)
{
	const struct model_thread *t = &o->model->threads.v[wait->thread];
	uint64_t from_ns = later(wait->start_ns, h->start_ns);
	uint64_t to_ns = wait->end_ns < h->end_ns ? wait->end_ns : h->end_ns;

	if (to_ns <= from_ns + o->interval_ns)
		return OVERDUE_NEVER;
	return asleep_again(&t->cpu, from_ns, to_ns, o->interval_ns);
}

/* When the first waiter requested the release, or OVERDUE_NEVER. For each waiter, its first wait in
 * which it made a request counts. */
static uint64_t asked_first(struct overdue *o, const struct overdue_hold *h)
{
	uint64_t first_ns = OVERDUE_NEVER;
	size_t end = o->first[h->gil + 1], looked = 0;

	o->holds++;
	for (size_t i = next_after(o, o->first[h->gil], h->start_ns);
	     i < end && o->waits.v[i].start_ns < h->end_ns; i = next_after(o, i + 1, h->start_ns)) {
		const struct wait *wait = &o->waits.v[i];
		uint64_t ns;

		if (looked++ >= HOLD_MIN && !o->pairs) {
			o->bounded++;
			break;
		}
		o->pairs -= o->pairs > 0;
		if (wait->thread == h->thread || o->asked[wait->thread] == o->holds)
			continue;
		ns = asked_by(o, wait, h);
		if (ns < OVERDUE_NEVER)
			o->asked[wait->thread] = o->holds;
		first_ns = ns < first_ns ? ns : first_ns;
		/* None of the remaining waits can have requested it earlier. */
		if (first_ns <= h->start_ns + o->interval_ns)
			break;
	}
	return first_ns;
}

/* The overdue time according to the recording itself; 0: no release was requested. */
static uint64_t known_overdue_ns(const struct model *model, const struct overdue_hold *h)
{
	const struct model_overdue *v = model->overdue.v;

	if (!h->end_ns)
		return 0;
	for (size_t i = SEARCH(model->overdue.n, k, v[k].end_ns < h->end_ns);
	     i < model->overdue.n && v[i].end_ns == h->end_ns; i++)
		if (v[i].gil == h->gil)
			return v[i].us * UINT64_C(1000);
	return 0;
}

/* Adds the part of span i of a CPU lane that is within [from_ns, to_ns). */
static void add_proof(struct overdue_proof *proof, const struct lane *lane, size_t i,
                      uint64_t from_ns, uint64_t to_ns)
{
	const struct span *span = &lane->spans.v[i];
	uint64_t from = later(span->start_ns, from_ns);
	uint64_t to = lane_span_end(lane, i) < to_ns ? lane_span_end(lane, i) : to_ns;

	if (to <= from || span->state == CPU_UNKNOWN || span->state == CPU_RUNNABLE ||
	    span->flags & SPAN_STOPPED)
		return;
	proof->kept_ns += to - from;
	if (span->flags & SPAN_INFERRED_END)
		proof->unsure_ns += to - from;
}

struct overdue_proof overdue_prove(struct overdue *o, const struct overdue_hold *h,
                                   uint64_t slack_ns)
{
	const struct lane *lane = &o->model->threads.v[h->thread].cpu;
	struct overdue_proof proof = { .asked_ns = OVERDUE_NEVER };

	if (o->model->requests_known) {
		proof.kept_ns = known_overdue_ns(o->model, h);
		if (proof.kept_ns > slack_ns)
			proof.asked_ns = h->end_ns - proof.kept_ns;
		return proof;
	}
	if (h->end_ns - h->start_ns <= o->interval_ns + slack_ns)
		return proof;
	if (!o->asked)
		make_index(o);
	proof.asked_ns = asked_first(o, h);
	if (proof.asked_ns >= h->end_ns)
		return (struct overdue_proof){ .asked_ns = OVERDUE_NEVER };
	for (size_t i = lane_at(lane, proof.asked_ns);
	     i < lane->spans.n && lane->spans.v[i].start_ns < h->end_ns; i++)
		add_proof(&proof, lane, i, proof.asked_ns, h->end_ns);
	if (proof.kept_ns <= slack_ns)
		proof.asked_ns = OVERDUE_NEVER;
	return proof;
}

uint64_t overdue_longest_runnable(const struct model *model)
{
	uint64_t longest = 0;

	for (uint32_t t = 0; t < model->threads.n; t++) {
		const struct lane *lane = &model->threads.v[t].cpu;

		for (size_t i = 0; i < lane->spans.n; i++)
			if (lane->spans.v[i].state == CPU_RUNNABLE)
				longest = later(longest,
				                lane_span_end(lane, i) - lane->spans.v[i].start_ns);
	}
	return longest;
}

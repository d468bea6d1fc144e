/* SPDX-License-Identifier: MIT */
/* Finds the functions that held the GIL, and proves which holds were overdue. */
#include "analysis/hogs.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "model/owners.h"
#include "model/span.h"
#include "trace/native.h"
#include "trace/slices.h"
#include "trace/source.h"
#include "trace/stacks.h"

#define NEVER_ASKED UINT64_MAX

/* Adds the time of span i of a CPU lane, within [from_ns, to_ns), in which the thread was off
 * CPU. */
static void add_off_cpu(const struct lane *lane, size_t i, uint64_t from_ns, uint64_t to_ns,
                        uint64_t *runnable_ns, uint64_t *asleep_ns)
{
	uint8_t state = lane->spans.v[i].state;

	if (state != CPU_UNKNOWN && state != CPU_RUNNING)
		*(state == CPU_RUNNABLE ? runnable_ns : asleep_ns) += lane_span_in(lane, i, from_ns,
		                                                                   to_ns);
}

void hogs_off_cpu(const struct model_thread *thread, uint64_t from_ns, uint64_t to_ns,
                  uint64_t *ret_runnable_ns, uint64_t *ret_asleep_ns)
{
	const struct lane *lane = &thread->cpu;

	*ret_runnable_ns = *ret_asleep_ns = 0;
	for (size_t i = lane_at(lane, from_ns);
	     i < lane->spans.n && lane->spans.v[i].start_ns < to_ns; i++)
		add_off_cpu(lane, i, from_ns, to_ns, ret_runnable_ns, ret_asleep_ns);
}

/**
 * What a holder did from asked_ns, when a release is known to have been requested, to the end of
 * its hold. NEVER_ASKED: there was no request.
 * @kept_ns: it ran, or slept by itself: it was not runnable, not stopped by a signal or a debugger,
 *           and its state is known
 * @unsure_ns: the part of kept_ns that is sleep whose end was not recorded: the thread may have
 * been runnable then
 */
struct request_proof {
	uint64_t asked_ns, kept_ns, unsure_ns;
};

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
 * A search for release requests. A waiter requests a release at the end of each interval_ns in which
 * no other thread got the GIL. The request is certain if the source reports it (requests_known), or
 * if the waiter goes to sleep again in the same wait, for the next interval. That the waiter was
 * woken proves nothing: other programs or a hypervisor may have stopped it before it made the
 * request, which no event reports.
 *
 * @waits: sorted by GIL and start
 * @first: index of each GIL's first wait; the last element is the end of the last GIL's waits
 * @latest: a tree over waits, as an array: latest[leaves + i] is the end of wait i, and latest[k]
 *          the later of latest[2 * k] and latest[2 * k + 1]. leaves is a power of two
 * @asked: by thread: the number of the hold for which its request was last found
 * @holds: number of holds examined; @pairs: number of pairs of a wait and a hold that may still be
 * examined
 */
struct requests {
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

static void collect(struct requests *o)
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
	vec_sort(&o->waits, by_gil_and_start);
}

static void make_tree(struct requests *o)
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
static size_t next_after(const struct requests *o, size_t i, uint64_t time_ns)
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

static struct requests *requests_new(const struct model *model, uint64_t interval_ns)
{
	struct requests *o = xcalloc(1, sizeof(*o));

	o->model = model;
	o->interval_ns = interval_ns;
	return o;
}

/* Called only if a hold needs the index: in many recordings none does. */
static void make_index(struct requests *o)
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

static void requests_free(struct requests *o)
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
	return NEVER_ASKED;
}

/* When the waiting thread is known to have requested the release. An interval that began under
 * another holder does not count, because the waiter starts a new interval at its end. */
static uint64_t asked_by(const struct requests *o, const struct wait *wait,
                         const struct gil_hold *h)
{
	const struct model_thread *t = &o->model->threads.v[wait->thread];
	uint64_t from_ns = later(wait->start_ns, h->start_ns);
	uint64_t to_ns = wait->end_ns < h->end_ns ? wait->end_ns : h->end_ns;

	if (to_ns <= from_ns + o->interval_ns)
		return NEVER_ASKED;
	return asleep_again(&t->cpu, from_ns, to_ns, o->interval_ns);
}

/* When the first waiter requested the release, or NEVER_ASKED. For each waiter, its first wait in
 * which it made a request counts. */
static uint64_t asked_first(struct requests *o, const struct gil_hold *h)
{
	uint64_t first_ns = NEVER_ASKED;
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
		if (ns < NEVER_ASKED)
			o->asked[wait->thread] = o->holds;
		first_ns = ns < first_ns ? ns : first_ns;
		/* None of the remaining waits can have requested it earlier. */
		if (first_ns <= h->start_ns + o->interval_ns)
			break;
	}
	return first_ns;
}

/* The overdue time according to the recording itself; 0: no release was requested. */
static uint64_t known_overdue_ns(const struct model *model, const struct gil_hold *h)
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
static void add_proof(struct request_proof *proof, const struct lane *lane, size_t i,
                      uint64_t from_ns, uint64_t to_ns)
{
	const struct span *span = &lane->spans.v[i];
	uint64_t ns = lane_span_in(lane, i, from_ns, to_ns);

	if (span->state == CPU_UNKNOWN || span->state == CPU_RUNNABLE || span->flags & SPAN_STOPPED)
		return;
	proof->kept_ns += ns;
	if (span->flags & SPAN_INFERRED_END)
		proof->unsure_ns += ns;
}

/* The proof that a hold lasted more than slack_ns after a release request; asked_ns is
 * NEVER_ASKED if there is none. */
static struct request_proof requests_prove(struct requests *o, const struct gil_hold *h,
                                           uint64_t slack_ns)
{
	const struct lane *lane = &o->model->threads.v[h->thread].cpu;
	struct request_proof proof = { .asked_ns = NEVER_ASKED };

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
		return (struct request_proof){ .asked_ns = NEVER_ASKED };
	for (size_t i = lane_at(lane, proof.asked_ns);
	     i < lane->spans.n && lane->spans.v[i].start_ns < h->end_ns; i++)
		add_proof(&proof, lane, i, proof.asked_ns, h->end_ns);
	if (proof.kept_ns <= slack_ns)
		proof.asked_ns = NEVER_ASKED;
	return proof;
}

/* The longest time for which any thread is known to have been runnable. */
static uint64_t longest_runnable(const struct model *model)
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

/* The functions. */

/**
 * State of one row. @heaviest_ns: the wait of the hold whose frame the row has
 */
struct row {
	struct hog hog;
	uint64_t heaviest_ns;
	uint32_t function;
};

/**
 * Proof that a function keeps the GIL, over all threads.
 * @kept_ns, @overdue: sum and number of its overdue holds; @unsure: number of them in which the
 * holder may have been runnable
 * @askable: number of its holds during which others waited, and which were long enough for a
 * release request
 */
struct proof {
	uint64_t kept_ns, overdue, unsure, askable;
};

/* Functions by name and module, numbered from 1 in order of appearance; 0 is none. */
struct functions {
	struct idmap numbers;
};

/**
 * @row_index: thread and function -> row
 * @samples_of: the model's samples by thread; those of a thread start at first_sample[thread] and
 * end before first_sample[thread + 1]
 */
struct search {
	const struct model *model;
	const struct stacks *frames;
	uint64_t interval_ns;
	struct functions functions;
	struct idmap row_index;
	VEC(struct row) rows;
	VEC(struct proof) proofs; /* by number of the function */
	struct requests *requests;
	uint32_t *samples_of;
	size_t *first_sample;
	VEC(struct hogs_sample) samples;
	struct hogs *ret;
};

/**
 * A walk through a thread's holds, in order of time.
 * @last: row of the previous hold; MODEL_NONE: none yet
 * @owner: index of the previous hold's owner in gil, where the next search starts
 * @cpu: span of the CPU lane in which the previous hold ended
 */
struct walker {
	uint32_t thread, gil;
	uint32_t last;
	size_t owner, cpu;
};

/* A hold, and how long others waited during it. */
struct hold {
	uint64_t start_ns, end_ns, wait_ns;
	uint64_t runnable_ns, asleep_ns;
	uint32_t frame;
	size_t span;
	bool inferred;
};

bool hogs_same_function(const struct stacks *frames, uint32_t a, uint32_t b)
{
	const struct stack_frame *x, *y;

	if (a == b)
		return true;
	if (!a || !b)
		return false;
	x = stacks_get(frames, a);
	y = stacks_get(frames, b);
	return x->name == y->name && x->module == y->module;
}

static uint32_t function_number(struct functions *f, const struct stacks *frames, uint32_t frame)
{
	const struct stack_frame *at = frame ? stacks_get(frames, frame) : NULL;
	uint32_t number = 0;

	if (at)
		idmap_add(&f->numbers, idmap_pair(at->name, at->module), f->numbers.n + 1, &number);
	return number;
}

static struct row *find_row(struct search *s, struct walker *w, uint32_t frame)
{
	uint32_t row = w->last;
	uint32_t function;

	if (row != MODEL_NONE && hogs_same_function(s->frames, s->rows.v[row].hog.frame, frame))
		return &s->rows.v[row];
	function = function_number(&s->functions, s->frames, frame);
	while (function >= s->proofs.n)
		*vec_push(&s->proofs) = (struct proof){ 0 };
	if (idmap_add(&s->row_index, idmap_pair(w->thread, function), (uint32_t)s->rows.n, &row))
		*vec_push(&s->rows) =
			(struct row){ .hog = { .thread = w->thread, .frame = frame, .row = row },
			              .function = function };
	w->last = row;
	return &s->rows.v[row];
}

/* Sorts the samples by thread; those of a thread stay in order of time. */
static void sort_samples(struct search *s)
{
	const struct model *m = s->model;
	size_t *next = xcalloc(m->threads.n + 2, sizeof(*next));

	for (size_t i = 0; i < m->samples.n; i++)
		next[m->samples.v[i].thread + 2]++;
	for (size_t t = 2; t < m->threads.n + 2; t++)
		next[t] += next[t - 1];
	s->samples_of = xcalloc(m->samples.n + 1, sizeof(*s->samples_of));
	for (size_t i = 0; i < m->samples.n; i++)
		s->samples_of[next[m->samples.v[i].thread + 1]++] = (uint32_t)i;
	s->first_sample = next;
}

/* The thread's first sample that is not before time_ns. */
static size_t sample_at(const struct search *s, uint32_t thread, uint64_t time_ns)
{
	const uint32_t *samples = &s->samples_of[s->first_sample[thread]];
	size_t n = s->first_sample[thread + 1] - s->first_sample[thread];

	return s->first_sample[thread] +
	       SEARCH(n, i, s->model->samples.v[samples[i]].time_ns < time_ns);
}

/* Adds the samples taken since the release request: all that runs from then on is one call. */
static void add_samples(struct search *s, struct hog *hog, const struct hold *h, uint64_t asked_ns)
{
	uint32_t hold = (uint32_t)s->ret->overdue.n - 1;

	if (!s->samples_of)
		sort_samples(s);
	for (size_t i = sample_at(s, hog->thread, asked_ns);
	     i < s->first_sample[hog->thread + 1] && hog->samples < HOGS_SAMPLES_MAX; i++) {
		const struct model_sample *sample = &s->model->samples.v[s->samples_of[i]];

		if (sample->time_ns >= h->end_ns)
			break;
		hog->samples++;
		*vec_push(&s->samples) = (struct hogs_sample){ sample->record, hog->row, hold };
	}
}

static void longest(uint64_t *longest_ns, uint64_t *at_ns, const struct hold *h)
{
	if (h->end_ns - h->start_ns <= *longest_ns)
		return;
	*longest_ns = h->end_ns - h->start_ns;
	*at_ns = h->start_ns;
}

/* Whether the function in which the hold ended may have begun after the one that kept the GIL. */
static void judge_frame(const struct search *s, struct hold *h, const struct span *span)
{
	if (!s->model->checks_late || !h->frame || span->flags & SPAN_ASKED)
		return;
	h->inferred = true;
	if (stacks_get(s->frames, h->frame)->flags & STACK_FIRST_LINE)
		h->frame = 0;
}

static void add_hold(struct search *s, struct walker *w, struct hold *h)
{
	struct gil_hold hold = { w->thread, w->gil, h->start_ns, h->end_ns };
	struct request_proof proof = { .asked_ns = NEVER_ASKED };
	struct row *row;
	struct hog *hog;
	struct proof *of;

	if (h->wait_ns)
		proof = requests_prove(s->requests, &hold, HOGS_SLACK_NS);
	if (proof.asked_ns != NEVER_ASKED)
		judge_frame(s, h, &s->model->threads.v[w->thread].gil.spans.v[h->span]);
	row = find_row(s, w, h->frame);
	hog = &row->hog;
	of = &s->proofs.v[row->function];
	hog->holds++;
	hog->hold_ns += h->end_ns - h->start_ns;
	hog->hold_off_cpu_ns += h->runnable_ns + h->asleep_ns;
	hog->hold_asleep_ns += h->asleep_ns;
	hog->wait_ns += h->wait_ns;
	longest(&hog->longest_ns, &hog->longest_at_ns, h);
	if (h->wait_ns > row->heaviest_ns) {
		row->heaviest_ns = h->wait_ns;
		hog->frame = h->frame;
	}
	if (!h->wait_ns)
		return;
	of->askable += h->end_ns - h->start_ns > s->interval_ns;
	if (proof.asked_ns == NEVER_ASKED)
		return;
	hog->inferred |= h->inferred;
	of->overdue++;
	of->kept_ns += proof.kept_ns;
	of->unsure += proof.unsure_ns != 0;
	*vec_push(&s->ret->overdue) = (struct hog_overdue){ w->thread, h->frame, h->span };
	hog->overdue_holds++;
	hog->overdue_ns += h->end_ns - h->start_ns;
	hog->overdue_wait_ns += h->wait_ns;
	longest(&hog->overdue_longest_ns, &hog->overdue_longest_at_ns, h);
	hog->off_cpu_ns += h->runnable_ns + h->asleep_ns;
	hog->asleep_ns += h->asleep_ns;
	add_samples(s, hog, h, proof.asked_ns);
}

/* Sums up the waiting during a hold, over the stretches of its GIL. */
static void measure(const struct search *s, struct walker *w, const struct span *span,
                    struct hold *h)
{
	uint32_t gil = span->gil.index;
	const struct model_gil *g = &s->model->gils.v[gil];

	if (gil != w->gil)
		w->owner = 0;
	w->gil = gil;
	w->owner = owners_of(g, w->owner, span);
	for (size_t i = w->owner; i < g->owners.n && g->owners.v[i].start_ns < h->end_ns; i++) {
		const struct gil_owner *o = &g->owners.v[i];
		uint64_t from = o->start_ns > h->start_ns ? o->start_ns : h->start_ns;
		uint64_t to = i + 1 < g->owners.n ? o[1].start_ns : g->end_ns;

		h->wait_ns += ((to < h->end_ns ? to : h->end_ns) - from) * o->waiters;
	}
}

/* Sums up the time during which the holder was not on a CPU. Holds come in order of time. */
static void measure_off_cpu(const struct search *s, struct walker *w, struct hold *h)
{
	const struct lane *cpu = &s->model->threads.v[w->thread].cpu;

	while (w->cpu < cpu->spans.n && lane_span_end(cpu, w->cpu) <= h->start_ns)
		w->cpu++;
	for (; w->cpu < cpu->spans.n && cpu->spans.v[w->cpu].start_ns < h->end_ns; w->cpu++) {
		add_off_cpu(cpu, w->cpu, h->start_ns, h->end_ns, &h->runnable_ns, &h->asleep_ns);
		if (lane_span_end(cpu, w->cpu) >= h->end_ns)
			break;
	}
}

static void walk_thread(struct search *s, uint32_t thread)
{
	const struct lane *lane = &s->model->threads.v[thread].gil;
	struct walker w = { .thread = thread, .gil = MODEL_NONE, .last = MODEL_NONE };

	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *span = &lane->spans.v[i];
		struct hold h = {
			.start_ns = span->start_ns,
			.end_ns = lane_span_end(lane, i),
			.frame = s->frames ? span->gil.frame : 0,
			.span = i,
		};

		if (span->state != GIL_HOLD)
			continue;
		measure(s, &w, span, &h);
		measure_off_cpu(s, &w, &h);
		add_hold(s, &w, &h);
	}
}

static bool is_proven(const struct search *s, const struct proof *p, uint64_t runnable_ns)
{
	uint64_t excuse_ns = s->model->stolen_ns + p->unsure * runnable_ns;

	/* The preloaded library measures CPU time, which excludes stolen time. */
	if (s->model->requests_known || p->kept_ns > excuse_ns)
		return true;
	return p->overdue >= HOGS_PROOF_HOLDS &&
	       100 * p->overdue >= HOGS_PROOF_PERCENT * p->askable;
}

/* Without proof that the function keeps the GIL, its overdue holds count as ordinary holds. */
static void clear_overdue(struct hog *hog)
{
	hog->overdue_holds = hog->overdue_ns = hog->overdue_wait_ns = 0;
	hog->overdue_longest_ns = hog->overdue_longest_at_ns = 0;
	hog->off_cpu_ns = hog->asleep_ns = 0;
	hog->samples = 0;
	hog->inferred = false;
}

/* Decides which functions are proven to keep the GIL, and drops the overdue holds and samples of
 * all others. */
static void judge(struct search *s)
{
	uint64_t runnable_ns = s->ret->overdue.n ? longest_runnable(s->model) : 0;
	CLEANUP(free) bool *proven = xcalloc(s->proofs.n + 1, sizeof(*proven));
	size_t n = 0;

	for (size_t i = 0; i < s->proofs.n; i++)
		proven[i] = is_proven(s, &s->proofs.v[i], runnable_ns);
	for (size_t i = 0; i < s->rows.n; i++)
		if (!proven[s->rows.v[i].function])
			clear_overdue(&s->rows.v[i].hog);
	for (size_t i = 0; i < s->ret->overdue.n; i++) {
		const struct hog_overdue *o = &s->ret->overdue.v[i];

		if (proven[function_number(&s->functions, s->frames, o->frame)])
			s->ret->overdue.v[n++] = *o;
	}
	s->ret->overdue.n = n;
	for (size_t i = 0; i < s->samples.n; i++)
		if (proven[s->rows.v[s->samples.v[i].row].function])
			*vec_push(&s->ret->samples) = s->samples.v[i];
}

static int compare_hogs(const void *a, const void *b)
{
	const struct hog *x = a, *y = b;

	if (x->overdue_wait_ns != y->overdue_wait_ns)
		return x->overdue_wait_ns < y->overdue_wait_ns ? 1 : -1;
	if (x->wait_ns != y->wait_ns)
		return x->wait_ns < y->wait_ns ? 1 : -1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->frame > y->frame) - (x->frame < y->frame);
}

void hogs_find(struct hogs *ret, const struct model *model, const struct stacks *frames,
               uint64_t interval_ns)
{
	struct search s = {
		.model = model, .frames = frames, .interval_ns = interval_ns, .ret = ret
	};

	*ret = (struct hogs){ 0 };
	s.requests = requests_new(model, interval_ns);
	for (uint32_t i = 0; i < model->threads.n; i++)
		walk_thread(&s, i);
	judge(&s);
	for (size_t i = 0; i < s.rows.n; i++)
		*vec_push(&ret->v) = s.rows.v[i].hog;
	vec_sort(&ret->v, compare_hogs);
	ret->bounded = s.requests->bounded;
	requests_free(s.requests);
	idmap_done(&s.functions.numbers);
	idmap_done(&s.row_index);
	free(s.samples_of);
	free(s.first_sample);
	vec_done(&s.samples);
	vec_done(&s.proofs);
	vec_done(&s.rows);
}

void hogs_done(struct hogs *hogs)
{
	vec_done(&hogs->v);
	vec_done(&hogs->overdue);
	vec_done(&hogs->samples);
}

/* The number of samples of a row in which a C function was at work. */
struct finding {
	uint32_t row, native, n;
};

struct findings {
	struct functions functions;
	struct idmap index; /* key: row and function; value: index in v */
	VEC(struct finding) v;
};

static void add_finding(struct findings *f, const struct stacks *stacks, uint32_t row,
                        uint32_t native, uint32_t n)
{
	uint64_t key = idmap_pair(row, function_number(&f->functions, stacks, native));
	uint32_t at;

	if (idmap_add(&f->index, key, (uint32_t)f->v.n, &at))
		*vec_push(&f->v) = (struct finding){ row, native, 0 };
	f->v.v[at].n += n;
}

/* What the samples of a hold show. differ: no single call can have kept the GIL since the request.
 */
struct votes {
	uint32_t callee, n;
	bool differ;
};

static void vote(struct votes *v, const struct stacks *stacks, uint32_t callee)
{
	v->differ |= v->n && !hogs_same_function(stacks, v->callee, callee);
	v->callee = callee;
	v->n++;
}

static bool elected(const struct votes *v, size_t samples)
{
	return !v->differ && v->callee && 2 * v->n >= samples;
}

/* The C function that was at work in the samples of a hold, from first up to end, or at least its
 * file. Samples that are not decided abstain; if all are, those count that show a function, then
 * those that show a file. It has to be half of the samples at least. n: number of samples that
 * showed it; 0: none did. */
static struct votes one_call(struct source *source, const struct hogs_sample *first,
                             const struct hogs_sample *end)
{
	struct votes decided = { 0 }, others = { 0 }, files = { 0 };
	size_t n = (size_t)(end - first);

	for (const struct hogs_sample *s = first; s < end; s++) {
		struct native found = native_callee(source->stacks,
		                                    source_stack_at(source, s->record));

		if (found.decided)
			vote(&decided, source->stacks, found.callee);
		else if (found.callee)
			vote(&others, source->stacks, found.callee);
		if (found.file)
			vote(&files, source->stacks, found.file);
	}
	if (decided.n && (decided.differ || !decided.callee || elected(&decided, n)))
		return decided.differ || !decided.callee ? (struct votes){ 0 } : decided;
	if (!decided.n && elected(&others, n))
		return others;
	return elected(&files, n) ? files : (struct votes){ 0 };
}

void hogs_find_native(struct hogs *hogs, struct source *source)
{
	CLEANUP(free) struct hog **by_row = xcalloc(hogs->v.n + 1, sizeof(*by_row));
	struct findings f = { 0 };

	for (size_t i = 0; i < hogs->v.n; i++)
		by_row[hogs->v.v[i].row] = &hogs->v.v[i];
	for (size_t i = 0, end; i < hogs->samples.n; i = end) {
		const struct hogs_sample *s = &hogs->samples.v[i];
		struct votes found;

		for (end = i; end < hogs->samples.n && hogs->samples.v[end].hold == s->hold; end++)
			;
		found = one_call(source, s, &hogs->samples.v[end]);
		if (found.n)
			add_finding(&f, source->stacks, s->row, found.callee, found.n);
	}
	for (size_t i = 0; i < f.v.n; i++) {
		struct hog *hog = by_row[f.v.v[i].row];

		if (f.v.v[i].n <= hog->native_samples)
			continue;
		hog->native = f.v.v[i].native;
		hog->native_samples = f.v.v[i].n;
	}
	for (size_t j = 0; j < hogs->v.n; j++)
		if (100 * hogs->v.v[j].native_samples < HOGS_NATIVE_PERCENT * hogs->v.v[j].samples)
			hogs->v.v[j].native = 0;
	idmap_done(&f.functions.numbers);
	idmap_done(&f.index);
	vec_done(&f.v);
}

/* The row of an overdue hold. */
static struct hog *row_of(struct hogs *hogs, const struct stacks *frames,
                          const struct hog_overdue *overdue)
{
	for (size_t i = 0; i < hogs->v.n; i++)
		if (hogs->v.v[i].thread == overdue->thread &&
		    (hogs->v.v[i].frame == overdue->frame ||
		     (frames && hogs_same_function(frames, hogs->v.v[i].frame, overdue->frame))))
			return &hogs->v.v[i];
	return NULL;
}

void hogs_add_collections(struct hogs *hogs, const struct model *model, const struct stacks *frames,
                          const struct slices *slices)
{
	for (size_t i = 0; i < slices->collection_count; i++) {
		const struct slice_collection *c = &slices->collections[i];
		uint32_t thread = model_find_thread(model, c->tid);

		if (thread == MODEL_NONE || model->threads.v[thread].pid != c->pid)
			continue;
		for (size_t j = SEARCH(hogs->overdue.n, at, hogs->overdue.v[at].thread < thread);
		     j < hogs->overdue.n && hogs->overdue.v[j].thread == thread; j++) {
			const struct lane *lane = &model->threads.v[thread].gil;
			uint64_t ns = lane_span_in(lane, hogs->overdue.v[j].span, c->start_ns,
			                           c->end_ns);
			struct hog *hog = ns ? row_of(hogs, frames, &hogs->overdue.v[j]) : NULL;

			if (hog)
				hog->collected_ns += ns;
		}
	}
}

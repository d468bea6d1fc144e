/* SPDX-License-Identifier: MIT */
/* Goes through the waits and the holders of each GIL side by side. */
#include "analysis/meeting.h"

#include <stdlib.h>

#include "analysis/functions.h"
#include "analysis/pystack.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/idmap.h"
#include "model/owners.h"
#include "model/span.h"

/* A wait for a GIL. stack: of the waiting thread, once it has begun */
struct wait {
	uint64_t start_ns, end_ns;
	uint32_t gil, thread, frame, stack;
};

/* The number of threads that wait in a stack. */
struct waiting {
	uint32_t stack, threads;
};

/* @calls: what a thread executes; @span: index of its span at that time; @at_ns: that time
 * @probed: the stack of @frame, of which most requests of a thread come in turn; 0: none yet */
struct thread_now {
	struct calls_now calls;
	size_t span;
	uint64_t at_ns;
	uint32_t frame, probed;
};

/**
 * @waiting: the threads that wait now; @held: how long each stack held the GIL since they are the same;
 * @stacks: those that did
 */
struct search {
	struct meeting *ret;
	const struct recording_pass *pass;
	const struct stacks *frames;
	struct thread_now *threads;
	VEC(struct waiting) waiting;
	VEC(uint64_t) held;
	VEC(uint32_t) stacks;
	struct idmap pairs;
	uint64_t work;
	uint32_t nobody, unknown;
};

static uint32_t outermost(struct search *s, uint32_t name, uint32_t flags)
{
	return stacks_id(s->ret->stacks, &(struct stack_frame){ .name = name, .flags = flags });
}

/* The stack of probed frames, of a thread of which no calls are known. */
static uint32_t probed_stack(struct search *s, uint32_t base, uint32_t frame)
{
	const struct stack_frame *f = frame ? stacks_get(s->frames, frame) : NULL;

	if (!f)
		return base;
	return stacks_id(s->ret->stacks,
	                 &(struct stack_frame){ .parent = probed_stack(s, base, f->parent),
	                                        .name = f->name,
	                                        .module = f->module,
	                                        .line = f->line,
	                                        .flags = MEETING_PROBED });
}

/* The thread as it is at that time. */
static struct thread_now *thread_at(struct search *s, uint32_t thread, uint64_t time_ns)
{
	struct thread_now *t = &s->threads[thread];

	if (time_ns < t->at_ns) { /* of another GIL */
		t->calls.next = t->calls.open.n = 0;
		t->span = 0;
	}
	t->at_ns = time_ns;
	calls_go_to(&t->calls, time_ns);
	return t;
}

static uint32_t stack_of(struct search *s, struct thread_now *t, uint32_t frame)
{
	uint32_t stack = calls_stack(&t->calls);

	if (stack != t->calls.base)
		return stack;
	if (!t->probed || t->frame != frame) {
		t->probed = probed_stack(s, stack, s->frames ? frame : 0);
		t->frame = frame;
	}
	return t->probed;
}

static void add(struct search *s, uint32_t stack, uint64_t ns)
{
	while (s->held.n <= stack)
		*vec_push(&s->held) = 0;
	if (ns && !s->held.v[stack])
		*vec_push(&s->stacks) = stack;
	s->held.v[stack] += ns;
}

static void add_pair(struct search *s, const struct waiting *w, uint32_t holds)
{
	uint64_t ns = s->held.v[holds] * w->threads;
	uint32_t at;

	if (idmap_add(&s->pairs, idmap_pair(w->stack, holds), (uint32_t)s->ret->pairs.n, &at))
		*vec_push(&s->ret->pairs) = (struct meeting_pair){ w->stack, holds, 0 };
	s->ret->pairs.v[at].ns += ns;
	s->ret->ns += ns;
}

/* The threads that wait are about to change. */
static void charge(struct search *s)
{
	for (size_t i = 0; i < s->stacks.n; i++) {
		for (size_t k = 0; k < s->waiting.n; k++)
			add_pair(s, &s->waiting.v[k], s->stacks.v[i]);
		s->work -= s->waiting.n < s->work ? s->waiting.n : s->work;
		s->held.v[s->stacks.v[i]] = 0;
	}
	s->stacks.n = 0;
}

static void add_hold(struct search *s, uint32_t holder, uint64_t from_ns, uint64_t to_ns)
{
	const struct lane *lane = &s->pass->model->threads.v[holder].gil;

	for (uint64_t at = from_ns, end; at < to_ns; at = end) {
		struct thread_now *t = thread_at(s, holder, at);

		while (t->span + 1 < lane->spans.n && lane_span_end(lane, t->span) <= at)
			t->span++;
		if (!s->work) {
			add(s, t->calls.base, to_ns - at);
			for (size_t i = 0; i < s->waiting.n; i++)
				s->ret->undivided_ns += (to_ns - at) * s->waiting.v[i].threads;
			return;
		}
		end = calls_until(&t->calls) < to_ns ? calls_until(&t->calls) : to_ns;
		add(s, stack_of(s, t, lane->spans.v[t->span].gil.frame), end - at);
	}
}

static void begin(struct search *s, struct wait *wait)
{
	size_t i = 0;

	charge(s);
	wait->stack = s->work ? stack_of(s, thread_at(s, wait->thread, wait->start_ns), wait->frame)
	                      : s->threads[wait->thread].calls.base;
	while (i < s->waiting.n && s->waiting.v[i].stack != wait->stack)
		i++;
	if (i == s->waiting.n)
		*vec_push(&s->waiting) = (struct waiting){ .stack = wait->stack };
	s->waiting.v[i].threads++;
}

static void end(struct search *s, const struct wait *wait)
{
	size_t i = 0;

	charge(s);
	while (s->waiting.v[i].stack != wait->stack)
		i++;
	if (!--s->waiting.v[i].threads)
		s->waiting.v[i] = s->waiting.v[--s->waiting.n];
}

static int by_start(const void *va, const void *vb)
{
	const struct wait *a = va, *b = vb;

	if (a->gil != b->gil)
		return a->gil < b->gil ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
}

static int by_end(const void *va, const void *vb)
{
	const struct wait *a = *(struct wait *const *)va, *b = *(struct wait *const *)vb;

	if (a->end_ns != b->end_ns)
		return a->end_ns < b->end_ns ? -1 : 1;
	return (a > b) - (a < b);
}

/* The n waits for one GIL, by start. */
static void add_gil(struct search *s, const struct model_gil *gil, struct wait *waits, size_t n)
{
	CLEANUP(free) const struct wait **ends = xcalloc(n, sizeof(const struct wait *));
	size_t begun = 0, ended = 0, owner = 0;
	uint64_t at = waits[0].start_ns;

	for (size_t i = 0; i < n; i++)
		ends[i] = &waits[i];
	qsort(ends, n, sizeof(const struct wait *), by_end);
	while (ended < n) {
		uint64_t to = ends[ended]->end_ns;
		uint32_t holder = MODEL_UNKNOWN;

		if (begun < n && waits[begun].start_ns <= at) {
			begin(s, &waits[begun++]);
			continue;
		}
		if (to <= at) {
			end(s, ends[ended++]);
			continue;
		}
		if (begun < n && (!s->waiting.n || waits[begun].start_ns < to))
			to = waits[begun].start_ns;
		if (gil->owners.n && s->waiting.n) {
			owner = owners_at(gil, owner, at);
			holder = gil->owners.v[owner].thread;
			if (owner + 1 < gil->owners.n && gil->owners.v[owner + 1].start_ns < to)
				to = gil->owners.v[owner + 1].start_ns;
		}
		if (holder < MODEL_UNKNOWN)
			add_hold(s, holder, at, to);
		else
			add(s, holder == MODEL_NONE ? s->nobody : s->unknown, to - at);
		at = to;
	}
}

static int most_first(const void *va, const void *vb)
{
	const struct meeting_pair *a = va, *b = vb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	if (a->waits != b->waits)
		return a->waits < b->waits ? -1 : 1;
	return (a->holds > b->holds) - (a->holds < b->holds);
}

void meeting_find(struct meeting *ret, const struct recording_pass *pass,
                  const struct thread_groups *groups, uint64_t work)
{
	const struct model *m = pass->model;
	struct search s = {
		.ret = ret, .pass = pass, .frames = functions_frames(pass), .work = work
	};
	VEC(struct wait) waits = { 0 };

	*ret = (struct meeting){ .stacks = stacks_new(NULL) };
	s.threads = xcalloc(m->threads.n + 1, sizeof(*s.threads));
	s.nobody = outermost(&s, 0, MEETING_NOBODY);
	s.unknown = outermost(&s, 0, MEETING_UNKNOWN);
	for (uint32_t i = 0; i < m->threads.n; i++) {
		const struct lane *lane = &m->threads.v[i].gil;

		s.threads[i].calls = (struct calls_now){
			.st = pystack_find(pass, i),
			.stacks = ret->stacks,
			.base = outermost(&s, groups->of[i], MEETING_GROUP),
		};
		for (size_t k = 0; k < lane->spans.n; k++) {
			const struct span *span = &lane->spans.v[k];

			if (span->state == GIL_WAIT && span->gil.index < m->gils.n)
				*vec_push(&waits) = (struct wait){
					.start_ns = span->start_ns,
					.end_ns = lane_span_end(lane, k),
					.gil = span->gil.index,
					.thread = i,
					.frame = span->gil.frame,
				};
		}
	}
	vec_sort(&waits, by_start);
	for (size_t i = 0, next; i < waits.n; i = next) {
		uint32_t gil = waits.v[i].gil;

		for (next = i; next < waits.n && waits.v[next].gil == gil; next++)
			;
		add_gil(&s, &m->gils.v[gil], &waits.v[i], next - i);
	}
	vec_sort(&ret->pairs, most_first);
	for (size_t i = 0; i < m->threads.n; i++)
		vec_done(&s.threads[i].calls.open);
	free(s.threads);
	vec_done(&s.waiting);
	vec_done(&s.held);
	vec_done(&s.stacks);
	vec_done(&waits);
	idmap_done(&s.pairs);
}

void meeting_done(struct meeting *meeting)
{
	stacks_free(meeting->stacks);
	vec_done(&meeting->pairs);
}

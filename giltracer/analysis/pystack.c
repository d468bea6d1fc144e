/* SPDX-License-Identifier: MIT */
/* Walks a thread's calls and its stretches in parallel. */
#include "analysis/pystack.h"

#include <stdlib.h>

#include "analysis/functions.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "model/owners.h"
#include "model/span.h"
#include "trace/names.h"

struct stretches stretches_of_lane(const struct lane *lane, uint32_t mask)
{
	struct stretches list = { 0 };

	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *span = &lane->spans.v[i];
		uint64_t end = lane_span_end(lane, i);

		if (mask >> span->state & 1)
			*vec_push(&list) = (struct stretch){ span->start_ns, end, 1, (uint32_t)i,
				                             span->gil.frame };
	}
	return list;
}

static void add_hold(struct stretches *list, const struct model_gil *gil, size_t from,
                     const struct lane *lane, size_t span)
{
	uint64_t start_ns = lane->spans.v[span].start_ns, end_ns = lane_span_end(lane, span);

	for (size_t i = from; i < gil->owners.n && gil->owners.v[i].start_ns < end_ns; i++) {
		const struct gil_owner *owner = &gil->owners.v[i];
		uint64_t end = i + 1 < gil->owners.n ? owner[1].start_ns : gil->end_ns;

		if (owner->waiters && end > start_ns)
			*vec_push(list) = (struct stretch){ later(owner->start_ns, start_ns),
				                            end < end_ns ? end : end_ns,
				                            owner->waiters, (uint32_t)span,
				                            lane->spans.v[span].gil.frame };
	}
}

/* Whether the span is the next overdue hold from *at on. */
static bool is_overdue(const struct hogs *hogs, uint32_t thread, size_t span, size_t *at)
{
	const struct hog_overdue *o = hogs ? hogs->overdue.v : NULL;

	while (hogs && *at < hogs->overdue.n &&
	       (o[*at].thread < thread || (o[*at].thread == thread && o[*at].span < span)))
		++*at;
	return hogs && *at < hogs->overdue.n && o[*at].thread == thread && o[*at].span == span;
}

struct stretches stretches_blamed(const struct model *model, uint32_t thread,
                                  const struct hogs *hogs)
{
	const struct lane *lane = &model->threads.v[thread].gil;
	size_t overdue = hogs ? SEARCH(hogs->overdue.n, at, hogs->overdue.v[at].thread < thread)
	                      : 0;
	struct stretches list = { 0 };
	uint32_t gil = MODEL_NONE;
	size_t owner = 0;

	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *span = &lane->spans.v[i];

		if (span->state != GIL_HOLD || span->gil.index >= model->gils.n)
			continue;
		if (span->gil.index != gil)
			owner = 0;
		gil = span->gil.index;
		owner = owners_of(&model->gils.v[gil], owner, span);
		if (!is_overdue(hogs, thread, i, &overdue))
			add_hold(&list, &model->gils.v[gil], owner, lane, i);
	}
	return list;
}

void pystack_init(struct pystack *py, const struct slices *slices)
{
	*py = (struct pystack){ .stacks = stacks_new(slices->names) };
	*vec_push(&py->ns) = 0;
}

void pystack_done(struct pystack *py)
{
	stacks_free(py->stacks);
	vec_done(&py->ns);
	vec_done(&py->rest);
}

#define NO_STACK UINT32_MAX

void calls_go_to(struct calls_now *c, uint64_t time_ns)
{
	while (c->st && c->next < c->st->n && c->st->v[c->next].start_ns <= time_ns) {
		const struct slice *slice = &c->st->v[c->next++];

		/* Calls that have ended, and those that are nested deeper. */
		while (c->open.n && (c->open.n > slice->depth ||
		                     c->open.v[c->open.n - 1].end_ns <= slice->start_ns))
			c->open.n--;
		*vec_push(&c->open) = (struct open_call){ slice->start_ns + slice->dur_ns,
			                                  slice->name, NO_STACK };
	}
	while (c->open.n && c->open.v[c->open.n - 1].end_ns <= time_ns)
		c->open.n--;
}

uint32_t calls_stack(struct calls_now *c)
{
	size_t depth = c->open.n < PYSTACK_DEPTH_MAX ? c->open.n : PYSTACK_DEPTH_MAX, i = depth;

	while (i && c->open.v[i - 1].stack == NO_STACK)
		i--;
	for (; i < depth; i++) {
		struct stack_frame frame = { .parent = i ? c->open.v[i - 1].stack : c->base,
			                     .name = c->open.v[i].name,
			                     .flags = STACK_PYTHON };
		struct calls_known *known =
			&c->known[(frame.parent * 31 + frame.name) % CALLS_KNOWN];

		if (!known->stack || known->parent != frame.parent || known->name != frame.name)
			*known = (struct calls_known){ frame.parent, frame.name,
				                       stacks_id(c->stacks, &frame) };
		c->open.v[i].stack = known->stack;
	}
	return depth ? c->open.v[depth - 1].stack : c->base;
}

uint64_t calls_until(const struct calls_now *c)
{
	uint64_t end_ns = c->open.n ? c->open.v[c->open.n - 1].end_ns : UINT64_MAX;

	if (c->st && c->next < c->st->n && c->st->v[c->next].start_ns < end_ns)
		return c->st->v[c->next].start_ns;
	return end_ns;
}

static void add(struct pystack_times *times, uint32_t id, uint64_t ns)
{
	while (times->n <= id)
		*vec_push(times) = 0;
	times->v[id] += ns;
}

static void charge(struct pystack *py, const struct stretch *s, uint32_t stack, uint64_t ns)
{
	add(&py->ns, stack, ns);
	if (!stack)
		add(&py->rest, s->frame, ns);
	if (py->see)
		py->see(py->data, s, stack, ns);
}

void pystack_charge(struct pystack *py, const struct slice_thread *st,
                    const struct stretches *stretches)
{
	struct calls_now calls = { .st = st, .stacks = py->stacks };

	for (size_t i = 0; i < stretches->n; i++) {
		const struct stretch *s = &stretches->v[i];

		for (uint64_t at = s->start_ns, end; at < s->end_ns; at = end) {
			uint32_t stack;

			calls_go_to(&calls, at);
			stack = calls_stack(&calls);
			end = calls_until(&calls) < s->end_ns ? calls_until(&calls) : s->end_ns;
			charge(py, s, stack, (end - at) * s->weight);
		}
	}
	vec_done(&calls.open);
}

static int compare_functions(const void *va, const void *vb)
{
	const struct pystack_function *a = va, *b = vb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return (a->name > b->name) - (a->name < b->name);
}

struct pystack_functions pystack_functions(const struct pystack *py)
{
	uint32_t count = names_count(stacks_names(py->stacks));
	CLEANUP(free) uint32_t *of = xcalloc((size_t)count + 1, sizeof(*of));
	struct pystack_functions ret = { .all_ns = py->ns.v[0] };

	for (uint32_t id = 1; id < py->ns.n; id++) {
		uint32_t name = stacks_get(py->stacks, id)->name;
		struct pystack_function *f;

		if (!py->ns.v[id])
			continue;
		if (!of[name]) {
			*vec_push(&ret) = (struct pystack_function){ .name = name, .stack = id };
			of[name] = (uint32_t)ret.n;
		}
		f = &ret.v[of[name] - 1];
		f->ns += py->ns.v[id];
		if (py->ns.v[id] > py->ns.v[f->stack])
			f->stack = id;
		ret.all_ns += py->ns.v[id];
	}
	vec_sort(&ret, compare_functions);
	return ret;
}

const char *pystack_name(const struct pystack *py, uint32_t stack)
{
	return names_get(stacks_names(py->stacks), stacks_get(py->stacks, stack)->name);
}

const char *pystack_caller(const struct pystack *py, uint32_t stack)
{
	uint32_t parent = stacks_get(py->stacks, stack)->parent;

	for (uint32_t at = parent; at && function_in_library(pystack_name(py, stack));
	     at = stacks_get(py->stacks, at)->parent)
		if (!function_in_library(pystack_name(py, at)))
			return pystack_name(py, at);
	return parent ? pystack_name(py, parent) : NULL;
}

const struct slice_thread *pystack_find(const struct recording_pass *pass, uint32_t thread)
{
	const struct model_thread *t = &pass->model->threads.v[thread];

	return slices_find(pass->slices, t->pid, t->tid);
}

/* SPDX-License-Identifier: MIT */
/* Walks a thread's calls and its stretches in parallel. */
#include "analysis/pystack.h"

#include <stdlib.h>

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
			*vec_push(&list) = (struct stretch){ span->start_ns, end, 1 };
	}
	return list;
}

static void add_hold(struct stretches *list, const struct model_gil *gil, size_t from,
                     uint64_t start_ns, uint64_t end_ns)
{
	for (size_t i = from; i < gil->owners.n && gil->owners.v[i].start_ns < end_ns; i++) {
		const struct gil_owner *owner = &gil->owners.v[i];
		uint64_t end = i + 1 < gil->owners.n ? owner[1].start_ns : gil->end_ns;

		if (owner->waiters && end > start_ns)
			*vec_push(list) = (struct stretch){ later(owner->start_ns, start_ns),
				                            end < end_ns ? end : end_ns,
				                            owner->waiters };
	}
}

struct stretches stretches_blamed(const struct model *model, uint32_t thread)
{
	const struct lane *lane = &model->threads.v[thread].gil;
	struct stretches list = { 0 };
	uint32_t gil = MODEL_NONE;
	size_t owner = 0;

	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *span = &lane->spans.v[i];

		if (span->state != GIL_HOLD)
			continue;
		if (span->gil.index != gil)
			owner = 0;
		gil = span->gil.index;
		owner = owners_of(&model->gils.v[gil], owner, span);
		add_hold(&list, &model->gils.v[gil], owner, span->start_ns, lane_span_end(lane, i));
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

		c->open.v[i].stack = stacks_id(c->stacks, &frame);
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
			while (py->ns.n <= stack)
				*vec_push(&py->ns) = 0;
			py->ns.v[stack] += (end - at) * s->weight;
		}
	}
	vec_done(&calls.open);
}

struct pystack_top pystack_top(const struct pystack *py)
{
	uint32_t count = names_count(stacks_names(py->stacks));
	CLEANUP(free) uint64_t *by_name = xcalloc((size_t)count + 1, sizeof(*by_name));
	struct pystack_top top = { .all_ns = py->ns.v[0] };
	uint64_t heaviest = 0;

	for (uint32_t id = 1; id < py->ns.n; id++) {
		uint32_t name = stacks_get(py->stacks, id)->name;

		top.all_ns += py->ns.v[id];
		by_name[name] += py->ns.v[id];
		if (by_name[name] > top.ns) {
			top.ns = by_name[name];
			top.name = name;
		}
	}
	for (uint32_t id = 1; id < py->ns.n; id++) {
		if (stacks_get(py->stacks, id)->name != top.name || py->ns.v[id] <= heaviest)
			continue;
		heaviest = py->ns.v[id];
		top.stack = id;
	}
	return top;
}

const struct slice_thread *pystack_find(const struct recording_pass *pass, uint32_t thread)
{
	const struct model_thread *t = &pass->model->threads.v[thread];

	return slices_find(pass->slices, t->pid, t->tid);
}

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

/* A call that has not ended yet. */
struct open_call {
	uint64_t end_ns;
	uint32_t stack;
};

/**
 * @at: end of the time that has been charged; @next: the next stretch
 */
struct walk {
	struct pystack *py;
	const struct stretches *stretches;
	uint64_t at;
	size_t next;
	VEC(struct open_call) open;
};

/* Charges the time from w->at to end_ns to stack, which was running. */
static void charge_until(struct walk *w, uint64_t end_ns, uint32_t stack)
{
	while (w->next < w->stretches->n) {
		const struct stretch *s = &w->stretches->v[w->next];
		uint64_t from = s->start_ns > w->at ? s->start_ns : w->at;
		uint64_t to = s->end_ns < end_ns ? s->end_ns : end_ns;

		if (from < to)
			w->py->ns.v[stack] += (to - from) * s->weight;
		if (s->end_ns > end_ns)
			break;
		w->next++;
	}
	if (end_ns > w->at)
		w->at = end_ns;
}

static uint32_t top(const struct walk *w)
{
	return w->open.n ? w->open.v[w->open.n - 1].stack : 0;
}

/* Closes the calls that have ended by time_ns, and all that are nested deeper than depth. */
static void close_calls(struct walk *w, uint64_t time_ns, size_t depth)
{
	while (w->open.n) {
		uint64_t end = w->open.v[w->open.n - 1].end_ns;

		if (end > time_ns && w->open.n <= depth)
			return;
		charge_until(w, end < time_ns ? end : time_ns, top(w));
		w->open.n--;
	}
}

static void open_call(struct walk *w, const struct slice *slice)
{
	struct stack_frame frame = {
		.parent = top(w),
		.name = slice->name,
		.flags = STACK_PYTHON,
	};
	uint32_t id = frame.parent;

	if (w->open.n < PYSTACK_DEPTH_MAX)
		id = stacks_id(w->py->stacks, &frame);
	while (w->py->ns.n <= id)
		*vec_push(&w->py->ns) = 0;
	*vec_push(&w->open) = (struct open_call){ slice->start_ns + slice->dur_ns, id };
}

void pystack_charge(struct pystack *py, const struct slice_thread *st,
                    const struct stretches *stretches)
{
	struct walk w = { .py = py, .stretches = stretches };

	for (size_t i = 0; st && i < st->n && w.next < stretches->n; i++) {
		close_calls(&w, st->v[i].start_ns, st->v[i].depth);
		charge_until(&w, st->v[i].start_ns, top(&w));
		open_call(&w, &st->v[i]);
	}
	close_calls(&w, UINT64_MAX, 0);
	charge_until(&w, UINT64_MAX, 0);
	vec_done(&w.open);
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

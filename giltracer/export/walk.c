/* SPDX-License-Identifier: MIT */
/* Walks through the model once. */
#include "export/walk.h"

#include "analysis/pystack.h"
#include "model/owners.h"
#include "model/span.h"

static const char *const gil_names[GIL_STATES] = {
	[GIL_UNKNOWN] = "unknown",
	[GIL_HOLD] = "holds the GIL",
	[GIL_WAIT] = "waits for the GIL",
	[GIL_SWITCH_WAIT] = "released on request, awaits the switch",
	[GIL_FREE_WAIT] = "takes a free GIL",
	[GIL_LOCK_WAIT] = "waits for a lock",
	[GIL_STOPPED] = "stopped by another thread",
	[GIL_STOPPING] = "stops the other threads",
};

static const char *const cpu_names[CPU_STATES] = {
	[CPU_RUNNING] = "running",
	[CPU_RUNNABLE] = "runnable",
	[CPU_SLEEPING] = "sleeping",
	[CPU_UNINTERRUPTIBLE] = "uninterruptible",
	[CPU_GIL_SLEEP] = "asleep for the GIL",
};

const char *walk_state_name(enum walk_lane lane, unsigned state)
{
	return lane == WALK_GIL ? gil_names[state] : cpu_names[state];
}

/* The thread that held the GIL when a wait began; *owner is where the previous search ended. */
static uint32_t holder_of(const struct model *model, const struct span *span, size_t *owner,
                          uint32_t *gil)
{
	const struct model_gil *g = &model->gils.v[span->gil.index];
	uint32_t thread;

	if (!g->owners.n)
		return MODEL_NONE;
	if (span->gil.index != *gil)
		*owner = 0;
	*gil = span->gil.index;
	*owner = owners_of(g, *owner, span);
	thread = g->owners.v[*owner].thread;
	return thread < model->threads.n ? thread : MODEL_NONE;
}

static void walk_lane(const struct model *model, const struct lane *lane, struct walk_span *at,
                      const struct walk_ops *ops, void *data)
{
	size_t owner = 0;
	uint32_t gil = MODEL_NONE;

	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *span = &lane->spans.v[i];

		at->state = span->state;
		if (!walk_state_name(at->lane, at->state))
			continue;
		at->start_ns = span->start_ns;
		at->end_ns = lane_span_end(lane, i);
		at->holder = MODEL_NONE;
		at->span = span;
		if (at->lane == WALK_GIL && at->state == GIL_WAIT &&
		    span->gil.index < model->gils.n)
			at->holder = holder_of(model, span, &owner, &gil);
		ops->span(data, at);
	}
}

static void walk_calls(const struct recording_pass *pass, uint32_t thread,
                       const struct walk_ops *ops, void *data)
{
	const struct slice_thread *st = pystack_find(pass, thread);

	for (size_t i = 0; st && i < st->n; i++)
		ops->call(data, thread, &st->v[i]);
}

static void walk_thread(const struct recording_pass *pass, uint32_t thread,
                        const struct walk_ops *ops, void *data)
{
	const struct model *model = pass->model;
	struct walk_span at = { .thread = thread };

	if (ops->call)
		walk_calls(pass, thread, ops, data);
	if (!ops->span)
		return;
	at.lane = WALK_GIL;
	walk_lane(model, &model->threads.v[thread].gil, &at, ops, data);
	at.lane = WALK_CPU;
	walk_lane(model, &model->threads.v[thread].cpu, &at, ops, data);
}

static void walk_gil(const struct model *model, uint32_t gil, const struct walk_ops *ops,
                     void *data)
{
	const struct model_gil *g = &model->gils.v[gil];
	struct walk_owner at = { .gil = gil };

	for (size_t i = 0; i < g->owners.n; i++) {
		at.start_ns = g->owners.v[i].start_ns;
		at.end_ns = i + 1 < g->owners.n ? g->owners.v[i + 1].start_ns : g->end_ns;
		at.thread = g->owners.v[i].thread;
		at.waiters = g->owners.v[i].waiters;
		ops->owner(data, &at);
	}
}

void walk(const struct analysis *a, const struct walk_ops *ops, void *data)
{
	for (uint32_t i = 0; ops->thread && i < a->model->threads.n; i++)
		ops->thread(data, i);
	for (uint32_t i = 0; ops->gil && i < a->model->gils.n; i++)
		ops->gil(data, i);
	for (uint32_t i = 0; i < a->model->threads.n; i++)
		walk_thread(a->pass, i, ops, data);
	for (uint32_t i = 0; ops->owner && i < a->model->gils.n; i++)
		walk_gil(a->model, i, ops, data);
	for (size_t i = 0; ops->lost && i < a->model->lost.n; i++)
		ops->lost(data, &a->model->lost.v[i]);
}

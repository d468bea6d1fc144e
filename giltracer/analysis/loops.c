/* SPDX-License-Identifier: MIT */
/* Finds selectors that return without the GIL and measures how long their loops wait for it. */
#include "analysis/loops.h"

#include <string.h>

#include "base/str.h"
#include "model/owners.h"
#include "model/span.h"
#include "trace/names.h"
#include "trace/stacks.h"

/* A thread that held the GIL while the loop waited, and the function in which it did. */
struct culprit {
	uint32_t thread, frame;
	uint64_t ns;
};

struct culprits {
	VEC(struct culprit) v;
};

/* Whether the frame's function has this name and file. Up to 3.10 a code object has only its plain
 * name. */
static bool is_function(const struct stacks *frames, uint32_t id, const char *name,
                        const char *file)
{
	const struct stack_frame *frame = stacks_get(frames, id);
	const char *full = names_get(stacks_names(frames), frame->name);
	const char *dot = strrchr(full, '.');

	return id && !strcmp(dot ? dot + 1 : full, name) &&
	       str_has_suffix(names_get(stacks_names(frames), frame->module), file);
}

bool loops_is_selector(const struct stacks *frames, uint32_t frame)
{
	return frame && is_function(frames, frame, "select", "/selectors.py") &&
	       is_function(frames, stacks_get(frames, frame)->parent, "_run_once",
	                   "/asyncio/base_events.py");
}

/* The frame of the hold at time_ns, or 0. */
static uint32_t hold_frame(const struct lane *lane, uint64_t time_ns)
{
	const struct span *span = lane->spans.n ? &lane->spans.v[lane_at(lane, time_ns)] : NULL;

	return span && span->state == GIL_HOLD ? span->gil.frame : 0;
}

static void blame_one(struct culprits *list, const struct stacks *frames, uint32_t thread,
                      uint32_t frame, uint64_t ns)
{
	for (size_t i = 0; i < list->v.n; i++) {
		struct culprit *c = &list->v.v[i];

		if (c->thread == thread && hogs_same_function(frames, c->frame, frame)) {
			c->ns += ns;
			return;
		}
	}
	*vec_push(&list->v) = (struct culprit){ thread, frame, ns };
}

static void blame_wait(struct culprits *list, const struct model *m, const struct stacks *frames,
                       const struct span *wait, uint64_t end_ns)
{
	const struct model_gil *g = &m->gils.v[wait->gil.index];

	for (size_t i = owners_of(g, 0, wait); i < g->owners.n && g->owners.v[i].start_ns < end_ns;
	     i++) {
		const struct gil_owner *o = &g->owners.v[i];
		uint64_t from = o->start_ns > wait->start_ns ? o->start_ns : wait->start_ns;
		uint64_t to = i + 1 < g->owners.n ? o[1].start_ns : g->end_ns;

		if (o->thread >= m->threads.n)
			continue;
		blame_one(list, frames, o->thread, hold_frame(&m->threads.v[o->thread].gil, from),
		          (to < end_ns ? to : end_ns) - from);
	}
}

/* The one that held the GIL for more than half of the waiting, or NULL. */
static const struct culprit *find_most(const struct culprits *list, uint64_t wait_ns)
{
	const struct culprit *most = NULL;

	for (size_t i = 0; i < list->v.n; i++)
		if (!most || list->v.v[i].ns > most->ns)
			most = &list->v.v[i];
	return most && most->ns * 2 > wait_ns ? most : NULL;
}

static void name_culprit(struct pattern *p, const struct culprits *list,
                         const struct stacks *frames)
{
	const struct culprit *most = find_most(list, p->ns);
	const struct stack_frame *frame;

	p->other = most ? most->thread : MODEL_NONE;
	if (!most || !most->frame)
		return;
	frame = stacks_get(frames, most->frame);
	p->function = names_get(stacks_names(frames), frame->name);
	p->file = names_get(stacks_names(frames), frame->module);
	p->line = frame->line;
}

bool loops_measure(struct pattern *p, const struct model *m, const struct stacks *frames)
{
	const struct lane *lane = &m->threads.v[p->thread].gil;
	struct culprits list = { 0 };

	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *wait = &lane->spans.v[i];
		uint64_t end_ns = lane_span_end(lane, i);

		if (wait->state != GIL_WAIT || end_ns - wait->start_ns < PATTERN_SHORT_NS ||
		    !loops_is_selector(frames, wait->gil.frame))
			continue;
		p->count++;
		p->ns += end_ns - wait->start_ns;
		if (end_ns - wait->start_ns > p->longest_ns)
			p->longest_ns = end_ns - wait->start_ns;
		blame_wait(&list, m, frames, wait, end_ns);
	}
	name_culprit(p, &list, frames);
	vec_done(&list.v);
	return p->count != 0;
}

struct loops_wait loops_waited(const struct model *m, const struct stacks *frames, uint32_t thread,
                               uint64_t from_ns, uint64_t to_ns)
{
	const struct lane *lane = &m->threads.v[thread].gil;
	struct loops_wait ret = { .holder = MODEL_NONE };
	struct culprits list = { 0 };
	const struct culprit *most;

	for (size_t i = lane->spans.n ? lane_at(lane, from_ns) : 0; i < lane->spans.n; i++) {
		struct span wait = lane->spans.v[i];
		uint64_t end_ns = lane_span_end(lane, i);

		if (wait.start_ns >= to_ns)
			break;
		if (wait.start_ns < from_ns)
			wait.start_ns = from_ns;
		if (end_ns > to_ns)
			end_ns = to_ns;
		if (end_ns <= wait.start_ns ||
		    (wait.state != GIL_WAIT && wait.state != GIL_SWITCH_WAIT))
			continue;
		ret.ns += end_ns - wait.start_ns;
		if (wait.state == GIL_WAIT && wait.gil.index < m->gils.n)
			blame_wait(&list, m, frames, &wait, end_ns);
	}
	most = find_most(&list, ret.ns);
	if (most) {
		ret.holder = most->thread;
		ret.frame = most->frame;
	}
	vec_done(&list.v);
	return ret;
}

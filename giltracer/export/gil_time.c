/* SPDX-License-Identifier: MIT */
/* Sums up a thread's spans by stack. */
#include "export/gil_time.h"

#include "analysis/locks.h"
#include "model/span.h"

static uint32_t mask_of(const struct analysis *a, enum gil_time which)
{
	if (a->locks)
		return which == GIL_TIME_HOLD ? 1u << GIL_STOPPING
		                              : 1u << GIL_LOCK_WAIT | 1u << GIL_STOPPED;
	return which == GIL_TIME_HOLD ? 1u << GIL_HOLD : 1u << GIL_WAIT | 1u << GIL_SWITCH_WAIT;
}

static void add(struct gil_times *t, uint32_t stack, enum gil_time which, uint64_t ns)
{
	uint32_t at;

	if (!ns)
		return;
	if (idmap_add(&t->by_stack, stack, (uint32_t)t->rows.n, &at))
		*vec_push(&t->rows) = (struct gil_time_row){ .stack = stack };
	t->rows.v[at].ns[which] += ns;
}

/* Adds all time in py as time of this kind, and clears it. */
static void take_charges(struct gil_times *t, enum gil_time which)
{
	for (uint32_t id = 0; id < t->py.ns.n; id++) {
		add(t, id, which, t->py.ns.v[id]);
		t->py.ns.v[id] = 0;
	}
}

static void add_calls(struct gil_times *t, const struct analysis *a, uint32_t thread)
{
	const struct slice_thread *st = pystack_find(a->pass, thread);
	const struct lane *lane = &a->model->threads.v[thread].gil;

	for (enum gil_time which = 0; which < GIL_TIMES; which++) {
		struct stretches s = which == GIL_TIME_CAUSED
		                             ? stretches_blamed(a->model, thread)
		                             : stretches_of_lane(lane, mask_of(a, which));

		pystack_charge(&t->py, st, &s);
		take_charges(t, which);
		vec_done(&s);
	}
}

static void add_spans(struct gil_times *t, const struct analysis *a, uint32_t thread,
                      enum gil_time which)
{
	const struct lane *lane = &a->model->threads.v[thread].gil;
	uint32_t mask = mask_of(a, which);

	for (size_t i = 0; i < lane->spans.n; i++)
		if (mask >> lane->spans.v[i].state & 1)
			add(t, t->stacks ? lane->spans.v[i].gil.frame : 0, which,
			    lane_span_end(lane, i) - lane->spans.v[i].start_ns);
}

static void add_hogs(struct gil_times *t, const struct analysis *a, uint32_t thread)
{
	const struct hogs *hogs = a->pass->hogs;

	for (size_t i = 0; hogs && i < hogs->v.n; i++) {
		const struct hog *hog = &hogs->v.v[i];

		if (hog->thread != thread)
			continue;
		add(t, hog->frame, GIL_TIME_CAUSED, hog->wait_ns);
		add(t, hog->frame, GIL_TIME_HOLD, hog->hold_ns);
	}
}

void gil_times_of(struct gil_times *ret, const struct analysis *a, uint32_t thread)
{
	*ret = (struct gil_times){ .calls = pystack_find(a->pass, thread) != NULL };
	if (ret->calls) {
		pystack_init(&ret->py, a->pass->slices);
		add_calls(ret, a, thread);
		ret->stacks = ret->py.stacks;
		return;
	}
	ret->stacks = functions_frames(a->pass);
	if (a->locks)
		add_spans(ret, a, thread, GIL_TIME_HOLD);
	else
		add_hogs(ret, a, thread);
	add_spans(ret, a, thread, GIL_TIME_WAIT);
}

void gil_times_done(struct gil_times *t)
{
	if (t->calls)
		pystack_done(&t->py);
	vec_done(&t->rows);
	idmap_done(&t->by_stack);
}

/* SPDX-License-Identifier: MIT */
/* Walks the calls and the GIL lane of a thread side by side. */
#include "export/stacked.h"

#include "analysis/pystack.h"
#include "base/vec.h"
#include "export/walk.h"
#include "model/span.h"
#include "trace/names.h"
#include "trace/stacks.h"

static uint32_t calls_from(void)
{
	return GIL_STATES;
}

static uint32_t probes_from(const struct analysis *a)
{
	return calls_from() + (a->pass->slices ? names_count(a->pass->slices->names) : 0);
}

uint32_t stacked_frames(const struct analysis *a)
{
	const struct stacks *frames = functions_frames(a->pass);

	return probes_from(a) + (frames ? stacks_count(frames) : 0);
}

bool stacked_any(const struct analysis *a)
{
	return a->verdict.kind != VERDICT_SAMPLED || a->pass->slices;
}

bool stacked_is_state(uint32_t frame)
{
	return frame < GIL_STATES;
}

void stacked_place(struct place *ret, const struct analysis *a, uint32_t frame)
{
	const char *state = frame < GIL_STATES ? walk_state_name(WALK_GIL, frame) : NULL;
	struct function f;

	if (frame < GIL_STATES) {
		place_of(ret, state ? state : "without the GIL", NULL, 0);
	} else if (frame < probes_from(a)) {
		place_of_call(ret, names_get(a->pass->slices->names, frame - calls_from()));
	} else {
		f = function_at(a->pass, frame - probes_from(a));
		place_of(ret, f.name, f.file, f.line);
	}
}

struct open_frame {
	uint64_t end_ns;
	uint32_t frame;
};

/**
 * @at_ns: time of the last event; later ones are not earlier
 * @state: the present span, which is innermost; NULL: none
 * @state_end_ns: its end
 */
struct stacked {
	const struct analysis *a;
	const struct stacked_ops *ops;
	void *data;
	uint64_t at_ns;
	VEC(struct open_frame) open;
	const struct span *state;
	uint64_t state_end_ns;
	bool state_open;
};

static uint64_t advance(struct stacked *s, uint64_t at_ns)
{
	uint64_t most = s->a->model->end_ns;

	if (at_ns > most)
		at_ns = most;
	if (at_ns > s->at_ns)
		s->at_ns = at_ns;
	return s->at_ns;
}

static void open_state(struct stacked *s, uint64_t at_ns)
{
	if (!s->state || s->state_open || s->state_end_ns <= at_ns)
		return;
	s->ops->begin(s->data, advance(s, at_ns), s->state->state);
	s->state_open = true;
}

static void close_state(struct stacked *s, uint64_t at_ns)
{
	if (!s->state_open)
		return;
	s->ops->end(s->data, advance(s, at_ns), s->state->state);
	s->state_open = false;
}

/* Ends the state and the calls that end by at_ns, the earliest first. */
static void close_until(struct stacked *s, uint64_t at_ns)
{
	for (;;) {
		const struct open_frame *top = s->open.n ? &s->open.v[s->open.n - 1] : NULL;

		if (s->state && s->state_end_ns <= at_ns &&
		    (!top || s->state_end_ns <= top->end_ns)) {
			close_state(s, s->state_end_ns);
			s->state = NULL;
		} else if (top && top->end_ns <= at_ns) {
			close_state(s, top->end_ns);
			s->ops->end(s->data, advance(s, top->end_ns), top->frame);
			s->open.n--;
			open_state(s, top->end_ns);
		} else {
			return;
		}
	}
}

static void open_call(struct stacked *s, uint64_t start_ns, uint64_t end_ns, uint32_t frame)
{
	const struct open_frame *top;

	close_until(s, start_ns);
	close_state(s, start_ns);
	top = s->open.n ? &s->open.v[s->open.n - 1] : NULL;
	if (top && end_ns > top->end_ns)
		end_ns = top->end_ns;
	s->ops->begin(s->data, advance(s, start_ns), frame);
	*vec_push(&s->open) = (struct open_frame){ end_ns, frame };
	open_state(s, start_ns);
}

/* Without calls, a span has the function that the probes read, with its callers. */
static void open_frames(struct stacked *s, uint32_t frame, uint64_t start_ns, uint64_t end_ns)
{
	const struct stacks *frames = functions_frames(s->a->pass);
	uint32_t chain[PYSTACK_DEPTH_MAX], n = 0;

	for (; frames && frame && n < PYSTACK_DEPTH_MAX; frame = stacks_get(frames, frame)->parent)
		chain[n++] = frame;
	while (n)
		open_call(s, start_ns, end_ns, probes_from(s->a) + chain[--n]);
}

static void open_span(struct stacked *s, const struct span *span, uint64_t end_ns, bool frames)
{
	close_until(s, span->start_ns);
	close_state(s, span->start_ns);
	s->state = NULL;
	if (!walk_state_name(WALK_GIL, span->state) || end_ns <= span->start_ns)
		return;
	if (frames)
		open_frames(s, span->gil.frame, span->start_ns, end_ns);
	s->state = span;
	s->state_end_ns = end_ns;
	open_state(s, span->start_ns);
}

void stacked_thread(const struct analysis *a, uint32_t thread, const struct stacked_ops *ops,
                    void *data)
{
	struct stacked s = { .a = a, .ops = ops, .data = data, .at_ns = a->model->start_ns };
	const struct lane *lane = &a->model->threads.v[thread].gil;
	const struct slice_thread *st = pystack_find(a->pass, thread);
	size_t call = 0, n = st ? st->n : 0;

	for (size_t i = 0; i < lane->spans.n || call < n;) {
		const struct slice *c = call < n ? &st->v[call] : NULL;
		const struct span *span = i < lane->spans.n ? &lane->spans.v[i] : NULL;

		if (c && (!span || c->start_ns < span->start_ns)) {
			open_call(&s, c->start_ns, c->start_ns + c->dur_ns, calls_from() + c->name);
			call++;
		} else {
			open_span(&s, span, lane_span_end(lane, i), !st);
			i++;
		}
	}
	close_until(&s, UINT64_MAX);
	vec_done(&s.open);
}

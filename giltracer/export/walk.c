/* SPDX-License-Identifier: MIT */
/* Walks through a recording for the formats: its events, and its stacks. */
#include "export/walk.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/facts.h"
#include "analysis/pystack.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "model/owners.h"
#include "model/span.h"
#include "report/phrases.h"
#include "trace/names.h"
#include "trace/stacks.h"

char *place_text(const char *text)
{
	struct str clean = { 0 };
	uint32_t cp;

	while ((cp = utf8_next(&text)))
		utf8_add(&clean, cp);
	return str_take(&clean);
}

void place_of(struct place *ret, const char *name, const char *file, uint32_t line)
{
	*ret = (struct place){ place_text(name ? name : ""), place_text(file ? file : ""), line };
}

/* The last ":LINE)" of text, NULL if text does not end like that. */
static const char *find_line(const char *text, uint32_t *line)
{
	const char *colon = strrchr(text, ':');
	char *end;
	unsigned long n;

	if (!colon || colon[1] < '0' || colon[1] > '9')
		return NULL;
	n = strtoul(colon + 1, &end, 10);
	if (strcmp(end, ")") != 0 || n > UINT32_MAX)
		return NULL;
	*line = (uint32_t)n;
	return colon;
}

void place_of_call(struct place *ret, const char *text)
{
	uint32_t line = 0;
	const char *colon = find_line(text, &line), *open = strstr(text, " (");

	if (!colon || !open || open > colon) {
		place_of(ret, text, NULL, 0);
		return;
	}
	{
		CLEANUP(free) char *name = xstrndup(text, (size_t)(open - text));
		CLEANUP(free) char *file = xstrndup(open + 2, (size_t)(colon - open - 2));

		place_of(ret, name, file, line);
	}
}

void place_done(struct place *place)
{
	free(place->name);
	free(place->file);
	*place = (struct place){ 0 };
}

static const char *const gil_names[GIL_STATES] = {
	[GIL_UNKNOWN] = "unknown",
	[GIL_HOLD] = "holds the GIL",
	[GIL_WAIT] = "waits for the GIL",
	[GIL_SWITCH_WAIT] = "released on request, awaits the switch",
	[GIL_FREE_WAIT] = "takes a free GIL",
	[GIL_LOCK_WAIT] = "waits for a lock",
	[GIL_STOPPED] = "stopped by another thread",
	[GIL_STOPPING] = "stops the other threads",
	[GIL_SPINNING] = "spins for a lock",
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

/* The last release of the lock before the thread got it. */
static void find_release(const struct model *model, size_t span, uint64_t *work,
                         struct walk_wake *at)
{
	struct model_blocked_list list = { 0 };

	at->by = MODEL_NONE;
	model_blocked(model, at->thread, span, work, &list);
	for (size_t i = list.v.n; i-- > 0 && at->by == MODEL_NONE;) {
		const struct model_blocked *part = &list.v.v[i];

		if (part->kept || part->by == MODEL_UNKNOWN)
			break;
		at->by = part->by;
		at->sent_ns = part->end_ns;
	}
	vec_done(&list.v);
}

static void walk_wakes(const struct model *model, uint32_t thread, uint64_t *work,
                       const struct walk_ops *ops, void *data)
{
	const struct model_thread *t = &model->threads.v[thread];
	struct walk_wake at = { .thread = thread };

	for (size_t i = 0; i < t->gil.spans.n; i++) {
		if (t->gil.spans.v[i].state != GIL_LOCK_WAIT)
			continue;
		at.start_ns = t->gil.spans.v[i].start_ns;
		at.end_ns = lane_span_end(&t->gil, i);
		find_release(model, i, work, &at);
		ops->wake(data, &at);
	}
	at.signal = true;
	for (size_t i = 0; i < t->signals.n; i++) {
		const struct model_signal *s = &t->signals.v[i];

		at.start_ns = s->from_ns;
		at.end_ns = s->to_ns;
		at.by = s->by < MODEL_UNKNOWN ? s->by : MODEL_NONE;
		at.sent_ns = s->sent_ns;
		ops->wake(data, &at);
	}
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
	uint64_t work = model_blocked_work(a->model);

	for (uint32_t i = 0; ops->thread && i < a->model->threads.n; i++)
		ops->thread(data, i);
	for (uint32_t i = 0; ops->gil && i < a->model->gils.n; i++)
		ops->gil(data, i);
	for (uint32_t i = 0; i < a->model->threads.n; i++) {
		walk_thread(a->pass, i, ops, data);
		if (ops->wake)
			walk_wakes(a->model, i, &work, ops, data);
	}
	for (uint32_t i = 0; ops->owner && i < a->model->gils.n; i++)
		walk_gil(a->model, i, ops, data);
	for (size_t i = 0; ops->lost && i < a->model->lost.n; i++)
		ops->lost(data, &a->model->lost.v[i]);
}

/* Walks the calls and the GIL lane of a thread side by side. */

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

		if (span && (!c || span->start_ns <= c->start_ns)) {
			open_span(&s, span, lane_span_end(lane, i), !st);
			i++;
		} else if (c) {
			open_call(&s, c->start_ns, c->start_ns + c->dur_ns, calls_from() + c->name);
			call++;
		}
	}
	close_until(&s, UINT64_MAX);
	vec_done(&s.open);
}

/* Numbers the functions and lines of samples. */

enum { NO_FRAME = SAMPLED_WHATS, NO_STACK, FUNCTIONS };

static uint32_t add_frame(struct sampled_frames *f, const struct stack_frame *frame)
{
	uint32_t next = (uint32_t)f->v.n, first, at;

	idmap_add(&f->functions, idmap_pair(frame->name, frame->module), next, &first);
	if (idmap_add(&f->lines, idmap_pair(first, frame->line), next, &at))
		*vec_push(&f->v) = (struct sampled_frame){ frame->name, frame->module, frame->line,
			                                   first };
	return at;
}

void sampled_frames_init(struct sampled_frames *f, const struct samples *samples)
{
	uint32_t stacks = samples ? stacks_count(samples->stacks) : 0;

	*f = (struct sampled_frames){ .samples = samples };
	if (!samples)
		return;
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		*vec_push(&f->v) = (struct sampled_frame){ .function = i };
	f->of_stack = xcalloc(stacks, sizeof(*f->of_stack));
	for (uint32_t i = 1; i < stacks; i++)
		f->of_stack[i] = add_frame(f, stacks_get(samples->stacks, i));
}

void sampled_frames_done(struct sampled_frames *f)
{
	vec_done(&f->v);
	free(f->of_stack);
	idmap_done(&f->functions);
	idmap_done(&f->lines);
}

void sampled_frames_place(struct place *ret, const struct sampled_frames *f, uint32_t frame)
{
	if (frame < NO_FRAME)
		place_of(ret, sampled_what_name((enum sampled_what)frame), NULL, 0);
	else if (frame < FUNCTIONS)
		place_of(ret, phrase(frame == NO_STACK ? PHRASE_no_stack : PHRASE_no_python_frame),
		         NULL, 0);
	else
		place_of(ret, names_get(f->samples->names, f->v.v[frame].name),
		         names_get(f->samples->names, f->v.v[frame].file), f->v.v[frame].line);
}

uint32_t sampled_frames_chain(uint32_t ret[SAMPLED_CHAIN_MAX], const struct sampled_frames *f,
                              const struct sample_run *run)
{
	const struct stacks *stacks = f->samples->stacks;
	uint32_t depth = 0, n;

	for (uint32_t id = run->stack; id; id = stacks_get(stacks, id)->parent)
		depth++;
	n = depth > PYSTACK_DEPTH_MAX ? PYSTACK_DEPTH_MAX : depth;
	for (uint32_t id = run->stack; id; id = stacks_get(stacks, id)->parent)
		if (--depth < n)
			ret[depth] = f->of_stack[id];
	if (!n)
		ret[n++] = run->flags & SAMPLE_TORN ? NO_STACK : NO_FRAME;
	ret[n++] = sampled_what_of(run);
	return n;
}

char *sampled_frames_thread(const struct recording_pass *pass, const struct sample_thread *thread)
{
	uint32_t of = sampled_model_thread(pass, thread);

	return place_text(of == MODEL_NONE ? names_get(pass->samples->names, thread->name)
	                                   : facts_thread_name(pass, of));
}

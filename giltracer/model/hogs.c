/* SPDX-License-Identifier: MIT */
/* Holds by the function in which they ended, with what they made others wait. */
#include "model/hogs.h"

#include <stdlib.h>

#include "model/internal.h"
#include "model/late.h"
#include "trace/native.h"
#include "trace/source.h"
#include "trace/stacks.h"

/**
 * A row as it is made.
 * @heaviest_ns: the wait that chose its frame
 * @next: row of the same thread, or MODEL_NONE
 */
struct row {
	struct hog hog;
	uint64_t heaviest_ns;
	uint32_t next;
};

struct search {
	const struct model *model;
	const struct stacks *frames;
	uint64_t interval_ns;
	VEC(struct row) rows;
	VEC(struct hogs_sample) samples;
	struct hogs *ret;
};

/**
 * A thread on the way through its holds, which come in the order of time.
 * @first, @last: its rows, and the row of the hold before; MODEL_NONE: none yet
 * @owner: near where the hold before is among the owners of gil
 */
struct walker {
	uint32_t thread, gil;
	uint32_t first, last;
	size_t owner;
};

/* A hold, how long others waited during it, and when it has to have ended. */
struct hold {
	uint64_t start_ns, end_ns, wait_ns, due_ns;
	uint32_t frame;
	size_t span;
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

static struct row *find_row(struct search *s, struct walker *w, uint32_t frame)
{
	uint32_t row = w->last;

	if (row == MODEL_NONE || !hogs_same_function(s->frames, s->rows.v[row].hog.frame, frame))
		for (row = w->first; row != MODEL_NONE; row = s->rows.v[row].next)
			if (hogs_same_function(s->frames, s->rows.v[row].hog.frame, frame))
				break;
	if (row == MODEL_NONE) {
		row = (uint32_t)s->rows.n;
		*vec_push(&s->rows) = (struct row){
			.hog = { .thread = w->thread, .frame = frame, .row = row }, .next = w->first
		};
		w->first = row;
	}
	w->last = row;
	return &s->rows.v[row];
}

/* The first sample that is not before time_ns. */
static size_t sample_at(const struct model *m, uint64_t time_ns)
{
	size_t low = 0, high = m->samples.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->samples.v[mid].time_ns < time_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void add_samples(struct search *s, struct hog *hog, const struct hold *h)
{
	const struct model *m = s->model;

	for (size_t i = sample_at(m, h->start_ns);
	     i < m->samples.n && m->samples.v[i].time_ns < h->end_ns; i++) {
		if (m->samples.v[i].thread != hog->thread)
			continue;
		if (hog->samples == HOGS_SAMPLES_MAX)
			break;
		hog->samples++;
		*vec_push(&s->samples) = (struct hogs_sample){ m->samples.v[i].record, hog->row };
	}
}

static void longest(uint64_t *longest_ns, uint64_t *at_ns, const struct hold *h)
{
	if (h->end_ns - h->start_ns <= *longest_ns)
		return;
	*longest_ns = h->end_ns - h->start_ns;
	*at_ns = h->start_ns;
}

static void add_hold(struct search *s, struct walker *w, const struct hold *h)
{
	struct row *row = find_row(s, w, h->frame);
	struct hog *hog = &row->hog;
	struct late_hold late = { w->thread, w->gil, h->start_ns, h->end_ns, h->due_ns };
	uint64_t line_ns, asleep_ns;

	hog->holds++;
	hog->hold_ns += h->end_ns - h->start_ns;
	hog->wait_ns += h->wait_ns;
	longest(&hog->longest_ns, &hog->longest_at_ns, h);
	if (h->wait_ns > row->heaviest_ns) {
		row->heaviest_ns = h->wait_ns;
		hog->frame = h->frame;
	}
	if (!late_is(s->model, &late, s->interval_ns, HOGS_SLACK_NS))
		return;
	*vec_push(&s->ret->late) = (struct hog_late){ w->thread, h->frame, h->span };
	hog->late_holds++;
	hog->late_ns += h->end_ns - h->start_ns;
	hog->late_wait_ns += h->wait_ns;
	longest(&hog->late_longest_ns, &hog->late_longest_at_ns, h);
	late_off_cpu(&s->model->threads.v[w->thread], h->start_ns, h->end_ns, &line_ns, &asleep_ns);
	hog->off_cpu_ns += line_ns + asleep_ns;
	hog->asleep_ns += asleep_ns;
	add_samples(s, hog, h);
}

/* Sum up the waiting during a hold, stretch by stretch of its GIL. */
static void measure(const struct search *s, struct walker *w, const struct span *span,
                    struct hold *h)
{
	uint32_t gil = span->ref;
	const struct model_gil *g = &s->model->gils.v[gil];

	if (gil != w->gil)
		w->owner = 0;
	w->gil = gil;
	w->owner = owners_of(g, w->owner, span);
	for (size_t i = w->owner; i < g->owners.n && g->owners.v[i].start_ns < h->end_ns; i++) {
		const struct gil_owner *o = &g->owners.v[i];
		uint64_t from = o->start_ns > h->start_ns ? o->start_ns : h->start_ns;
		uint64_t to = i + 1 < g->owners.n ? o[1].start_ns : g->end_ns;
		uint64_t asked_ns;

		if (!o->waiters)
			continue;
		h->wait_ns += ((to < h->end_ns ? to : h->end_ns) - from) * o->waiters;
		asked_ns = from + s->interval_ns * (from == h->start_ns ? 2 : 1);
		if (asked_ns < h->due_ns)
			h->due_ns = asked_ns;
	}
}

static void walk_thread(struct search *s, uint32_t thread)
{
	const struct lane *lane = &s->model->threads.v[thread].gil;
	struct walker w = { thread, MODEL_NONE, MODEL_NONE, MODEL_NONE, 0 };

	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *span = &lane->spans.v[i];
		struct hold h = { span->start_ns, lane_span_end(lane, i),      0,
			          UINT64_MAX,     s->frames ? span->stack : 0, i };

		if (span->state != GIL_HOLD)
			continue;
		measure(s, &w, span, &h);
		add_hold(s, &w, &h);
	}
}

static int compare_hogs(const void *a, const void *b)
{
	const struct hog *x = a, *y = b;

	if (x->late_wait_ns != y->late_wait_ns)
		return x->late_wait_ns < y->late_wait_ns ? 1 : -1;
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
	for (uint32_t i = 0; i < model->threads.n; i++)
		walk_thread(&s, i);
	for (size_t i = 0; i < s.rows.n; i++)
		*vec_push(&ret->v) = s.rows.v[i].hog;
	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), compare_hogs);
	for (size_t i = 0; i < s.samples.n; i++)
		*vec_push(&ret->samples) = s.samples.v[i];
	vec_done(&s.samples);
	vec_done(&s.rows);
}

void hogs_done(struct hogs *hogs)
{
	vec_done(&hogs->v);
	vec_done(&hogs->late);
	vec_done(&hogs->samples);
}

/* How many samples of a row found a function at work. */
struct finding {
	uint32_t row, native, n;
};

struct findings {
	VEC(struct finding) v;
};

static void add_finding(struct findings *f, const struct stacks *stacks, uint32_t row,
                        uint32_t native)
{
	const struct stack_frame *frame = stacks_get(stacks, native);

	for (size_t i = 0; i < f->v.n; i++) {
		const struct stack_frame *other = stacks_get(stacks, f->v.v[i].native);

		if (f->v.v[i].row == row && other->name == frame->name &&
		    other->module == frame->module) {
			f->v.v[i].n++;
			return;
		}
	}
	*vec_push(&f->v) = (struct finding){ row, native, 1 };
}

void hogs_find_native(struct hogs *hogs, struct source *source)
{
	struct findings f = { 0 };

	for (size_t i = 0; i < hogs->samples.n; i++) {
		const struct hogs_sample *s = &hogs->samples.v[i];
		uint32_t native = native_callee(source->stacks, source_stack_at(source, s->record));

		if (native)
			add_finding(&f, source->stacks, s->row, native);
	}
	for (size_t i = 0; i < f.v.n; i++)
		for (size_t j = 0; j < hogs->v.n; j++) {
			struct hog *hog = &hogs->v.v[j];

			if (hog->row != f.v.v[i].row || f.v.v[i].n <= hog->native_samples)
				continue;
			hog->native = f.v.v[i].native;
			hog->native_samples = f.v.v[i].n;
		}
	for (size_t j = 0; j < hogs->v.n; j++)
		if (100 * hogs->v.v[j].native_samples < HOGS_NATIVE_PERCENT * hogs->v.v[j].samples)
			hogs->v.v[j].native = 0;
	vec_done(&f.v);
}

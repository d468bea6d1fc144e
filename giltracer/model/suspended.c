/* SPDX-License-Identifier: MIT */
/*
 * A process that is stopped neither holds its GIL nor waits for it in any way that matters: all its
 * lanes become unknown for that time. A hold or wait that it interrupted is a part before and one
 * after it.
 */
#include "model/suspended.h"

#include "model/private.h"

struct suspensions {
	VEC(struct model_suspension) v;
};

typedef VEC(uint64_t) times;

/* Adds the times of the lane's changes within (from_ns, to_ns). */
static void add_changes(times *ret, const struct lane *lane, uint64_t from_ns, uint64_t to_ns)
{
	size_t i = SEARCH(lane->spans.n, at, lane->spans.v[at].start_ns <= from_ns);

	for (; i < lane->spans.n && lane->spans.v[i].start_ns < to_ns; i++)
		*vec_push(ret) = lane->spans.v[i].start_ns;
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* A thread whose GIL state changes is not stopped: the process was not stopped yet, or had been
 * continued, which is reported late. What is left is the longest time without such a change. */
static void shorten(struct model_suspension *s, const struct model *m)
{
	const struct model_suspension whole = *s;
	uint64_t at = whole.from_ns;
	times changes = { 0 };

	for (size_t t = 0; t < m->threads.n; t++)
		if (m->threads.v[t].pid == m->priv->options.start_pid)
			add_changes(&changes, &m->threads.v[t].gil, whole.from_ns, whole.to_ns);
	*vec_push(&changes) = whole.to_ns;
	vec_sort(&changes, compare_times);
	s->to_ns = s->from_ns;
	for (size_t i = 0; i < changes.n; i++) {
		if (changes.v[i] - at > s->to_ns - s->from_ns)
			*s = (struct model_suspension){ at, changes.v[i] };
		at = changes.v[i];
	}
	vec_done(&changes);
}

static void find(struct suspensions *ret, const struct model *m)
{
	const struct model_options *o = &m->priv->options;
	uint64_t after_ns = m->start_ns;

	for (size_t i = 0; i < o->suspended_count; i++) {
		struct model_suspension s = o->suspended[i];

		s.from_ns = later(s.from_ns, after_ns);
		s.to_ns = s.to_ns < m->end_ns ? s.to_ns : m->end_ns;
		if (s.from_ns >= s.to_ns)
			continue;
		shorten(&s, m);
		*vec_push(&ret->v) = s;
		after_ns = s.to_ns;
	}
}

static void push(struct lane *lane, struct span span, uint64_t start_ns, unsigned flags)
{
	span.start_ns = start_ns;
	span.flags |= (uint8_t)flags;
	*vec_push(&lane->spans) = span;
}

/* Replaces the parts of the lane that are in a suspension by unknown. Returns their length. */
static uint64_t cut(struct lane *lane, const struct suspensions *list, struct span unknown,
                    bool gil)
{
	struct lane new = { .end_ns = lane->end_ns };
	uint64_t cut_ns = 0;
	size_t k = 0;

	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *s = &lane->spans.v[i];
		uint64_t at = s->start_ns, end_ns = lane_span_end(lane, i);
		bool counted = gil && (s->state == GIL_HOLD || s->state == GIL_WAIT);
		unsigned flags = 0;

		while (k < list->v.n && list->v.v[k].to_ns <= at)
			k++;
		if (at == end_ns)
			push(&new, *s, at, 0);
		while (at < end_ns) {
			const struct model_suspension *p = k < list->v.n ? &list->v.v[k] : NULL;

			if (!p || p->from_ns >= end_ns) {
				push(&new, *s, at, flags);
				break;
			}
			if (at < p->from_ns)
				push(&new, *s, at, flags | (counted ? SPAN_OPEN_END : 0));
			at = later(at, p->from_ns);
			if (!new.spans.n || !(lane_last(&new)->flags & SPAN_STOPPED) ||
			    lane_last(&new)->state != unknown.state)
				push(&new, unknown, at, 0);
			cut_ns += (p->to_ns < end_ns ? p->to_ns : end_ns) - at;
			at = p->to_ns;
			flags = counted ? SPAN_INFERRED_START : 0;
			if (p->to_ns <= end_ns)
				k++;
		}
	}
	vec_done(&lane->spans);
	*lane = new;
	return cut_ns;
}

void suspended_finish(struct model *m)
{
	struct suspensions list = { 0 };

	find(&list, m);
	for (size_t i = 0; i < list.v.n; i++)
		m->suspended_ns += list.v.v[i].to_ns - list.v.v[i].from_ns;
	for (size_t i = 0; list.v.n && i < m->threads.n; i++) {
		struct model_thread *t = &m->threads.v[i];

		if (t->pid != m->priv->options.start_pid)
			continue;
		t->suspended_ns = cut(&t->gil, &list,
		                      gil_span(0, GIL_UNKNOWN, MODEL_NONE, SPAN_STOPPED), true);
		cut(&t->cpu, &list, cpu_span(0, CPU_UNKNOWN, MODEL_NONE, SPAN_STOPPED), false);
	}
	for (size_t i = 0; list.v.n && i < m->gils.n; i++)
		m->priv->gils.v[i].dirty |= m->gils.v[i].pid == m->priv->options.start_pid;
	vec_done(&list.v);
}

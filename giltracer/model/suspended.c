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

/* The first change of the thread's GIL state after time_ns, or until_ns. */
static uint64_t next_change(const struct lane *lane, uint64_t time_ns, uint64_t until_ns)
{
	size_t at = SEARCH(lane->spans.n, i, lane->spans.v[i].start_ns <= time_ns);

	return at < lane->spans.n && lane->spans.v[at].start_ns < until_ns
	               ? lane->spans.v[at].start_ns
	               : until_ns;
}

/* The suspensions, without time in which a thread of the process changed its state: it had been
 * continued then, which is reported late. */
static void find(struct suspensions *ret, const struct model *m)
{
	const struct model_options *o = &m->priv->options;
	uint64_t after_ns = m->start_ns;

	for (size_t i = 0; i < o->suspended_count; i++) {
		struct model_suspension s = o->suspended[i];

		s.from_ns = later(s.from_ns, after_ns);
		s.to_ns = s.to_ns < m->end_ns ? s.to_ns : m->end_ns;
		for (size_t t = 0; t < m->threads.n; t++)
			if (m->threads.v[t].pid == o->start_pid)
				s.to_ns = next_change(&m->threads.v[t].gil, s.from_ns, s.to_ns);
		if (s.from_ns >= s.to_ns)
			continue;
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

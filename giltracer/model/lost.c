/* SPDX-License-Identifier: MIT */
/*
 * Lost records. The ring buffer of a CPU was full for a while, so the state of every thread that
 * may have been on that CPU is unknown during that time. The state after the loss becomes known
 * when the thread does something that only one state allows: it has been in that state since the
 * loss. A thread that is asleep without the GIL before and after several losses is assumed to have
 * been so between them, but not during them.
 *
 * A loss is reported only once the buffer has room again. Until then, events that contradict each
 * other are collected (struct anomaly); the loss explains those within it.
 *
 * A thread whose birth was not recorded has existed since before the recording, unless its birth
 * may be among the missing records: then its life begins with the first loss in which it may have
 * been born, and is unknown until its first event or the end of the losses. GIL events, and those
 * of the whole machine, contain no births.
 *
 * A loss in the recording of the whole machine only hides which thread had the CPU: a sleep whose
 * wake-up is missing is marked anyway.
 */
#include "model/lost.h"

#include "model/cpu.h"
#include "model/gil.h"
#include "model/private.h"
#include "model/runqueue_wait.h"

/*
 * The start of the part of [since_ns, t) in which the thread may have been on a CPU (-1: any); t if
 * it was on other CPUs throughout. A thread that was off CPU may have been on the lost one in
 * between.
 */
static uint64_t lost_from(const struct lane *cpu, int32_t lost, uint64_t since_ns, uint64_t t)
{
	uint64_t from = t;

	for (size_t i = cpu->spans.n; i-- > 0;) {
		const struct span *s = &cpu->spans.v[i];
		bool elsewhere = s->state == CPU_RUNNING && s->cpu.number >= 0 && lost >= 0 &&
		                 s->cpu.number != lost;

		if (!elsewhere)
			from = later(s->start_ns, since_ns);
		if (s->start_ns <= since_ns)
			break;
	}
	return from < t ? from : t;
}

/* The lane's state before the loss that made it unknown; unknown if there was no such state. */
static unsigned before_loss(const struct lane *lane)
{
	size_t n = lane->spans.n;

	return n > 1 && lane->spans.v[n - 1].flags & SPAN_LOST ? lane->spans.v[n - 2].state : 0;
}

/* The thread had no event between the previous loss and this one: if it was without the GIL or off
 * its CPU before, it is assumed to have remained so in between. */
static void assume_quiet(struct model *m, uint32_t thread, unsigned flags, uint64_t until_ns)
{
	struct model_thread *mt = &m->threads.v[thread];
	unsigned gil = before_loss(&mt->gil), cpu = before_loss(&mt->cpu);
	const struct thread_state *ts = &m->priv->threads.v[thread];
	uint64_t lost_ns = ts->lost_ns, cpu_lost_ns = ts->cpu_lost_ns;

	if (gil == GIL_NO && lost_ns < until_ns && m->priv->options.all_releases &&
	    !(flags & EVF_NO_GIL)) {
		struct span quiet = gil_span(lost_ns, gil, MODEL_NONE, SPAN_INFERRED_START);

		lane_push(&mt->gil, &quiet, true);
	}
	if (cpu >= CPU_SLEEPING && cpu_lost_ns < until_ns && !(flags & EVF_GIL_ONLY)) {
		struct span quiet = cpu_span(cpu_lost_ns, cpu, MODEL_NONE, SPAN_INFERRED_START);

		lane_push(&mt->cpu, &quiet, false);
	}
}

void lost_doubt(struct lane *lane)
{
	struct span *v = lane->spans.v;
	size_t n = lane->spans.n;

	while (n > 2 && v[n - 2].flags & SPAN_INFERRED_START && v[n - 3].flags & SPAN_LOST)
		n -= 2;
	lane->spans.n = n;
}

static void lose_thread(struct model *m, uint32_t thread, const struct pending_loss *loss)
{
	const struct model_thread *mt = &m->threads.v[thread];
	bool alive = m->priv->threads.v[thread].flags & THREAD_ALIVE;
	uint64_t t = loss->end_ns, from = later(loss->since_ns, mt->start_ns);

	from = lost_from(&mt->cpu, loss->cpu, from, alive || t < mt->end_ns ? t : mt->end_ns);
	if (from >= (alive ? t : mt->end_ns))
		return;
	assume_quiet(m, thread, loss->flags, from);
	if (!(loss->flags & EVF_NO_GIL))
		gil_lost(m, thread, from, t);
	if (!(loss->flags & EVF_GIL_ONLY))
		cpu_lost(m, thread, from, t);
}

/* Whether the thread may have been born in the loss. The losses that hide no births do not count,
 * even if they were merged with this one. */
static bool may_be_born_in(const struct model *m, uint32_t thread, const struct pending_loss *loss)
{
	const struct thread_state *ts = &m->priv->threads.v[thread];
	const struct pending_loss *births = &m->priv->births;

	return !(loss->flags & EVF_GIL_ONLY) && ts->born_after_ns < loss->end_ns &&
	       ts->born_after_ns < births->end_ns && ts->seen_ns > loss->since_ns &&
	       ts->seen_ns > births->since_ns;
}

/*
 * The thread may have been born in the loss, so its life begins with the first loss in which it may
 * have been born, and is unknown until the end of this one. Only if no GIL events are lost, those
 * after its birth are known.
 */
static void lose_birth(struct model *m, uint32_t thread, const struct pending_loss *loss)
{
	struct model_thread *mt = &m->threads.v[thread];
	struct thread_state *ts = &m->priv->threads.v[thread];
	uint64_t from = later(ts->born_after_ns, m->priv->births.since_ns);
	bool known = loss->flags & EVF_NO_GIL &&
	             (mt->gil.spans.n == 1 || mt->gil.spans.v[1].start_ns > from);

	if (!known)
		gil_lost(m, thread, mt->start_ns, loss->end_ns);
	else if (mt->gil.spans.v[0].state == GIL_NO)
		mt->gil.spans.v[0].state = GIL_UNKNOWN;
	cpu_lost(m, thread, mt->start_ns, loss->end_ns);
	ts->lost_ns = later(ts->lost_ns, loss->end_ns);
	mt->gil.spans.v[0].start_ns = mt->cpu.spans.v[0].start_ns = mt->start_ns = from;
}

void lost_birth(struct model *m, uint32_t thread)
{
	if (may_be_born_in(m, thread, &m->priv->births))
		lose_birth(m, thread, &m->priv->births);
}

/* Everything that may have happened during a loss is unknown. */
static void lose(struct model *m, const struct pending_loss *loss)
{
	if (!(loss->flags & EVF_GIL_ONLY))
		runqueue_wait_lost(m, loss->cpu, loss->since_ns);
	if (loss->flags & EVF_WAKEUPS)
		return;
	for (uint32_t i = 0; i < m->threads.n; i++) {
		if (may_be_born_in(m, i, loss))
			lose_birth(m, i, loss);
		else
			lose_thread(m, i, loss);
	}
	while (m->priv->anomalies.n &&
	       m->priv->anomalies.v[m->priv->anomalies.n - 1].time_ns > loss->since_ns)
		m->priv->anomalies.n--;
}

/* Merges two losses into one, from the start of the first to the end of the last. */
static void join(struct pending_loss *to, const struct pending_loss *loss)
{
	if (loss->since_ns < to->since_ns)
		to->since_ns = loss->since_ns;
	to->end_ns = later(to->end_ns, loss->end_ns);
	to->flags &= loss->flags;
	if (to->cpu != loss->cpu)
		to->cpu = -1;
}

/* The records of births may be among those that are missing. */
static void lose_births(struct model *m, const struct pending_loss *loss)
{
	if (m->priv->births.end_ns)
		join(&m->priv->births, loss);
	else
		m->priv->births = *loss;
}

void lost_records(struct model *m, const struct event *ev, uint64_t t)
{
	struct model_private *p = m->priv;
	uint64_t since_ns = later(ev->lost.since_ns < t ? ev->lost.since_ns : t, m->start_ns);
	uint64_t work = m->threads.n + p->cpus.n;
	struct pending_loss loss = {
		.since_ns = since_ns,
		.end_ns = t,
		.cpu = ev->cpu,
		/* Wake-ups contain nothing about the GIL. */
		.flags = ev->flags & EVF_WAKEUPS ? ev->flags | EVF_NO_GIL : ev->flags,
	};

	if (!(loss.flags & (EVF_WAKEUPS | EVF_GIL_ONLY)))
		lose_births(m, &loss);
	*vec_push(&m->lost) = (struct model_lost){ since_ns, t, ev->lost.count, ev->cpu };
	m->caveats[ev->flags & EVF_UNWRITTEN ? CAVEAT_UNWRITTEN : CAVEAT_LOST] += ev->lost.count;
	if (p->has_loss) {
		join(&p->loss, &loss);
		m->caveats[CAVEAT_COARSE]++;
	} else {
		p->loss = loss;
	}
	p->has_loss = p->loss_work + work > MODEL_LOSS_WORK + p->events * MODEL_LOSS_WORK_PER_EVENT;
	if (p->has_loss)
		return;
	p->loss_work += work;
	lose(m, &p->loss);
}

void lost_end(struct model *m)
{
	if (m->priv->has_loss)
		lose(m, &m->priv->loss);
	m->priv->has_loss = false;
}

void lost_or_anomaly(struct model *m, enum caveat_code code, uint64_t t)
{
	*vec_push(&m->priv->anomalies) = (struct anomaly){ t, code };
}

void lost_finish(struct model *m)
{
	for (size_t i = 0; i < m->priv->anomalies.n; i++)
		m->caveats[m->priv->anomalies.v[i].code]++;
}

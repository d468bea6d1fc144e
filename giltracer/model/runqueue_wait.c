/* SPDX-License-Identifier: MIT */
/*
 * Runqueue wait: which thread or program had the CPU that a thread waited for. A runnable thread
 * waits in the run queue of one CPU. That CPU is known from the CPU on which the thread finally
 * runs, and going back from there by the recorded moves; the wait is charged to the owner of that
 * CPU at the time.
 */
#include "model/runqueue_wait.h"

#include "base/vec.h"
#include "model/private.h"

#define MAX_CPUS 8192

/* Keys of one thread's rows: a thread index, or a name with the top bit set. */
#define PROGRAM 0x80000000u

struct tally {
	struct idmap rows; /* -> index in m->cpu_blame */
	struct model *model;
	uint32_t thread;
};

static struct cpu_tracker *tracker_of(struct model *m, int32_t cpu)
{
	while ((size_t)cpu >= m->priv->cpus.n)
		*vec_push(&m->priv->cpus) = (struct cpu_tracker){ 0 };
	return &m->priv->cpus.v[cpu];
}

void runqueue_wait_pick(struct model *m, const struct event *ev, uint32_t next, uint64_t t)
{
	if (ev->cpu < 0 || ev->cpu >= MAX_CPUS)
		return;
	*vec_push(&tracker_of(m, ev->cpu)->owners) = (struct cpu_owner){ t, next,
		                                                         ev->sched.next_name };
}

void runqueue_wait_in(struct model *m, uint32_t thread, uint64_t t, int32_t cpu)
{
	struct cpu_tracker *tracker;

	if (cpu < 0 || (size_t)cpu >= m->priv->cpus.n)
		return;
	tracker = &m->priv->cpus.v[cpu];
	if (!tracker->owners.n || tracker->owners.v[tracker->owners.n - 1].by != thread)
		*vec_push(&tracker->owners) = (struct cpu_owner){ t, thread, 0 };
}

void runqueue_wait_move(struct model *m, uint32_t thread, uint64_t t, const struct event *ev)
{
	*vec_push(&m->priv->threads.v[thread].moves) = (struct cpu_move){ t, ev->move.from,
		                                                          ev->move.to };
}

/* A thread that got a CPU during the loss may have lost it again. */
static void forget(struct cpu_tracker *tracker, uint64_t since_ns)
{
	while (tracker->owners.n && tracker->owners.v[tracker->owners.n - 1].start_ns >= since_ns)
		tracker->owners.n--;
	if (!tracker->owners.n || tracker->owners.v[tracker->owners.n - 1].by != MODEL_UNKNOWN)
		*vec_push(&tracker->owners) = (struct cpu_owner){ since_ns, MODEL_UNKNOWN, 0 };
}

void runqueue_wait_lost(struct model *m, int32_t cpu, uint64_t since_ns)
{
	for (size_t i = 0; i < m->priv->cpus.n; i++)
		if (cpu < 0 || i == (size_t)cpu)
			forget(&m->priv->cpus.v[i], since_ns);
}

static void charge(void *data, const struct model_queued *part)
{
	struct tally *tally = data;
	struct model *m = tally->model;
	uint32_t key = part->by == MODEL_NONE ? PROGRAM | part->name : part->by;
	uint32_t row;

	if (idmap_add(&tally->rows, key, (uint32_t)m->cpu_blame.n, &row))
		*vec_push(&m->cpu_blame) = (struct model_cpu_blame){ tally->thread, part->by,
			                                             part->name, 0 };
	m->cpu_blame.v[row].runnable_ns += part->to_ns - part->from_ns;
}

/* Index of the last owner that starts no later than time_ns; tracker->owners.n if there is none. */
static size_t owner_at(const struct cpu_tracker *tracker, uint64_t time_ns)
{
	size_t after = SEARCH(tracker->owners.n, k, tracker->owners.v[k].start_ns <= time_ns);

	return after ? after - 1 : tracker->owners.n;
}

/* A wait in run queues that is being divided. */
struct division {
	const struct model *model;
	uint32_t thread;
	void (*part)(void *data, const struct model_queued *part);
	void *data;
};

static void add_part(const struct division *d, struct model_queued part)
{
	/* If the thread itself seems to have had the CPU, some record is missing, so the owner is
	 * unknown. */
	if (part.by == d->thread)
		part.by = MODEL_UNKNOWN;
	if (part.to_ns > part.from_ns)
		d->part(d->data, &part);
}

/* Divides a wait in the run queue of one CPU among the CPU's owners. */
static void divide(const struct division *d, int32_t cpu, uint64_t from, uint64_t to)
{
	const struct model_private *p = d->model->priv;
	const struct cpu_tracker *tracker = cpu >= 0 && (size_t)cpu < p->cpus.n ? &p->cpus.v[cpu]
	                                                                        : NULL;
	size_t i = tracker ? owner_at(tracker, from) : 0;

	if (!tracker || i == tracker->owners.n) {
		add_part(d, (struct model_queued){ from, to, cpu, MODEL_UNKNOWN, 0 });
		return;
	}
	while (from < to) {
		const struct cpu_owner *owner = &tracker->owners.v[i++];
		uint64_t end = i < tracker->owners.n ? tracker->owners.v[i].start_ns : to;

		if (end > to)
			end = to;
		add_part(d, (struct model_queued){ from, end, cpu, owner->by, owner->name });
		from = end;
	}
}

void model_queued_parts(const struct model *m, uint32_t thread, size_t index,
                        void (*part)(void *data, const struct model_queued *part), void *data)
{
	const struct lane *lane = &m->threads.v[thread].cpu;
	const struct thread_state *ts = &m->priv->threads.v[thread];
	struct division d = { m, thread, part, data };
	uint64_t from = lane->spans.v[index].start_ns, end = lane_span_end(lane, index);
	int32_t cpu = index + 1 < lane->spans.n ? lane->spans.v[index + 1].cpu.number : -1;

	for (size_t i = SEARCH(ts->moves.n, k, ts->moves.v[k].time_ns <= from); i < ts->moves.n;
	     i++) {
		if (ts->moves.v[i].time_ns >= end)
			break;
		divide(&d, ts->moves.v[i].from, from, ts->moves.v[i].time_ns);
		from = ts->moves.v[i].time_ns;
		if (cpu < 0 && index + 1 == lane->spans.n)
			cpu = ts->moves.v[i].to;
	}
	divide(&d, cpu, from, end);
}

/* Since when the CPU has been busy without interruption at time_ns, but not before from; time_ns if
 * it is idle then. */
static uint64_t busy_since(const struct cpu_tracker *tracker, uint64_t time_ns, uint64_t from)
{
	size_t i = time_ns ? owner_at(tracker, time_ns - 1) : tracker->owners.n;

	if (i == tracker->owners.n)
		return from;
	while (tracker->owners.v[i].by != MODEL_NONE || tracker->owners.v[i].name) {
		time_ns = tracker->owners.v[i].start_ns;
		if (time_ns <= from || !i)
			return from;
		i--;
	}
	return time_ns;
}

/* A sleep whose end was not reported. The thread became runnable no earlier than when its CPU was
 * last idle, because otherwise it would have got that CPU. */
static uint64_t unseen_runnable(const struct model *m, const struct lane *lane, size_t i)
{
	uint64_t from = lane->spans.v[i].start_ns, end = lane_span_end(lane, i);
	int32_t cpu = i + 1 < lane->spans.n ? lane->spans.v[i + 1].cpu.number : -1;

	if (cpu < 0 || (size_t)cpu >= m->priv->cpus.n)
		return end - from;
	return end - busy_since(&m->priv->cpus.v[cpu], end, from);
}

static void tally_thread(struct model *m, struct tally *tally)
{
	struct model_thread *mt = &m->threads.v[tally->thread];

	for (size_t i = 0; i < mt->cpu.spans.n; i++) {
		if (mt->cpu.spans.v[i].state == CPU_RUNNABLE)
			model_queued_parts(m, tally->thread, i, charge, tally);
		else if (mt->cpu.spans.v[i].flags & SPAN_INFERRED_END)
			mt->unseen_runnable_ns += unseen_runnable(m, &mt->cpu, i);
	}
}

void runqueue_wait_finish(struct model *m)
{
	if (!m->priv->cpus.n)
		return;
	for (uint32_t i = 0; i < m->threads.n; i++) {
		struct tally tally = { .model = m, .thread = i };

		tally_thread(m, &tally);
		idmap_done(&tally.rows);
	}
}

void runqueue_wait_done(struct model *m)
{
	for (size_t i = 0; i < m->priv->cpus.n; i++)
		vec_done(&m->priv->cpus.v[i].owners);
	vec_done(&m->priv->cpus);
	for (size_t i = 0; i < m->priv->threads.n; i++)
		vec_done(&m->priv->threads.v[i].moves);
}

/* SPDX-License-Identifier: MIT */
/*
 * CPU lanes. PERF_RECORD_SWITCH says when a thread is on a CPU; sched_waking, since when it has
 * been runnable; sched_switch, which precedes the PERF_RECORD_SWITCH of the same switch, why it
 * left.
 *
 * Where it is recorded that the scheduler picked a thread, the thread has the CPU from then on, as
 * in the kernel's own accounting: the time of the switch, including perf's part in it, is charged
 * to the next thread, which is no longer runnable. SWITCH records are written after the switch, 5
 * to 40 µs later.
 *
 * A recording of tasks contains sched_waking only if the waker is a recorded thread: a wake-up by a
 * timer or by another program is missing, so the sleep seems to last until the thread runs. Such
 * sleeps are marked. A recording of the whole machine contains all wake-ups except those that the
 * kernel does not pass on: with one Linux 6.18, perf gets no tracepoint at all from some tasks and
 * from the interrupts during them, among them the idle task of one CPU. Of 106 wake-ups there perf
 * had none, of 37,600 others all. This is so for sched, irq, timer, power and syscalls, so another
 * event would not help; ftrace has the events in interrupts, but not those of the tasks themselves;
 * nothing is counted as lost. The time that this can hide is bounded, see unseen_runnable() in
 * runqueue_wait.c.
 *
 * The kernel's accounting differs if a sleeping thread is moved to another CPU before its sleep is
 * complete (delayed dequeue, Linux 6.12): schedstat counts it as runnable from the move on, we from
 * its wake-up on. And the kernel does not count time that a hypervisor took from a time slice as
 * running.
 */
#include "model/cpu.h"

#include "model/lost.h"
#include "model/private.h"

#include "trace/stacks.h"

/* A sched_switch that follows a switch-out by more than this belongs to another switch. */
#define SAME_SWITCH_NS 100000

/* A thread may be woken between its decision to sleep and its sched_switch, which then reports a
 * sleep although the thread is runnable. Measured: 0.4 µs before sched_switch. */
#define EARLY_WAKE_NS 10000

/* The meaningful bits of prev_state; above them is "preempted" (0x100, in older kernels 0x800…). */
#define STATE_MASK 0xff

static struct span *last(struct model *m, uint32_t thread)
{
	return lane_last(&m->threads.v[thread].cpu);
}

static void set(struct model *m, uint32_t thread, uint64_t t, enum cpu_state state, uint32_t waker,
                uint32_t stack)
{
	struct span span = cpu_span(t, state, waker, 0);

	span.cpu.stack = stack;
	lane_push(&m->threads.v[thread].cpu, &span, false);
}

static void set_running(struct model *m, uint32_t thread, uint64_t t)
{
	int32_t cpu = m->priv->threads.v[thread].last_cpu;
	struct span span = cpu_span(t, CPU_RUNNING, MODEL_NONE, 0);

	span.cpu.number = (int16_t)(cpu > INT16_MAX ? -1 : cpu);
	lane_push(&m->threads.v[thread].cpu, &span, false);
}

/* Whether no event of the thread's CPU lane has been seen or lost yet. */
static bool untouched(struct model *m, uint32_t thread)
{
	const struct lane *lane = &m->threads.v[thread].cpu;

	return lane->spans.n == 1 && lane->spans.v[0].state == CPU_UNKNOWN &&
	       !(lane->spans.v[0].flags & SPAN_LOST);
}

static enum cpu_state asleep(struct model *m, uint32_t thread, uint32_t stack)
{
	bool waits = lane_last(&m->threads.v[thread].gil)->state == GIL_WAIT;

	if (stack && m->priv->options.stacks)
		waits = stacks_any(m->priv->options.stacks, stack, STACK_TAKE_GIL);
	return waits ? CPU_GIL_SLEEP : CPU_SLEEPING;
}

/* Kept out of prove(), which is inlined because it is called for each event. */
__attribute__((noinline)) static void prove_lost(struct model *m, uint32_t thread,
                                                 enum cpu_state state)
{
	uint64_t lost_ns = m->priv->threads.v[thread].cpu_lost_ns;

	if (state == CPU_RUNNING) {
		lost_doubt(&m->threads.v[thread].cpu);
		set_running(m, thread, lost_ns);
	} else {
		set(m, thread, lost_ns, state, MODEL_NONE, 0);
	}
	last(m, thread)->flags |= SPAN_INFERRED_START;
}

/* If no event of the thread is missing since the last loss, it has been in that state since
 * then. */
static inline void prove(struct model *m, uint32_t thread, uint64_t t, enum cpu_state state)
{
	if (last(m, thread)->flags & SPAN_LOST && m->priv->threads.v[thread].cpu_lost_ns < t)
		prove_lost(m, thread, state);
}

/* The thread has been off its CPU since the loss; if it was off CPU before the loss, the reason is
 * the same. */
static void prove_off(struct model *m, uint32_t thread, uint64_t t, enum cpu_state state)
{
	const struct lane *lane = &m->threads.v[thread].cpu;
	size_t n = lane->spans.n;
	unsigned before = n > 1 ? lane->spans.v[n - 2].state : CPU_UNKNOWN;

	if (before >= CPU_SLEEPING)
		state = (enum cpu_state)before;
	if (state != CPU_UNKNOWN)
		prove(m, thread, t, state);
}

/* An event of the thread itself proves that it is on a CPU. If no scheduler event precedes it, it
 * has been there since it started. */
void cpu_seen(struct model *m, uint32_t thread, uint64_t t)
{
	struct span *s;
	int32_t cpu = m->priv->threads.v[thread].last_cpu;

	prove(m, thread, t, CPU_RUNNING);
	s = last(m, thread);
	if (s->state == CPU_RUNNING) {
		/* Not every recording contains the CPU on which a thread was switched in. */
		if (s->cpu.number < 0 && cpu <= INT16_MAX)
			s->cpu.number = (int16_t)cpu;
		return;
	}
	if (untouched(m, thread))
		t = last(m, thread)->start_ns;
	set_running(m, thread, t);
}

static void get_cpu(struct model *m, uint32_t thread, uint64_t t)
{
	struct span *s;

	prove_off(m, thread, t, CPU_UNKNOWN);
	s = last(m, thread);
	m->priv->threads.v[thread].woken_ns = 0;
	if (s->state >= CPU_SLEEPING)
		s->flags |= SPAN_INFERRED_END;
	set_running(m, thread, t);
}

void cpu_in(struct model *m, uint32_t thread, uint64_t t)
{
	struct span *s = last(m, thread);

	m->priv->threads.v[thread].flags &= ~(uint32_t)THREAD_SCHED_OUT;
	/* The span may already have begun, when the thread was picked for this CPU. */
	if (s->state != CPU_RUNNING || s->cpu.number != m->priv->threads.v[thread].last_cpu)
		get_cpu(m, thread, t);
}

void cpu_picked(struct model *m, uint32_t thread, uint64_t t, int32_t cpu)
{
	if (last(m, thread)->state == CPU_RUNNING || last(m, thread)->state == CPU_UNKNOWN)
		return;
	m->priv->threads.v[thread].flags &= ~(uint32_t)THREAD_SCHED_OUT;
	m->priv->threads.v[thread].last_cpu = cpu;
	get_cpu(m, thread, t);
}

void cpu_preempted(struct model *m, uint32_t thread, uint64_t t)
{
	if (last(m, thread)->state == CPU_RUNNING)
		cpu_sched_out(m, thread, t, EV_STATE_RUNNING, 0);
}

static void leave(struct model *m, uint32_t thread, uint64_t t, enum cpu_state state,
                  uint32_t stack)
{
	struct thread_state *ts = &m->priv->threads.v[thread];

	prove(m, thread, t, CPU_RUNNING);
	if (untouched(m, thread))
		set_running(m, thread, last(m, thread)->start_ns);
	set(m, thread, t, state, MODEL_NONE, stack);
	ts->off_span = (uint32_t)m->threads.v[thread].cpu.spans.n - 1;
	ts->off_ns = t;
}

void cpu_out(struct model *m, uint32_t thread, uint64_t t, bool preempt)
{
	struct thread_state *ts = &m->priv->threads.v[thread];
	bool known = ts->flags & THREAD_SCHED_OUT;

	ts->flags &= ~(uint32_t)THREAD_SCHED_OUT;
	if (!known)
		leave(m, thread, t, preempt ? CPU_RUNNABLE : asleep(m, thread, 0), 0);
}

void cpu_sched_out(struct model *m, uint32_t thread, uint64_t t, uint32_t prev_state,
                   uint32_t stack)
{
	struct thread_state *ts = &m->priv->threads.v[thread];
	struct lane *lane = &m->threads.v[thread].cpu;
	enum cpu_state state = asleep(m, thread, stack);

	if (!(prev_state & STATE_MASK))
		state = CPU_RUNNABLE;
	else if (prev_state & EV_STATE_UNINTERRUPTIBLE)
		state = CPU_UNINTERRUPTIBLE;
	if (ts->woken_ns && t - ts->woken_ns <= EARLY_WAKE_NS)
		state = CPU_RUNNABLE;
	if (ts->off_span < lane->spans.n && last(m, thread)->state != CPU_RUNNING &&
	    t - ts->off_ns <= SAME_SWITCH_NS) {
		lane->spans.v[ts->off_span].state = (uint8_t)state;
		if (prev_state & EV_STATE_STOPPED)
			lane->spans.v[ts->off_span].flags |= SPAN_STOPPED;
		lane->spans.v[ts->off_span].cpu.stack = stack;
		return;
	}
	leave(m, thread, t, state, stack);
	if (prev_state & EV_STATE_STOPPED)
		last(m, thread)->flags |= SPAN_STOPPED;
	ts->flags |= THREAD_SCHED_OUT;
}

void cpu_waking(struct model *m, uint32_t waker, uint32_t woken, uint64_t t)
{
	enum cpu_state state;

	prove_off(m, woken, t, CPU_SLEEPING);
	state = last(m, woken)->state;
	if (state == CPU_RUNNING)
		m->priv->threads.v[woken].woken_ns = t;
	if (state == CPU_RUNNING || state == CPU_RUNNABLE)
		return;
	if (untouched(m, woken))
		set(m, woken, last(m, woken)->start_ns, CPU_SLEEPING, MODEL_NONE, 0);
	set(m, woken, t, CPU_RUNNABLE, waker, 0);
}

void cpu_lost(struct model *m, uint32_t thread, uint64_t since_ns, uint64_t t)
{
	struct span unknown = cpu_span(since_ns, CPU_UNKNOWN, MODEL_NONE, SPAN_LOST);

	m->priv->threads.v[thread].cpu_lost_ns = t;
	lane_overwrite(&m->threads.v[thread].cpu, &unknown, false);
	m->priv->threads.v[thread].off_span = MODEL_NONE;
	m->priv->threads.v[thread].flags &= ~(uint32_t)THREAD_SCHED_OUT;
}

static void count_unseen(struct model *m)
{
	enum caveat_code code = m->priv->options.all_wakeups ? CAVEAT_MISSED_WAKEUPS
	                                                     : CAVEAT_UNSEEN_WAKEUPS;

	for (size_t i = 0; m->priv->saw_waking && i < m->threads.n; i++) {
		const struct lane *lane = &m->threads.v[i].cpu;

		for (size_t k = 0; k < lane->spans.n; k++)
			m->caveats[code] += (lane->spans.v[k].flags & SPAN_INFERRED_END) != 0;
	}
}

/* Without scheduler events the state of every thread is unknown. */
void cpu_finish(struct model *m)
{
	uint32_t start = m->priv->start_thread;

	if (m->priv->saw_switch || m->priv->saw_sched_out) {
		m->caveats[CAVEAT_NO_TRACEPOINTS] += !m->priv->saw_sched_out;
		count_unseen(m);
		if (start != MODEL_NONE && untouched(m, start))
			set_running(m, start, m->threads.v[start].start_ns);
		return;
	}
	for (size_t i = 0; i < m->threads.n; i++) {
		struct model_thread *mt = &m->threads.v[i];
		struct span unknown = cpu_span(mt->start_ns, CPU_UNKNOWN, MODEL_NONE, 0);

		mt->cpu.spans.n = 0;
		lane_push(&mt->cpu, &unknown, false);
	}
}

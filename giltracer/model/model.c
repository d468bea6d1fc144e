/* SPDX-License-Identifier: MIT */
/* Handles one event at a time, on a clock that never goes back. */
#include "model/blame.h"
#include "model/cpu.h"
#include "model/gil.h"
#include "model/locks.h"
#include "model/lost.h"
#include "model/owners.h"
#include "model/private.h"
#include "model/probe_cost.h"
#include "model/runqueue_wait.h"
#include "model/stats.h"
#include "model/suspended.h"
#include "model/thread.h"

#include "trace/names.h"

#define CAVEAT(code, word, name, shown, quality, sentence) \
	[CAVEAT_##code] = { name, SHOWN_##shown, QUALITY_##quality },
const struct caveat_kind caveat_kinds[CAVEAT_CODES] = {
#include "model/caveats.def"
};
#undef CAVEAT

struct model *model_new(const struct model_options *options)
{
	struct model *m = xcalloc(1, sizeof(*m));

	m->priv = xcalloc(1, sizeof(*m->priv));
	m->priv->options = *options;
	m->priv->start_thread = MODEL_NONE;
	m->start_ns = options->start_ns;
	m->requests_known = options->requests_known;
	m->checks_late = options->checks_late;
	m->stolen_ns = options->stolen_ns;
	m->probes_end_ns = options->probes_end_ns;
	return m;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->threads.n; i++) {
		lane_done(&m->threads.v[i].gil);
		lane_done(&m->threads.v[i].cpu);
		vec_done(&m->threads.v[i].signals);
		vec_done(&m->threads.v[i].kept);
	}
	for (size_t i = 0; i < m->gils.n; i++)
		vec_done(&m->gils.v[i].owners);
	vec_done(&m->threads);
	vec_done(&m->gils);
	vec_done(&m->imports);
	vec_done(&m->blame);
	locks_done(m);
	vec_done(&m->cpu_blame);
	runqueue_wait_done(m);
	vec_done(&m->lost);
	vec_done(&m->overdue);
	vec_done(&m->counts);
	vec_done(&m->samples);
	idmap_done(&m->priv->tids);
	idmap_done(&m->priv->pids);
	idmap_done(&m->priv->prestart_tids);
	idmap_done(&m->priv->gil_keys);
	vec_done(&m->priv->threads);
	vec_done(&m->priv->gils);
	vec_done(&m->priv->procs);
	vec_done(&m->priv->prestart);
	vec_done(&m->priv->anomalies);
	free(m->priv);
	free(m);
}

static void feed_thread(struct model *m, const struct event *ev, uint32_t thread, uint64_t t);

static void feed_as(struct model *m, const struct event *ev, enum event_type type, uint32_t thread)
{
	struct event repeated = *ev;

	repeated.type = (uint16_t)type;
	if (type == EV_ACQUIRE)
		repeated.gil.address = 0;
	feed_thread(m, &repeated, thread, m->start_ns);
}

/* Puts all threads into the states in which they are when tracing starts. */
static void repeat_states(struct model *m)
{
	struct model_private *p = m->priv;

	for (size_t i = 0; i < p->prestart.n; i++) {
		const struct prestart_thread *u = &p->prestart.v[i];
		uint32_t thread = u->gone ? MODEL_NONE : thread_find(m, u->tid);

		if (thread == MODEL_NONE)
			continue;
		if (u->gil.type == EV_REQUEST || u->gil.type == EV_ACQUIRE)
			feed_as(m, &u->gil, EV_REQUEST, thread);
		if (u->gil.type == EV_ACQUIRE)
			feed_as(m, &u->gil, EV_ACQUIRE, thread);
		if (u->park.type == EV_PARK)
			feed_as(m, &u->park, EV_PARK, thread);
	}
	vec_done(&p->prestart);
	idmap_done(&p->prestart_tids);
}

/* Tracing starts: determines which threads exist and which one holds the GIL. */
static void start(struct model *m)
{
	const struct model_options *o = &m->priv->options;

	m->priv->started = true;
	m->priv->now_ns = m->start_ns;
	if (o->start_ns && o->start_tid) {
		uint32_t pid = o->start_pid ? o->start_pid : o->start_tid;
		enum gil_state state = o->gil_off && !o->no_probes ? GIL_NO : GIL_UNKNOWN;
		uint32_t thread = thread_new(m, pid, o->start_tid, m->start_ns, state, CPU_UNKNOWN);

		if (!o->no_probes && !o->gil_off)
			gil_start_hold(m, thread, m->start_ns);
		m->priv->start_thread = thread;
	}
	if (o->start_pid)
		process_python(m, o->start_pid, 0);
	thread_start_all(m);
	repeat_states(m);
}

/* Whether a loss began before t. It is reported later, perhaps only after tracing ended. */
static bool has_begun(const struct event *ev, uint64_t t)
{
	return ev->type == EV_LOST && ev->lost.since_ns < t;
}

/* Returns false for events before tracing started or after it ended. *ret: the event's time, never
 * before that of an earlier event. */
static bool in_time(struct model *m, const struct event *ev, uint64_t *ret)
{
	struct model_private *p = m->priv;
	uint64_t t = ev->time_ns;

	if (!p->started) {
		if (!m->start_ns)
			m->start_ns = t;
		if (t < m->start_ns) {
			thread_before_start(m, ev);
			return false;
		}
		start(m);
	}
	if (t < p->now_ns) {
		m->caveats[CAVEAT_UNORDERED]++;
		t = p->now_ns;
	}
	if (p->options.end_ns && t > p->options.end_ns) {
		if (!has_begun(ev, p->options.end_ns))
			return false;
		t = p->options.end_ns;
	}
	p->now_ns = t;
	*ret = t;
	return true;
}

static void feed_gil(struct model *m, const struct event *ev, uint32_t thread, uint64_t t)
{
	m->gil_events++;
	m->threads.v[thread].gil_events++;
	if (!m->probes_end_ns || t < m->probes_end_ns) {
		m->threads.v[thread].probe_events++;
		m->threads.v[thread].probe_turns += ev->type == EV_REQUEST;
	}
	switch (ev->type) {
	case EV_REQUEST:
		gil_request(m, thread, t, ev->gil.address, ev->gil.frame);
		break;
	case EV_ACQUIRE:
		gil_acquire(m, thread, t);
		break;
	case EV_RELEASE:
		gil_held_in(m, thread, t, ev->gil.frame);
		gil_release(m, thread, t, ev->gil.address, false);
		if (ev->gil.overdue_us)
			*vec_push(&m->overdue) = (struct model_overdue){
				t, m->priv->threads.v[thread].gil, ev->gil.overdue_us
			};
		break;
	case EV_SAVE:
		gil_release(m, thread, t, 0, true);
		break;
	case EV_RELEASED:
		gil_released(m, thread, t);
		break;
	case EV_ASKED:
		gil_asked(m, thread, t, ev->gil.frame);
		break;
	}
}

/* The woken thread may belong to another program, and so may the waker. */
static void feed_waking(struct model *m, const struct event *ev, uint64_t t)
{
	uint32_t woken = thread_find(m, ev->waking.tid);

	m->priv->saw_waking = true;
	if (woken != MODEL_NONE && m->priv->threads.v[woken].flags & THREAD_ALIVE)
		cpu_waking(m, thread_find(m, ev->tid), woken, t);
}

static uint32_t alive(const struct model *m, uint32_t tid)
{
	uint32_t thread = tid ? thread_find(m, tid) : MODEL_NONE;
	bool lives = thread != MODEL_NONE && m->priv->threads.v[thread].flags & THREAD_ALIVE;

	return lives ? thread : MODEL_NONE;
}

/* The next thread on the CPU may belong to another program. */
static void feed_next(struct model *m, const struct event *ev, uint64_t t)
{
	uint32_t next = alive(m, ev->sched.next_tid);

	if (next == MODEL_NONE)
		return;
	m->priv->saw_switch = true;
	cpu_picked(m, next, t, ev->cpu);
}

/* A switch on any CPU of the machine: neither thread need be one of this model's. */
static void feed_pick(struct model *m, const struct event *ev, uint64_t t)
{
	uint32_t prev = alive(m, ev->tid);

	runqueue_wait_pick(m, ev, alive(m, ev->sched.next_tid), t);
	if (prev != MODEL_NONE && ev->flags & EVF_PREEMPT)
		cpu_preempted(m, prev, t);
	feed_next(m, ev, t);
}

static void feed_thread(struct model *m, const struct event *ev, uint32_t thread, uint64_t t)
{
	m->priv->threads.v[thread].last_cpu = ev->cpu;
	switch (ev->type) {
	case EV_SWITCH_IN:
		m->priv->saw_switch = true;
		cpu_in(m, thread, t);
		runqueue_wait_in(m, thread, t, ev->cpu);
		break;
	case EV_SWITCH_OUT:
		m->priv->saw_switch = true;
		cpu_out(m, thread, t, ev->flags & EVF_PREEMPT);
		break;
	case EV_SCHED_OUT:
		/* Stops are recorded even where no other state is. */
		m->priv->saw_sched_out |= !(ev->sched.prev_state & EV_STATE_STOPPED);
		cpu_sched_out(m, thread, t, ev->sched.prev_state, ev->sched.stack);
		feed_next(m, ev, t);
		break;
	case EV_EXIT:
		thread_exit(m, thread, t, true);
		break;
	case EV_COUNT:
		*vec_push(&m->counts) = (struct model_counter_sample){ t, ev->count.value, thread,
			                                               ev->count.counter };
		break;
	case EV_STACK:
		cpu_seen(m, thread, t);
		if (lane_last(&m->threads.v[thread].gil)->state == GIL_HOLD)
			*vec_push(&m->samples) = (struct model_sample){ t, ev->stack.record,
				                                        thread };
		break;
	default:
		cpu_seen(m, thread, t);
		if (m->priv->pythons && ev->type < EV_PARK)
			process_python(m, m->threads.v[thread].pid, 0);
		if (!locks_concern(m, ev, thread) || !locks_feed(m, ev, thread, t))
			feed_gil(m, ev, thread, t);
	}
}

/* A forked child may import the same module. */
static void add_import(struct model *m, const struct event *ev)
{
	m->imports_known |= !ev->import.name;
	for (size_t i = 0; i < m->imports.n; i++)
		if (m->imports.v[i].name == ev->import.name)
			return;
	if (ev->import.name && m->imports.n < MODEL_IMPORTS_MAX)
		*vec_push(&m->imports) = (struct model_import){ .name = ev->import.name,
			                                        .frame = ev->import.frame };
}

void model_feed(struct model *m, const struct event *ev)
{
	uint32_t thread;
	uint64_t t;

	/* Not limited to the time of tracing: most modules are imported before it starts. */
	if (ev->type == EV_NEEDS_GIL) {
		add_import(m, ev);
		return;
	}
	if (!in_time(m, ev, &t))
		return;
	m->priv->events++;
	switch (ev->type) {
	case EV_FORK:
		thread_fork(m, ev, t);
		break;
	case EV_COMM:
		thread_comm(m, ev, t);
		break;
	case EV_PYTHON:
		process_maps(m, ev, t);
		break;
	case EV_LOST:
		lost_records(m, ev, t);
		break;
	case EV_WAKING:
		feed_waking(m, ev, t);
		break;
	case EV_PICK:
		feed_pick(m, ev, t);
		break;
	case EV_MOVE:
		thread = alive(m, ev->move.tid);
		if (thread != MODEL_NONE)
			runqueue_wait_move(m, thread, t, ev);
		break;
	default:
		if (ev->type > EV_STACK)
			break;
		thread = thread_of(m, ev, t);
		if (thread != MODEL_NONE)
			feed_thread(m, ev, thread, t);
	}
}

/* A process that outlived the program. If the end of tracing is not known, the process was recorded
 * until it ended. If it is known, processes that execute another program may still end with the
 * program, as multiprocessing's helpers do. */
static bool is_left_behind(const struct model *m, uint32_t thread)
{
	const struct model_options *options = &m->priv->options;
	const struct model_thread *mt = &m->threads.v[thread];
	bool executed = m->priv->threads.v[thread].flags & THREAD_EXECUTED;

	return options->start_ns && options->start_pid && mt->main &&
	       mt->pid != options->start_pid &&
	       (!options->end_ns || (options->to_end && !executed));
}

/* Replaces the lane by one span, if nothing is known of the thread. */
static void fill_unknown(struct lane *lane, struct span span)
{
	for (size_t i = 0; i < lane->spans.n; i++)
		if (lane->spans.v[i].state)
			return;
	span.start_ns = lane->spans.v[0].start_ns;
	lane->spans.n = 0;
	lane_push(lane, &span, false);
}

/* Threads that slept throughout have no events. */
static void mark_slept(struct model *m)
{
	const struct model_options *o = &m->priv->options;

	for (size_t i = 0; i < o->slept_count; i++) {
		const struct model_slept *s = &o->slept[i];
		uint32_t thread = thread_find(m, s->tid);
		struct model_thread *mt = thread == MODEL_NONE ? NULL : &m->threads.v[thread];

		if (!mt || mt->pid != s->pid || mt->start_ns != m->start_ns ||
		    mt->end_ns != m->end_ns || mt->gil_events)
			continue;
		mt->slept = true;
		fill_unknown(&mt->cpu,
		             cpu_span(0, s->state == 'D' ? CPU_UNINTERRUPTIBLE : CPU_SLEEPING,
		                      MODEL_NONE, s->state == 'T' ? SPAN_STOPPED : 0));
		if (s->no_gil)
			fill_unknown(&mt->gil, gil_span(0, GIL_NO, MODEL_NONE, 0));
	}
}

static bool is_idle(const struct model *m)
{
	for (size_t i = 0; i < m->threads.n; i++) {
		const struct model_thread *mt = &m->threads.v[i];

		if (!mt->slept && (!mt->suspended_ns || model_thread_life_ns(mt)))
			return false;
	}
	return m->threads.n > 0;
}

/* A thread that holds the GIL at some time holds it throughout if there is no GIL event. */
static bool find_holder(struct model *m)
{
	const struct model_options *o = &m->priv->options;
	uint32_t thread = m->gil_events || !o->holder_tid ? MODEL_NONE
	                                                  : thread_find(m, o->holder_tid);

	if (thread == MODEL_NONE || m->threads.v[thread].start_ns != m->start_ns)
		return false;
	gil_start_hold(m, thread, m->start_ns);
	m->threads.v[thread].held = true;
	return true;
}

void model_finish(struct model *m)
{
	struct model_private *p = m->priv;
	bool held;

	if (!p->started)
		start(m);
	held = find_holder(m);
	for (size_t i = 0; p->options.names && i < m->imports.n; i++)
		m->imports.v[i].module = names_get(p->options.names, m->imports.v[i].name);
	m->end_ns = p->options.end_ns > p->now_ns ? p->options.end_ns : p->now_ns;
	lost_end(m);
	for (uint32_t i = 0; i < m->threads.n; i++) {
		if (!(p->threads.v[i].flags & THREAD_ALIVE))
			continue;
		m->caveats[CAVEAT_LEFT_BEHIND] += is_left_behind(m, i);
		thread_exit(m, i, m->end_ns, false);
	}
	lost_finish(m);
	cpu_finish(m);
	mark_slept(m);
	suspended_finish(m);
	m->idle = is_idle(m);
	owners_finish(m);
	gil_finish(m);
	blame_finish(m);
	locks_finish(m);
	runqueue_wait_finish(m);
	stats_finish(m);
	probe_cost_finish(m, m->priv->options.turn_ns);
	/* If all events are known from before, threads that have none are without the GIL. */
	if (!m->gil_events && !m->idle && !held && !m->priv->options.before_known &&
	    !m->priv->options.no_probes && !m->priv->options.gil_off)
		m->caveats[CAVEAT_NO_GIL_EVENTS]++;
}

uint32_t model_find_thread(const struct model *m, uint32_t tid)
{
	return thread_find(m, tid);
}

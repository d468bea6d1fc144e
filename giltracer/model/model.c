/* SPDX-License-Identifier: MIT */
/* One event at a time, on a clock that never goes back. */
#include "model/internal.h"

#include "trace/names.h"

struct model *model_new(const struct model_options *options)
{
	struct model *m = xcalloc(1, sizeof(*m));

	m->priv = xcalloc(1, sizeof(*m->priv));
	m->priv->options = *options;
	m->priv->start_thread = MODEL_NONE;
	m->start_ns = options->start_ns;
	return m;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->threads.n; i++) {
		lane_done(&m->threads.v[i].gil);
		lane_done(&m->threads.v[i].cpu);
	}
	for (size_t i = 0; i < m->gils.n; i++)
		vec_done(&m->gils.v[i].owners);
	vec_done(&m->threads);
	vec_done(&m->gils);
	vec_done(&m->blame);
	lock_done(m);
	vec_done(&m->starved);
	starve_done(m);
	vec_done(&m->lost);
	vec_done(&m->counts);
	vec_done(&m->samples);
	idmap_done(&m->priv->tids);
	idmap_done(&m->priv->pids);
	idmap_done(&m->priv->unborn_tids);
	idmap_done(&m->priv->gil_keys);
	vec_done(&m->priv->threads);
	vec_done(&m->priv->gils);
	vec_done(&m->priv->procs);
	vec_done(&m->priv->unborn);
	vec_done(&m->priv->oddities);
	free(m->priv);
	free(m);
}

/* Tracing starts: who is there, and who holds the GIL. */
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
	thread_start_all(m);
}

/* A loss is learnt late, perhaps after tracing ended. */
static bool has_begun(const struct event *ev, uint64_t t)
{
	return ev->type == EV_LOST && ev->lost.since_ns < t;
}

/* Before tracing starts, or after it ended: false. */
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

/* The event is of a GIL that is off. A return is what its entry was. */
static bool is_off(struct model *m, const struct event *ev, uint32_t thread)
{
	uint32_t *flags = &m->priv->threads.v[thread].flags, bit;

	if (ev->flags & EVF_GIL_OFF)
		return ev->type == EV_REQUEST || ev->type == EV_RELEASE;
	if (ev->type != EV_ACQUIRE && ev->type != EV_RELEASED)
		return false;
	bit = *flags & (ev->type == EV_ACQUIRE ? THREAD_ASKED_OFF : THREAD_LEFT_OFF);
	*flags &= ~bit;
	return bit;
}

static void feed_gil(struct model *m, const struct event *ev, uint32_t thread, uint64_t t)
{
	cpu_seen(m, thread, t);
	if (is_off(m, ev, thread)) {
		m->park_events++;
		if (ev->flags & EVF_GIL_OFF)
			lock_gil_off(m, thread, t, ev);
		return;
	}
	m->gil_events++;
	switch (ev->type) {
	case EV_REQUEST:
		lock_frame(m, thread, ev);
		gil_request(m, thread, t, ev->gil.address, ev->gil.frame);
		break;
	case EV_ACQUIRE:
		gil_acquire(m, thread, t);
		break;
	case EV_RELEASE:
		gil_release(m, thread, t, ev->gil.address, false);
		break;
	case EV_SAVE:
		gil_release(m, thread, t, 0, true);
		break;
	case EV_RELEASED:
		gil_released(m, thread, t);
		break;
	}
}

static void feed_park(struct model *m, const struct event *ev, uint32_t thread, uint64_t t)
{
	m->park_events++;
	cpu_seen(m, thread, t);
	switch (ev->type) {
	case EV_PARK:
		lock_park(m, thread, t, ev);
		break;
	case EV_PARKED:
		lock_parked(m, thread, t);
		break;
	case EV_UNPARK:
		lock_unpark(m, thread, t, ev->park.address);
		break;
	case EV_STOP_WORLD:
		lock_stop_world(m, thread, t);
		break;
	case EV_START_WORLD:
		lock_start_world(m, thread, t, ev->gil.frame);
		break;
	case EV_STARTED_WORLD:
		lock_started_world(m, thread, t);
		break;
	}
}

/* An event of a thread that may be anybody, even nobody we know. */
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

/* Who gets the CPU may be anybody. */
static void feed_next(struct model *m, const struct event *ev, uint64_t t)
{
	uint32_t next = alive(m, ev->sched.next_tid);

	if (next == MODEL_NONE)
		return;
	m->priv->saw_switch = true;
	cpu_picked(m, next, t, ev->cpu);
}

/* And so may who had it. */
static void feed_pick(struct model *m, const struct event *ev, uint64_t t)
{
	uint32_t prev = alive(m, ev->tid);

	starve_pick(m, ev, alive(m, ev->sched.next_tid), t);
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
		starve_in(m, thread, t, ev->cpu);
		break;
	case EV_SWITCH_OUT:
		m->priv->saw_switch = true;
		cpu_out(m, thread, t, ev->flags & EVF_PREEMPT);
		break;
	case EV_SCHED_OUT:
		m->priv->saw_sched_out = true;
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
		if (ev->type >= EV_PARK)
			feed_park(m, ev, thread, t);
		else
			feed_gil(m, ev, thread, t);
	}
}

void model_feed(struct model *m, const struct event *ev)
{
	uint32_t thread;
	uint64_t t;

	/* Most modules are imported before tracing starts. */
	if (ev->type == EV_GIL_ON) {
		if (m->priv->options.names)
			m->gil_module = names_get(m->priv->options.names, ev->comm.name);
		return;
	}
	if (!in_time(m, ev, &t))
		return;
	switch (ev->type) {
	case EV_FORK:
		thread_fork(m, ev, t);
		break;
	case EV_COMM:
		thread_comm(m, ev, t);
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
			starve_move(m, thread, t, ev);
		break;
	default:
		if (ev->type > EV_STACK)
			break;
		thread = thread_of(m, ev, t);
		if (thread != MODEL_NONE)
			feed_thread(m, ev, thread, t);
	}
}

/* The program did not say when it was through, and so the recording went on until it had ended. */
static bool is_left_behind(const struct model *m, uint32_t thread)
{
	const struct model_options *options = &m->priv->options;
	const struct model_thread *mt = &m->threads.v[thread];

	return options->start_ns && !options->end_ns && options->start_pid && mt->main &&
	       mt->pid != options->start_pid;
}

void model_finish(struct model *m)
{
	struct model_private *p = m->priv;

	if (!p->started)
		start(m);
	m->end_ns = p->options.end_ns > p->now_ns ? p->options.end_ns : p->now_ns;
	for (uint32_t i = 0; i < m->threads.n; i++) {
		if (!(p->threads.v[i].flags & THREAD_ALIVE))
			continue;
		m->caveats[CAVEAT_LEFT_BEHIND] += is_left_behind(m, i);
		thread_exit(m, i, m->end_ns, false);
	}
	lost_finish(m);
	cpu_finish(m);
	owners_finish(m);
	gil_finish(m);
	blame_finish(m);
	lock_finish(m);
	starve_finish(m);
	stats_finish(m);
	if (!m->gil_events && !m->priv->options.no_probes && !m->priv->options.gil_off)
		m->caveats[CAVEAT_NO_GIL_EVENTS]++;
}

uint32_t model_find_thread(const struct model *m, uint32_t tid)
{
	return thread_find(m, tid);
}

/* SPDX-License-Identifier: MIT */
/* The threads and their lifetimes: births, names and ends. */
#include "model/thread.h"

#include "model/gil.h"
#include "model/lost.h"
#include "model/private.h"

#include "trace/names.h"

uint32_t process_of(struct model *m, uint32_t pid)
{
	uint32_t proc;

	if (idmap_add(&m->priv->pids, pid, (uint32_t)m->priv->procs.n, &proc))
		*vec_push(&m->priv->procs) = (struct process){ .pid = pid,
			                                       .first_gil = MODEL_NONE,
			                                       .nameless = MODEL_NONE };
	return proc;
}

uint32_t thread_find(const struct model *m, uint32_t tid)
{
	uint32_t thread = idmap_get(&m->priv->tids, tid);

	return thread == IDMAP_NONE ? MODEL_NONE : thread;
}

uint32_t thread_new(struct model *m, uint32_t pid, uint32_t tid, uint64_t t, enum gil_state gil,
                    enum cpu_state cpu)
{
	uint32_t thread = (uint32_t)m->threads.n;
	struct model_thread *mt = vec_push(&m->threads);
	struct span gil_first, cpu_first;

	*mt = (struct model_thread){ .pid = pid,
		                     .tid = tid,
		                     .name = "",
		                     .main = pid == tid,
		                     .creator = MODEL_NONE,
		                     .start_ns = t };
	gil_first = gil_span(t, gil, MODEL_NONE, 0);
	cpu_first = cpu_span(t, cpu, MODEL_NONE, 0);
	lane_push(&mt->gil, &gil_first, true);
	lane_push(&mt->cpu, &cpu_first, false);
	*vec_push(&m->priv->threads) = (struct thread_state){
		.proc = process_of(m, pid),
		.gil = MODEL_NONE,
		.parking = { .lock = MODEL_NONE,
		             .event = MODEL_NONE,
		             .stop = MODEL_NONE,
		             .holder = MODEL_NONE,
		             .deadlock = MODEL_NONE,
		             .outer = MODEL_NONE },
		.off_span = MODEL_NONE,
		.last_cpu = -1,
		.flags = THREAD_ALIVE,
	};
	idmap_set(&m->priv->tids, tid, thread);
	m->priv->last_tid = 0;
	return thread;
}

void thread_exit(struct model *m, uint32_t thread, uint64_t t, bool died)
{
	struct model_thread *mt = &m->threads.v[thread];

	gil_exit(m, thread, t, died);
	lane_finish(&mt->cpu, t, false);
	mt->end_ns = t;
	m->priv->threads.v[thread].flags = 0;
	m->priv->last_tid = 0;
}

/* After its EV_EXIT a thread is switched out once more; GIL events or parking prove that the tid
 * was reused. */
static bool proves_life(const struct event *ev)
{
	return ev->type <= EV_STARTED_WORLD;
}

/* Of a thread that exists when tracing starts: if the GIL is off then, it has none. */
static enum gil_state first_state(const struct model *m)
{
	return m->priv->options.gil_off && !m->priv->options.no_probes ? GIL_NO : GIL_UNKNOWN;
}

/* A thread whose birth was not recorded, with its first event at t; its state is unknown since
 * since_ns, unless that is the start. */
static uint32_t appear(struct model *m, const struct event *ev, uint64_t since_ns, uint64_t t)
{
	uint32_t pid = thread_is_nobody(ev->pid) ? ev->tid : ev->pid;
	enum gil_state state = since_ns == m->start_ns ? first_state(m) : GIL_UNKNOWN;
	uint32_t thread = thread_new(m, pid, ev->tid, since_ns, state, CPU_UNKNOWN);

	m->priv->threads.v[thread].born_after_ns = since_ns;
	m->priv->threads.v[thread].seen_ns = t;
	lost_birth(m, thread);
	return thread;
}

uint32_t thread_of_other(struct model *m, const struct event *ev, uint64_t t)
{
	struct model_private *p = m->priv;
	uint32_t thread;

	if (thread_is_nobody(ev->tid))
		return MODEL_NONE;
	thread = thread_find(m, ev->tid);
	if (thread == MODEL_NONE) {
		thread = appear(m, ev, m->start_ns, t);
	} else if (!(p->threads.v[thread].flags & THREAD_ALIVE)) {
		if (!proves_life(ev))
			return MODEL_NONE;
		thread = appear(m, ev, m->threads.v[thread].end_ns, t);
	} else if (!thread_is_nobody(ev->pid) && m->threads.v[thread].pid != ev->pid) {
		thread_exit(m, thread, t, true);
		thread = appear(m, ev, t, t);
	}
	p->last_tid = ev->tid;
	p->last_pid = m->threads.v[thread].pid;
	p->last_thread = thread;
	return thread;
}

void process_python(struct model *m, uint32_t pid, uint64_t python_ns)
{
	uint32_t proc = python_ns ? process_of(m, pid) : idmap_get(&m->priv->pids, pid);
	struct process *p = proc == IDMAP_NONE ? NULL : &m->priv->procs.v[proc];

	if (!p || !p->python_ns == !python_ns || (python_ns && p->recorded))
		return;
	m->priv->pythons += python_ns ? 1 : UINT32_MAX;
	p->python_ns = python_ns;
	p->unrecorded = false;
}

void process_maps(struct model *m, const struct event *ev, uint64_t t)
{
	bool recorded = ev->flags & EVF_RECORDED;
	uint32_t proc;

	if (m->priv->options.no_probes || m->priv->options.gil_off)
		return;
	process_python(m, ev->pid, recorded ? 0 : t);
	proc = process_of(m, ev->pid);
	m->priv->procs.v[proc].recorded |= recorded;
}

static void process_executes(struct model *m, uint32_t pid)
{
	uint32_t proc = idmap_get(&m->priv->pids, pid);

	process_python(m, pid, 0);
	if (proc != IDMAP_NONE)
		m->priv->procs.v[proc].recorded = false;
}

static bool runs_python(const struct model *m, uint32_t pid)
{
	uint32_t proc = idmap_get(&m->priv->pids, pid);

	return proc != IDMAP_NONE && m->priv->procs.v[proc].python_ns;
}

static struct prestart_thread *prestart_of(struct model_private *p, uint32_t tid)
{
	uint32_t i;

	if (idmap_add(&p->prestart_tids, tid, (uint32_t)p->prestart.n, &i))
		*vec_push(&p->prestart) = (struct prestart_thread){ .tid = tid,
			                                            .gil.type = EV_EXIT,
			                                            .park.type = EV_EXIT };
	return &p->prestart.v[i];
}

/* Keeps what tells the state of the thread when tracing starts. */
static void note_state(struct model_private *p, const struct event *ev)
{
	struct prestart_thread *u;

	if (thread_is_nobody(ev->tid) ||
	    (ev->type > EV_PARKED && ev->type != EV_FORK && ev->type != EV_EXIT))
		return;
	u = prestart_of(p, ev->tid);
	if (!thread_is_nobody(ev->pid))
		u->pid = ev->pid;
	switch (ev->type) {
	case EV_FORK:
	case EV_EXIT:
		u->gil.type = u->park.type = EV_EXIT;
		u->without = ev->type == EV_FORK && ev->pid == ev->fork.parent_pid;
		break;
	case EV_REQUEST:
	case EV_ACQUIRE:
	case EV_RELEASE:
		if (ev->type == EV_ACQUIRE && u->gil.type == EV_REQUEST)
			u->gil.type = EV_ACQUIRE; /* of the same GIL */
		else
			u->gil = *ev;
		u->without = ev->type == EV_RELEASE;
		break;
	case EV_PARK:
		u->park = *ev;
		break;
	case EV_PARKED:
		u->park.type = EV_EXIT;
		break;
	default:
		break;
	}
}

/* Before tracing starts, only a thread's name is kept, because many threads end before it does, and
 * which processes run a CPython. */
void thread_before_start(struct model *m, const struct event *ev)
{
	struct model_private *p = m->priv;
	struct prestart_thread *u;

	if (p->options.before_known)
		note_state(p, ev);
	if (ev->type == EV_PYTHON)
		process_maps(m, ev, m->start_ns);
	else if (ev->type == EV_COMM && ev->flags & EVF_EXEC)
		process_executes(m, ev->pid);
	else if (ev->type <= EV_SAVE && p->pythons)
		process_python(m, ev->pid, 0);
	if (thread_is_nobody(ev->tid) ||
	    (ev->type != EV_FORK && ev->type != EV_COMM && ev->type != EV_EXIT))
		return;
	u = prestart_of(p, ev->tid);
	if (!thread_is_nobody(ev->pid))
		u->pid = ev->pid;
	u->gone = ev->type == EV_EXIT;
	if (ev->type == EV_COMM && p->options.names)
		u->name = names_get(p->options.names, ev->comm.name);
	if (ev->type == EV_FORK) {
		uint32_t parent = idmap_get(&p->prestart_tids, ev->fork.parent_tid
		                                                       ? ev->fork.parent_tid
		                                                       : ev->fork.parent_pid);

		u->name = parent == IDMAP_NONE ? NULL : p->prestart.v[parent].name;
	}
}

void thread_start_all(struct model *m)
{
	struct model_private *p = m->priv;

	for (size_t i = 0; i < p->prestart.n; i++) {
		const struct prestart_thread *u = &p->prestart.v[i];
		uint32_t thread;

		if (u->gone)
			continue;
		thread = thread_find(m, u->tid);
		if (thread == MODEL_NONE)
			thread = thread_new(m, u->pid ? u->pid : u->tid, u->tid, m->start_ns,
			                    u->without ? GIL_NO : first_state(m), CPU_UNKNOWN);
		if (u->name)
			m->threads.v[thread].name = u->name;
	}
}

void thread_fork(struct model *m, const struct event *ev, uint64_t t)
{
	uint32_t old = thread_find(m, ev->tid), parent, child;
	enum gil_state gil = GIL_NO;
	uint32_t pid = thread_is_nobody(ev->pid) ? ev->tid : ev->pid;

	if (thread_is_nobody(ev->tid))
		return;
	if (old != MODEL_NONE && m->priv->threads.v[old].flags & THREAD_ALIVE)
		thread_exit(m, old, t, true);
	parent = thread_find(m, ev->fork.parent_tid);
	if (pid != ev->fork.parent_pid &&
	    (parent == MODEL_NONE || lane_last(&m->threads.v[parent].gil)->state == GIL_UNKNOWN))
		gil = GIL_UNKNOWN;
	child = thread_new(m, pid, ev->tid, t, gil, CPU_RUNNABLE);
	if (pid != ev->fork.parent_pid && m->priv->pythons)
		process_python(m, pid, runs_python(m, ev->fork.parent_pid) ? t : 0);
	if (parent == MODEL_NONE) {
		uint32_t main = pid == ev->fork.parent_pid ? thread_find(m, pid) : MODEL_NONE;

		if (main != MODEL_NONE)
			m->threads.v[child].name = m->threads.v[main].name;
		return;
	}
	lane_last(&m->threads.v[child].cpu)->cpu.waker = parent;
	m->threads.v[child].creator = parent;
	m->threads.v[child].name = m->threads.v[parent].name;
	if (pid != ev->fork.parent_pid && m->priv->threads.v[parent].flags & THREAD_ALIVE)
		gil_inherit(m, child, parent, t);
}

void thread_comm(struct model *m, const struct event *ev, uint64_t t)
{
	uint32_t thread = thread_of(m, ev, t);

	if (thread == MODEL_NONE)
		return;
	if (m->priv->options.names)
		m->threads.v[thread].name = names_get(m->priv->options.names, ev->comm.name);
	if (!(ev->flags & EVF_EXEC))
		return;
	m->priv->threads.v[thread].flags |= THREAD_EXECUTED;
	gil_exec(m, thread, t);
	process_executes(m, m->threads.v[thread].pid);
}

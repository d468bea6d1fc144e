/* SPDX-License-Identifier: MIT */
#include "trace/aio.h"

#include <stdlib.h>

#include "base/idmap.h"

/* A callback that does not belong to a task: since when it could have run (0: unknown), and what
 * caused that. */
struct cause {
	uint64_t since_ns;
	struct aio_waker waker;
};

/* A task or callback that a thread runs. The cause of a callback is also that of whatever it
 * makes ready. */
struct running {
	uint64_t end_ns, until;
	uint32_t task;
	bool callback;
	struct cause cause;
};

/**
 * @tasks, @callbacks: by object
 * @causes: by callback
 * @threads: by thread, what it took from the queue last
 * @wakers: by task, what put it into the queue
 */
struct maker {
	struct aio *ret;
	struct idmap tasks, callbacks;
	VEC(struct cause) causes;
	VEC(struct running) threads;
	VEC(struct aio_waker) wakers;
};

const char *aio_loop_name(enum aio_loop loop)
{
	static const char *const names[] = {
		[AIO_ASYNCIO] = "asyncio",
		[AIO_TRIO] = "trio",
		[AIO_UVLOOP] = "uvloop",
		[AIO_GREENLET] = "greenlet",
	};

	return names[loop];
}

void aio_done(struct aio *tasks)
{
	vec_done(&tasks->v);
	vec_done(&tasks->steps);
}

static uint64_t at_least(uint64_t ns, uint64_t least_ns)
{
	return ns < least_ns ? least_ns : ns;
}

static struct running *running_in(struct maker *m, uint32_t thread)
{
	while (m->threads.n <= thread)
		*vec_push(&m->threads) = (struct running){ .task = AIO_NONE };
	return &m->threads.v[thread];
}

/* The task or callback that the event's thread runs at that event; NULL: none. The last events of a
 * run may have the time of its end. */
static const struct running *running_at(struct maker *m, const struct aio_event *e)
{
	const struct running *r = running_in(m, e->thread);

	return r->end_ns > e->time_ns || e->order < r->until ? r : NULL;
}

static uint32_t new_task(struct maker *m, const struct aio_event *e, uint32_t pid)
{
	uint32_t i = (uint32_t)m->ret->v.n;

	*vec_push(&m->ret->v) = (struct aio_task){
		.pid = pid,
		.thread = e->thread,
		.loop = e->loop,
		.first_ns = e->time_ns,
		.last_ns = e->time_ns,
		.creator = { .task = AIO_NONE },
	};
	*vec_push(&m->wakers) = (struct aio_waker){ .task = AIO_NONE };
	idmap_set(&m->tasks, e->object, i);
	return i;
}

/* ---- callbacks that do not belong to a task */

static struct cause *cause_of(struct maker *m, uint64_t object)
{
	uint32_t at;

	if (idmap_add(&m->callbacks, object, (uint32_t)m->causes.n, &at))
		*vec_push(&m->causes) = (struct cause){ .waker = { .task = AIO_NONE } };
	return &m->causes.v[at];
}

/* Why the event puts its object into the queue. */
static struct cause cause_now(struct maker *m, const struct aio_event *e)
{
	const struct running *by = running_at(m, e);
	struct cause c = {
		e->time_ns,
		{ e->thread, by ? by->task : AIO_NONE, e->function },
	};

	/* No function called asyncio: the task has ended or suspended itself. */
	if (!e->function && by && by->task != AIO_NONE)
		c.waker.function = m->ret->v.v[by->task].function;

	if (by && by->callback && by->cause.since_ns && by->cause.since_ns < e->time_ns) {
		c.since_ns = by->cause.since_ns;
		if (!e->function)
			c.waker = by->cause.waker;
	}
	return c;
}

/* ---- tasks */

/* The task is ready. If it was ready already, nothing changes. */
static void make_ready(struct maker *m, uint32_t i, const struct aio_event *e)
{
	struct aio_task *t = &m->ret->v.v[i];
	struct cause cause = cause_now(m, e);

	if (t->ready_ns)
		return;
	t->ready_ns = at_least(cause.since_ns, t->last_ns);
	t->known_ns = at_least(e->time_ns, t->ready_ns);
	m->wakers.v[i] = cause.waker;
}

static void task_is_ready(struct maker *m, const struct aio_event *e, uint32_t pid)
{
	uint32_t i = idmap_get(&m->tasks, e->object);
	struct aio_task *t = i == IDMAP_NONE ? NULL : &m->ret->v.v[i];

	if (!t || t->end != AIO_ALIVE || e->creates) {
		if (t && t->end == AIO_ALIVE)
			t->end = AIO_LOST;
		i = new_task(m, e, pid);
		t = &m->ret->v.v[i];
		t->created = true;
		t->creator = cause_now(m, e).waker;
	}
	make_ready(m, i, e);
}

/* The task that runs; a new one if it is unknown, or if the known one has ended or cannot be the
 * same because the coroutine starts now. */
static uint32_t task_of(struct maker *m, const struct aio_event *e, uint32_t pid)
{
	uint32_t i = idmap_get(&m->tasks, e->object);
	struct aio_task *t = i == IDMAP_NONE ? NULL : &m->ret->v.v[i];

	if (t && t->end == AIO_ALIVE && !(e->starts && t->steps))
		return i;
	if (t && t->end == AIO_ALIVE)
		t->end = AIO_LOST;
	return new_task(m, e, pid);
}

static void add_step(struct maker *m, uint32_t i, const struct aio_event *e)
{
	struct aio_task *t = &m->ret->v.v[i];
	struct aio_step s = {
		.from_ns = t->last_ns,
		.start_ns = at_least(e->time_ns, t->last_ns),
		.task = i,
		.thread = e->thread,
		.waker = m->wakers.v[i],
		.place = t->place,
		.line = t->line,
		.unknown = !t->ready_ns && e->time_ns > t->last_ns,
	};

	s.end_ns = at_least(e->end_ns, s.start_ns);
	s.ready_ns = t->ready_ns && t->ready_ns < s.start_ns ? t->ready_ns : s.start_ns;
	s.known_ns = t->known_ns < s.start_ns ? at_least(t->known_ns, s.ready_ns) : s.start_ns;
	*vec_push(&m->ret->steps) = s;
	if (!t->steps++)
		t->run_ns = s.start_ns;
	t->running_ns += s.end_ns - s.start_ns;
	*(s.unknown ? &t->unknown_ns : &t->waiting_ns) += s.ready_ns - s.from_ns;
	t->late_ns += s.start_ns - s.ready_ns;
	t->inferred_ns += s.known_ns - s.ready_ns;
	if (s.start_ns - s.ready_ns > t->longest_late_ns)
		t->longest_late_ns = s.start_ns - s.ready_ns;
	t->last_ns = s.end_ns;
	t->thread = e->thread;
	t->ready_ns = t->known_ns = 0;
	m->wakers.v[i] = (struct aio_waker){ .task = AIO_NONE };
}

static void task_runs(struct maker *m, const struct aio_event *e, uint32_t pid)
{
	uint32_t i = task_of(m, e, pid);
	struct aio_task *t;

	add_step(m, i, e);
	t = &m->ret->v.v[i];
	if (e->name)
		t->name = e->name;
	if (e->function && !t->function)
		t->function = e->function;
	if (e->how == AIO_RETURNED)
		t->end = AIO_DONE;
	else if (e->how == AIO_THREW)
		t->end = AIO_RAISED;
	if (e->how != AIO_UNKNOWN) {
		t->place = e->place;
		t->line = e->line;
	}
	*running_in(m, e->thread) = (struct running){
		.end_ns = t->last_ns,
		.until = e->until,
		.task = i,
	};
}

static void feed(struct maker *m, const struct aio_event *e, uint32_t pid)
{
	struct cause *cause, now;

	switch (e->kind) {
	case AIO_DUE:
		*cause_of(m, e->object) = (struct cause){
			.since_ns = e->end_ns,
			.waker = { e->thread, AIO_NONE, 0 },
		};
		break;
	case AIO_READY:
		if (e->is_task) {
			task_is_ready(m, e, pid);
			break;
		}
		now = cause_now(m, e);
		*cause_of(m, e->object) = now;
		break;
	case AIO_RUN:
		if (e->is_task) {
			task_runs(m, e, pid);
			break;
		}
		cause = cause_of(m, e->object);
		*running_in(m, e->thread) = (struct running){
			.end_ns = e->end_ns,
			.until = e->until,
			.task = AIO_NONE,
			.callback = true,
			.cause = *cause,
		};
		cause->since_ns = 0;
		break;
	}
}

/* Accounts for the time between the last step and the end. */
static void end_task(struct aio_task *t, uint64_t end_ns)
{
	if (t->end != AIO_ALIVE || end_ns <= t->last_ns) {
		t->ready_ns = t->known_ns = 0;
		return;
	}
	if (!t->ready_ns || t->ready_ns > end_ns) {
		*(aio_shows_ready(t->loop) ? &t->waiting_ns : &t->unknown_ns) += end_ns -
		                                                                 t->last_ns;
		t->ready_ns = 0;
	} else {
		t->waiting_ns += t->ready_ns - t->last_ns;
		t->late_ns += end_ns - t->ready_ns;
		t->inferred_ns += (t->known_ns < end_ns ? t->known_ns : end_ns) - t->ready_ns;
		if (end_ns - t->ready_ns > t->longest_late_ns)
			t->longest_late_ns = end_ns - t->ready_ns;
	}
	t->last_ns = end_ns;
}

static int compare(const void *va, const void *vb)
{
	const struct aio_event *a = va, *b = vb;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

void aio_make(struct aio *ret, struct aio_event *events, size_t count,
              const struct aio_process *processes)
{
	struct maker m = { .ret = ret };

	*ret = (struct aio){ 0 };
	for (size_t i = 0; i < count; i++)
		events[i].order = i;
	if (count)
		qsort(events, count, sizeof(*events), compare);
	for (size_t i = 0; i < count;) {
		uint32_t process = events[i].process;
		size_t first = ret->v.n;

		for (; i < count && events[i].process == process; i++)
			feed(&m, &events[i], processes[process].pid);
		for (size_t t = first; t < ret->v.n; t++)
			end_task(&ret->v.v[t], processes[process].end_ns);
		idmap_done(&m.tasks);
		idmap_done(&m.callbacks);
		m.causes.n = 0;
	}
	vec_done(&m.causes);
	vec_done(&m.threads);
	vec_done(&m.wakers);
}

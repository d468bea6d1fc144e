/* SPDX-License-Identifier: MIT */
#include "trace/calls/tasks.h"

void calls_tasks_done(struct calls_tasks *c)
{
	vec_done(&c->events);
	vec_done(&c->runs);
}

void calls_tasks_thread(struct calls_tasks *c, uint32_t process, uint32_t thread)
{
	c->process = process;
	c->thread = thread;
	c->object = c->after_us = c->since_us = 0;
	c->name = c->line = 0;
	c->runs.n = 0;
}

static void say_object(struct calls_tasks *c, enum preload_say what, uint64_t value)
{
	c->object = value;
	c->is_task = what != PRELOAD_SAY_HANDLE;
	c->loop = what == PRELOAD_SAY_TRIO_TASK     ? AIO_TRIO
	          : what == PRELOAD_SAY_UVLOOP_TASK ? AIO_UVLOOP
	          : what == PRELOAD_SAY_GREENLET    ? AIO_GREENLET
	                                            : AIO_ASYNCIO;
	c->after_us = c->since_us = 0;
	c->name = 0;
}

void calls_tasks_say(struct calls_tasks *c, enum preload_say what, uint64_t value)
{
	switch (what) {
	case PRELOAD_SAY_TASK:
	case PRELOAD_SAY_TRIO_TASK:
	case PRELOAD_SAY_UVLOOP_TASK:
	case PRELOAD_SAY_GREENLET:
	case PRELOAD_SAY_HANDLE:
		say_object(c, what, value);
		break;
	case PRELOAD_SAY_NAME:
		c->name = (uint32_t)value;
		break;
	case PRELOAD_SAY_AFTER:
		c->after_us = value;
		break;
	case PRELOAD_SAY_SINCE:
		c->since_us = value;
		break;
	case PRELOAD_SAY_LINE:
		c->line = value < UINT32_MAX ? (uint32_t)value : 0;
		break;
	default:
		break;
	}
}

/* Add an event of the object that the records before it state. They state it anew for each
 * event. */
static struct aio_event *add(struct calls_tasks *c, enum aio_event_kind kind, uint64_t t)
{
	struct aio_event *e = vec_push(&c->events);

	*e = (struct aio_event){
		.time_ns = t,
		.object = c->object,
		.process = c->process,
		.thread = c->thread,
		.kind = (uint8_t)kind,
		.loop = (uint8_t)c->loop,
		.is_task = c->is_task,
	};
	c->object = 0;
	return e;
}

void calls_tasks_ready(struct calls_tasks *c, uint64_t t, uint32_t function, bool creates)
{
	struct aio_event *e;

	if (!c->object)
		return;
	e = add(c, AIO_READY, t);
	e->function = function;
	e->creates = creates && e->is_task;
}

static void begin_run(struct calls_tasks *c, uint64_t t, size_t calls)
{
	*vec_push(&c->runs) = (struct task_run){ .event = c->events.n, .calls = calls };
	add(c, AIO_RUN, t)->name = c->name;
	c->name = 0;
}

static void end_run(struct calls_tasks *c, uint64_t t)
{
	struct aio_event *e;

	if (!c->runs.n)
		return;
	e = &c->events.v[c->runs.v[--c->runs.n].event];
	e->end_ns = t;
	e->until = c->events.n;
}

/* The time at which the object is or was due, from the record's time. */
static uint64_t due(const struct calls_tasks *c, uint64_t t)
{
	const uint64_t most_us = UINT64_MAX / 4096;
	uint64_t after_ns = (c->after_us < most_us ? c->after_us : most_us) * 1000;
	uint64_t since_ns = (c->since_us < most_us ? c->since_us : most_us) * 1000;

	return after_ns ? t + after_ns : t - (since_ns < t ? since_ns : t);
}

void calls_tasks_mark(struct calls_tasks *c, enum preload_say what, uint64_t t, size_t calls)
{
	struct aio_event *e;

	if (what == PRELOAD_SAY_RAN) {
		end_run(c, t);
	} else if (what == PRELOAD_SAY_RUNS) {
		begin_run(c, t, calls);
	} else if (what == PRELOAD_SAY_DUE && c->object && !c->is_task) {
		e = add(c, AIO_DUE, t);
		e->end_ns = due(c, t);
	}
}

void calls_tasks_greenlet(struct calls_tasks *c, uint32_t function, bool hub)
{
	struct aio_event *e = c->runs.n ? &c->events.v[c->runs.v[c->runs.n - 1].event] : NULL;

	if (!e || e->loop != AIO_GREENLET || e->function)
		return;
	e->function = function;
	e->is_task = !hub;
}

void calls_tasks_greenlet_ends(struct calls_tasks *c, bool ended)
{
	struct aio_event *e = c->runs.n ? &c->events.v[c->runs.v[c->runs.n - 1].event] : NULL;

	if (!e || e->loop != AIO_GREENLET)
		return;
	e->how = ended ? AIO_RETURNED : AIO_SUSPENDED;
	/* It runs no Python: a hub written in C. */
	e->is_task &= e->function != 0;
}

void calls_tasks_begin(struct calls_tasks *c, uint32_t function, bool starts)
{
	struct task_run *run = &c->runs.v[c->runs.n - 1];
	struct aio_event *e = &c->events.v[run->event];

	run->placed = false;
	if (run->coroutines++ || e->function)
		return;
	e->function = function;
	e->starts = starts;
}

void calls_tasks_end(struct calls_tasks *c, enum preload_call_type type, uint32_t function,
                     bool library)
{
	struct task_run *run = &c->runs.v[c->runs.n - 1];
	struct aio_event *e = &c->events.v[run->event];

	/* The coroutine began before this run. */
	if (!run->coroutines)
		return;
	if (type == PRELOAD_CALL_YIELD && !run->placed) {
		e->place = function;
		e->line = c->line;
		run->placed = !library;
	}
	if (--run->coroutines)
		return;
	e->how = type == PRELOAD_CALL_YIELD    ? AIO_SUSPENDED
	         : type == PRELOAD_CALL_RETURN ? AIO_RETURNED
	                                       : AIO_THREW;
	if (e->how != AIO_SUSPENDED)
		e->place = e->line = 0;
}

void calls_tasks_close(struct calls_tasks *c, uint64_t t)
{
	while (c->runs.n)
		end_run(c, t);
}

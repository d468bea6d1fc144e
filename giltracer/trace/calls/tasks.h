/* SPDX-License-Identifier: MIT */
/* Turns what the records of Python calls tell about tasks of event loops into events for aio.h. */
#ifndef GILTRACER_TRACE_CALLS_TASKS_H
#define GILTRACER_TRACE_CALLS_TASKS_H

#include "preload/format.h"
#include "trace/aio.h"

/**
 * A task or another callback that is running.
 * @event: index of its event
 * @calls: number of calls that were open when it began
 * @coroutines: number of coroutines that are open within it
 * @placed: the place at which it is suspended is known to be in a function of the program
 */
struct task_run {
	size_t event, calls;
	uint64_t coroutines;
	bool placed;
};

/**
 * @runs: of the current thread, outermost first: a loop may run within another one
 * @object, @after_us, @since_us, @is_task, @loop, @name, @line: describe the next record
 */
struct calls_tasks {
	VEC(struct aio_event) events;
	VEC(struct task_run) runs;
	uint32_t process, thread;
	uint64_t object, after_us, since_us;
	bool is_task;
	enum aio_loop loop;
	uint32_t name, line;
};

void calls_tasks_done(struct calls_tasks *c);

/* Call before the records of a thread. */
void calls_tasks_thread(struct calls_tasks *c, uint32_t process, uint32_t thread);

/* A record without a time, which describes the next one. value: of PRELOAD_SAY_NAME, the id of the
 * name */
void calls_tasks_say(struct calls_tasks *c, enum preload_say what, uint64_t value);

/* A record RUNS, RAN or DUE. calls: number of open calls */
void calls_tasks_mark(struct calls_tasks *c, enum preload_say what, uint64_t t, size_t calls);

/* A record READY. function: the name of the function that put the object into the queue; 0:
 * unknown; creates: the object is a new task */
void calls_tasks_ready(struct calls_tasks *c, uint64_t t, uint32_t function, bool creates);

/* A greenlet runs. function: its outermost one; hub: it runs others, and is not one of the program's.
 * Does nothing if that is known, or if no greenlet runs. */
void calls_tasks_greenlet(struct calls_tasks *c, uint32_t function, bool hub);

/* The greenlet is about to end its run. ended: it has no open calls */
void calls_tasks_greenlet_ends(struct calls_tasks *c, bool ended);

/* A coroutine begins or continues while a task or callback is running. function: its name; starts:
 * it is known to begin */
void calls_tasks_begin(struct calls_tasks *c, uint32_t function, bool starts);

/* A coroutine ends or is suspended while a task or callback is running. library: it belongs to
 * Python's own library or to trio */
void calls_tasks_end(struct calls_tasks *c, enum preload_call_type type, uint32_t function,
                     bool library);

/* End all runs of the thread: nothing is known of it from here on. */
void calls_tasks_close(struct calls_tasks *c, uint64_t t);

#endif

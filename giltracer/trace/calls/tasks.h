/* SPDX-License-Identifier: MIT */
/* From the records of Python calls what they say of the tasks of event loops: events for aio.h. */
#ifndef GILTRACER_TRACE_CALLS_TASKS_H
#define GILTRACER_TRACE_CALLS_TASKS_H

#include "preload/format.h"
#include "trace/aio.h"

/**
 * A task or another callback that runs.
 * @event: index
 * @calls: that were open when it began
 * @coroutines: that are open within it
 * @placed: its place is that of a function that is the program's
 */
struct task_run {
	size_t event, calls;
	uint64_t coroutines;
	bool placed;
};

/**
 * @runs: of the thread at hand, outermost first: a loop may run within another one
 * @object, @after_us, @since_us, @is_task, @loop, @name, @line: what was said for the next record
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

/* What follows is of this thread. */
void calls_tasks_thread(struct calls_tasks *c, uint32_t process, uint32_t thread);

/* A record without a time; of a name its id. */
void calls_tasks_say(struct calls_tasks *c, enum preload_say what, uint64_t value);

/* RUNS, RAN and DUE; calls: how many are open. */
void calls_tasks_mark(struct calls_tasks *c, enum preload_say what, uint64_t t, size_t calls);

/* READY, by that function. */
void calls_tasks_ready(struct calls_tasks *c, uint64_t t, uint32_t function, bool creates);

/* A call of a coroutine, while something runs. starts: known to be the first one of it. */
void calls_tasks_begin(struct calls_tasks *c, uint32_t function, bool starts);

/* library: of Python's own. */
void calls_tasks_end(struct calls_tasks *c, enum preload_call_type type, uint32_t function,
                     bool library);

/* Nothing is known of the thread from here on. */
void calls_tasks_close(struct calls_tasks *c, uint64_t t);

#endif

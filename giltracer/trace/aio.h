/* SPDX-License-Identifier: MIT */
/*
 * Tasks of event loops: the life of each one, in parts that add up to it.
 *
 *	from    created, or end of the previous step: it waits from here on
 *	ready   put into its event loop's queue: it is late from here on
 *	start   taken from the queue by its thread: it runs from here to the end of the step
 *
 * A callback that does not belong to a task may itself have been in the queue before it woke the
 * task: a timer since it was due, or one of call_soon_threadsafe since that call. Then the task is
 * assumed to be ready since then. That is inferred; known_ns is the time when the task itself was
 * put into the queue.
 *
 * On uvloop, the time when a task was put into the queue is recorded only if it was created then,
 * or only yielded to other tasks. Otherwise it is unknown whether the task waited or was late. For
 * greenlets, it always is.
 */
#ifndef GILTRACER_TRACE_AIO_H
#define GILTRACER_TRACE_AIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define AIO_NONE UINT32_MAX

/* What put something into the queue: the thread, index in the slices; the task, AIO_NONE: none;
 * the function that called the library of the loop, id in the slices' names, 0: unknown. */
struct aio_waker {
	uint32_t thread, task, function;
};

/**
 * One step. from <= ready <= known <= start <= end.
 * @unknown: it is unknown when the task became ready; ready is start
 * @place, @line: where it waited before, as in struct aio_task
 */
struct aio_step {
	uint64_t from_ns, ready_ns, known_ns, start_ns, end_ns;
	uint32_t task, thread;
	struct aio_waker waker;
	uint32_t place, line;
	bool unknown;
};

enum aio_loop {
	AIO_ASYNCIO, /* asyncio's own */
	AIO_TRIO,
	AIO_UVLOOP,
	AIO_GREENLET, /* not a loop's tasks, but greenlets; their hub, if any, is not one of them */
};

const char *aio_loop_name(enum aio_loop loop);

enum aio_end {
	AIO_ALIVE, /* when the recording ended */
	AIO_DONE,
	AIO_RAISED, /* by an exception; cancelled tasks, too */
	AIO_LOST,   /* its memory was reused: it is unknown when it ended */
};

/**
 * @name: given by the program, id in the slices' names, 0: none
 * @function: of its coroutine, "NAME (FILE:LINE)"; 0: unknown
 * @created: its life is known from its creation by @creator on; else from its first step on
 * @first_ns, @last_ns: its life, which is the sum of these parts: running, waiting, late, and
 * either waiting or late
 * @inferred_ns: the inferred part of late
 * @run_ns: time of its first step; 0: none
 * @ready_ns, @known_ns: it became ready, as in struct aio_step, but never ran again; else 0
 * @place, @line: where it is suspended: the innermost function outside of Python's own library
 */
struct aio_task {
	uint32_t pid, thread, name, function;
	enum aio_loop loop;
	bool created;
	struct aio_waker creator;
	enum aio_end end;
	uint64_t first_ns, last_ns, steps;
	uint64_t running_ns, waiting_ns, late_ns, unknown_ns, inferred_ns, longest_late_ns;
	uint64_t run_ns, ready_ns, known_ns;
	uint32_t place, line;
};

/* Whether loops of this kind show when a task becomes ready. */
static inline bool aio_shows_ready(enum aio_loop loop)
{
	return loop != AIO_UVLOOP && loop != AIO_GREENLET;
}

/* @steps: by start within each process, one process after the other */
struct aio {
	VEC(struct aio_task) v;
	VEC(struct aio_step) steps;
};

void aio_done(struct aio *tasks);

/* ---- made from recorded events */

enum aio_event_kind {
	AIO_READY, /* a waker put the object into its queue */
	AIO_DUE,   /* it will be put there at end_ns, or was due then */
	AIO_RUN,   /* it ran until end_ns */
};

/* The result of a run of a coroutine. */
enum aio_how {
	AIO_UNKNOWN,
	AIO_SUSPENDED,
	AIO_RETURNED,
	AIO_THREW,
};

/**
 * @process: index; @thread: index in the slices
 * @object: its identity in its process; @is_task: a task of @loop; false: another callback
 * @function: READY: the one that called the loop's library; RUN: of the coroutine
 * @creates: READY: the task was created by this event
 * @starts: RUN: its coroutine had not run before
 * @name: RUN: of the task, 0: unknown
 * @place, @line: RUN: where it was suspended at its end
 * @until: RUN: index of the first event of its thread after its end; 0: unknown
 * @order: for aio_make
 */
struct aio_event {
	uint64_t time_ns, end_ns, object, until, order;
	uint32_t process, thread, function, name, place, line;
	uint8_t kind, how, loop;
	bool is_task, creates, starts;
};

struct aio_process {
	uint32_t pid;
	uint64_t end_ns; /* its life is known until then */
};

/* Sorts the events; those of a thread must be in order. For any events, the parts of a task's
 * life add up. Free with aio_done. */
void aio_make(struct aio *ret, struct aio_event *events, size_t count,
              const struct aio_process *processes);

#endif

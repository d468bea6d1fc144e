/* SPDX-License-Identifier: MIT */
/*
 * Tasks of asyncio: the life of each one, in parts that add up to it.
 *
 *	from      created, or the end of the step before: from here on it waits
 *	ready     it was put into its event loop's queue: from here on it is late
 *	start     its thread took it from there: from here on it runs, to the step's end
 *
 * A callback that is no task's may have lain in the queue itself before it woke the task: a timer
 * since it was due, one of call_soon_threadsafe since that was called. Then the task is taken to be
 * ready since then, which is inferred: known_ns is when it was itself put into the queue.
 */
#ifndef GILTRACER_TRACE_AIO_H
#define GILTRACER_TRACE_AIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define AIO_NONE UINT32_MAX

/* Who put something into the queue: a thread, index in the slices; in it a task, AIO_NONE: none;
 * the function that called asyncio, id in the slices' names, 0: unknown. */
struct aio_waker {
	uint32_t thread, task, function;
};

/**
 * One step. from <= ready <= known <= start <= end.
 * @unknown: when it became ready is not known: ready is start
 * @place, @line: where it waited before, as in struct aio_task
 */
struct aio_step {
	uint64_t from_ns, ready_ns, known_ns, start_ns, end_ns;
	uint32_t task, thread;
	struct aio_waker waker;
	uint32_t place, line;
	bool unknown;
};

enum aio_end {
	AIO_ALIVE, /* when the recording ended */
	AIO_DONE,
	AIO_RAISED, /* done, by an exception; a cancelled one, too */
	AIO_LOST,   /* its memory was used again: nobody knows when it went */
};

/**
 * @name: that somebody gave it, id in the slices' names, 0: none
 * @function: of its coroutine, "NAME (FILE:LINE)"; 0: unknown
 * @created: from first_ns on it is known, by @creator; else from its first step on
 * @first_ns, @last_ns: of its life; these parts add up to it: running, waiting, late, and of which it
 * is not known whether it waited or was late
 * @inferred_ns: of late, what is inferred
 * @run_ns: of its first step; 0: it had none
 * @ready_ns, @known_ns: since then it is late, as in struct aio_step, but never ran again; 0: it is not
 * @place, @line: where it is suspended: the innermost function that is not of Python's own library
 */
struct aio_task {
	uint32_t pid, thread, name, function;
	bool created;
	struct aio_waker creator;
	enum aio_end end;
	uint64_t first_ns, last_ns, steps;
	uint64_t running_ns, waiting_ns, late_ns, unknown_ns, inferred_ns, longest_late_ns;
	uint64_t run_ns, ready_ns, known_ns;
	uint32_t place, line;
};

/* @steps: by start, of all processes in turn */
struct aio {
	VEC(struct aio_task) v;
	VEC(struct aio_step) steps;
};

void aio_done(struct aio *tasks);

/* ---- from what was recorded */

enum aio_event_kind {
	AIO_READY, /* the object was put into its queue, by waker */
	AIO_DUE,   /* it is to be put there at end_ns */
	AIO_RUN,   /* it ran until end_ns */
};

/* How the coroutine of a run ended. */
enum aio_how {
	AIO_UNKNOWN,
	AIO_SUSPENDED,
	AIO_RETURNED,
	AIO_THREW,
};

/**
 * @process: index; @thread: index in the slices
 * @object: what distinguishes it in its process; @is_task: else it is another callback
 * @function: READY: that called asyncio; RUN: of the coroutine
 * @creates: READY: the task was made by this
 * @starts: RUN: its coroutine had not run before
 * @name: RUN: of the task, 0: not said
 * @place, @line: RUN: where it was suspended then
 * @order: of aio_make
 */
struct aio_event {
	uint64_t time_ns, end_ns, object, order;
	uint32_t process, thread, function, name, place, line;
	uint8_t kind, how;
	bool is_task, creates, starts;
};

struct aio_process {
	uint32_t pid;
	uint64_t end_ns; /* until then its life is known */
};

/* Sorts the events, of which those of a thread are in order. Any events give tasks whose parts add
 * up. Free with aio_done. */
void aio_make(struct aio *ret, struct aio_event *events, size_t count,
              const struct aio_process *processes);

#endif

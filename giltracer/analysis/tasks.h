/* SPDX-License-Identifier: MIT */
/*
 * Groups of tasks of the same kind of event loop: tasks whose names differ only in digits or, if
 * they were not named, tasks that run the same coroutine function. For each group: what its tasks
 * waited for, and what delayed them.
 */
#ifndef GILTRACER_ANALYSIS_TASKS_H
#define GILTRACER_ANALYSIS_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/facts.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/vec.h"
#include "trace/aio.h"

/* The number of groups, those with the longest delays, for which the cause of the delay is
 * determined. */
#define TASK_CAUSES 16

/* The maximum number of rows of each kind per group: those with the most time. */
#define TASK_ROWS 5

/**
 * A function in which tasks of the group waited, or that woke or created them.
 * @function: id in the slices' names, 0: unknown; @line: for waits: line of the await, 0: unknown
 */
struct task_row {
	uint32_t group, function, line;
	uint64_t count, ns;
};

struct task_rows {
	VEC(struct task_row) v; /* by group, most ns first, then most often */
};

/**
 * The longest time for which a task was ready before it ran.
 * @task: index; @step: index of the step that it delayed; AIO_NONE: the task never ran again
 * @inferred: the time since which it was ready is inferred
 * @thread: thread of the event loop, index in the model, MODEL_NONE: unknown
 * @gil_ns: the part in which the thread waited for the GIL; @holder: the thread that held it most,
 * MODEL_NONE: not known; @holder_frame: the holder's frame, id in the source's frames, 0: unknown
 * @busy_ns: the part in which the thread ran @function, id in the slices' names; 0: none stands out
 * @slept_ns: the part in which the thread was in the loop's selector, if that stands out: asleep,
 * or not yet on a CPU
 * @others: number of callbacks and steps that the thread began meanwhile
 */
struct task_delay {
	uint32_t task, step;
	uint64_t start_ns, end_ns;
	bool inferred;
	uint32_t thread, holder, holder_frame, function;
	uint64_t gil_ns, busy_ns, slept_ns, others;
};

/* A group of fewer requests has no fast half to compare with. */
#define REQUESTS_LEAST   12
#define REQUESTS_CAUSES  8
#define REQUESTS_SLOWEST 20

/* What a task did, or what kept it: GIL: it ran, and its thread waited for the GIL. LATE_GIL: it was late, and
 * its loop's thread waited for the GIL. */
enum request_state {
	REQUEST_RUNNING,
	REQUEST_GIL,
	REQUEST_LATE,
	REQUEST_LATE_GIL,
	REQUEST_WAITING,
	REQUEST_UNKNOWN,
	REQUEST_OTHERS, /* causes beyond REQUESTS_CAUSES */
	REQUEST_STATES,
};

/* @function, @line: WAITING: where, as in struct task_row; @causes: OTHERS: how many; @fast_ns, @slow_ns: sums
 * over the fast half and the slowest part */
struct request_cause {
	enum request_state state;
	uint32_t function, line;
	uint64_t causes, fast_ns, slow_ns;
};

/**
 * The tasks of a group that were created and finished while it was recorded, as requests.
 * @count: of them; 0: fewer than REQUESTS_LEAST
 * @fast, @slow: number of those in the fast half, and in the slowest part, a twentieth
 * @p50_ns, @p95_ns, @p99_ns, @longest_ns: of their lives
 * @causes: the largest differences of the means first; they add up to all of the lives
 * @slowest: tasks, the slowest first
 */
struct task_requests {
	uint64_t count, fast, slow;
	uint64_t p50_ns, p95_ns, p99_ns, longest_ns;
	VEC(struct request_cause) causes;
	VEC(uint32_t) slowest;
};

/**
 * @name: name with "*" for each run of digits (@named), or the coroutine function's name in the
 * slices; any bytes
 * @loop: the kind of loop that runs its tasks
 * @first: one of its tasks; @tasks, @done, @raised, @steps: numbers of all tasks, of finished ones,
 * of those that raised, and of steps
 * @running_ns, @waiting_ns, @late_ns, @unknown_ns: parts of their lives, which add up to @life_ns
 * @inferred_ns: the inferred part of late_ns; @gil_ns: the part of late_ns in which the loop's
 * thread waited for the GIL
 * @delay: the longest delay
 * @step: the longest step, from its start to its end, during which no other task of its loop ran
 */
struct task_group {
	struct str name;
	bool named;
	enum aio_loop loop;
	uint32_t first;
	uint64_t tasks, done, raised, steps;
	uint64_t life_ns, running_ns, waiting_ns, late_ns, unknown_ns, inferred_ns, gil_ns;
	struct task_delay delay, step;
	struct task_requests requests;
};

/**
 * @of: by task: its group
 * @waits, @wakers, @creators: rows
 */
struct task_groups {
	VEC(struct task_group) v; /* most late first */
	uint32_t *of;
	struct task_rows waits, wakers, creators;
};

/* There are no groups if no task was recorded. Free with task_groups_done. */
void task_groups_init(struct task_groups *ret, const struct recording_pass *pass);
void task_groups_done(struct task_groups *groups);

/* The first row of a group; *count: the number of its rows, at most TASK_ROWS. */
const struct task_row *task_rows_of(const struct task_rows *rows, uint32_t group, size_t *count);

/* Determines what the thread did during the delay, or during a step. delay's times must be set;
 * thread: index in the slices. */
void task_delay_explain(struct task_delay *delay, const struct recording_pass *pass,
                        uint32_t thread);

/*
 * How many tasks of a group ran, were late and waited, over the time of the recording: exactly or,
 * for a group with many steps, in equal parts of the recording.
 */

/* The maximum number of levels of a group. */
#define TASK_LEVELS 256

enum task_state {
	TASK_RUNNING,
	TASK_LATE,
	TASK_WAITING,
	TASK_UNKNOWN, /* it waited or was late */
	TASK_STATES,
};

/* A part of the recording: its length, and the time in it in each state, summed over the tasks. */
struct task_level {
	uint64_t dur_ns, ns[TASK_STATES];
};

/**
 * @v: contiguous, from the start of the recording to its end
 * @exact: no task changes its state within a level
 */
struct task_levels {
	VEC(struct task_level) v;
	bool exact;
};

/* The levels of the group with that index. Free with task_levels_done. */
void task_levels_init(struct task_levels *ret, const struct task_groups *groups,
                      const struct recording_pass *pass, uint32_t group);
void task_levels_done(struct task_levels *levels);

DEFINE_CLEANUP_IN(struct task_levels, task_levels_done);

#endif

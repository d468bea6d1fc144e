/* SPDX-License-Identifier: MIT */
/*
 * Tasks of asyncio in groups: those whose names differ in digits only or, where nobody named them,
 * those that run the same coroutine function. What each waited for, and what made it late.
 */
#ifndef GILTRACER_ANALYSIS_TASK_GROUPS_H
#define GILTRACER_ANALYSIS_TASK_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/recording.h"
#include "base/str.h"
#include "base/vec.h"
#include "trace/aio.h"

/* Groups for whose longest delay the cause is looked for: those with the longest. */
#define TASK_CAUSES 16

/* Rows that a group has of each kind, those with the most. */
#define TASK_ROWS 5

/**
 * A function that tasks of the group waited in, or that woke or created them.
 * @function: id in the slices' names, 0: unknown; @line: waited in: of the await, 0: unknown
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
 * @task: index; @step: index of the step that it came before, AIO_NONE: it never ran again
 * @inferred: since when it was ready is
 * @thread: of the event loop, index in the model, MODEL_NONE: unknown
 * @gil_ns: of it, the thread waited for the GIL; mostly while @holder had it, MODEL_NONE: nobody is
 * known to have; @holder_frame: that ran, id in the source's frames, 0: unknown
 * @busy_ns: of it, the thread ran @function, id in the slices' names; 0: none stands out
 * @slept_ns: of it, the thread was in the loop's selector, if that stands out: asleep, or not yet on a CPU
 * @others: callbacks and steps that the thread began meanwhile
 */
struct task_delay {
	uint32_t task, step;
	uint64_t start_ns, end_ns;
	bool inferred;
	uint32_t thread, holder, holder_frame, function;
	uint64_t gil_ns, busy_ns, slept_ns, others;
};

/**
 * @name: with "*" for each run of digits, or the coroutine function's as the slices have it; any
 * bytes. @named: the former
 * @first: one of its tasks; @tasks, @done, @raised, @steps: how many
 * @running_ns, @waiting_ns, @late_ns, @unknown_ns: parts of their lives, which add up to @life_ns
 * @inferred_ns: of late, what is inferred; @gil_ns: of late, the loop's thread waited for the GIL
 * @delay: the longest
 */
struct task_group {
	struct str name;
	bool named;
	uint32_t first;
	uint64_t tasks, done, raised, steps;
	uint64_t life_ns, running_ns, waiting_ns, late_ns, unknown_ns, inferred_ns, gil_ns;
	struct task_delay delay;
};

/**
 * @of: by task, its group
 * @waits, @wakers, @creators: rows
 */
struct task_groups {
	VEC(struct task_group) v; /* most late first */
	uint32_t *of;
	struct task_rows waits, wakers, creators;
};

/* None where no task was recorded. Free with task_groups_done. */
void task_groups_init(struct task_groups *ret, const struct recording_pass *pass);
void task_groups_done(struct task_groups *groups);

/* The rows of a group: the first of them, and how many, at most TASK_ROWS. */
const struct task_row *task_rows_of(const struct task_rows *rows, uint32_t group, size_t *count);

/* What kept the thread meanwhile: in task_delay.c. The times and the thread in the slices are known. */
void task_delay_explain(struct task_delay *delay, const struct recording_pass *pass,
                        uint32_t thread);

/* The model's thread, MODEL_NONE: it is not there. */
uint32_t task_thread(const struct recording_pass *pass, uint32_t thread);

#endif

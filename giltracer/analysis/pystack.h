/* SPDX-License-Identifier: MIT */
/*
 * Which Python stack ran when: the calls of a Python-side trace as a prefix tree, with the time
 * charged to each.
 */
#ifndef GILTRACER_ANALYSIS_PYSTACK_H
#define GILTRACER_ANALYSIS_PYSTACK_H

#include <stdint.h>

#include "analysis/facts.h"
#include "analysis/hogs.h"
#include "trace/stacks.h"

/* Python's own limit. Deeper calls are charged to the last frame within it. */
#define PYSTACK_DEPTH_MAX 1000

/* A stretch of a thread's time; it counts weight times its length. @span: of the lane; @frame: of that
 * span, as in struct span */
struct stretch {
	uint64_t start_ns, end_ns;
	uint32_t weight, span, frame;
};

struct stretches {
	struct stretch *v;
	size_t n;
	size_t alloc;
};

/* The spans of lane whose state is in mask (1 << state). Free with vec_done. */
struct stretches stretches_of_lane(const struct lane *lane, uint32_t mask);

/* The times at which thread held a GIL for which others waited, weighted by the number of waiters; without
 * the overdue holds, unless hogs is NULL. Free with vec_done. */
struct stretches stretches_blamed(const struct model *model, uint32_t thread,
                                  const struct hogs *hogs);

/* A call that has not ended yet. stack: its id, once somebody asked for it. */
struct open_call {
	uint64_t end_ns;
	uint32_t name, stack;
};

/* The stack of a function that was called in stack parent. stack 0: none */
struct calls_known {
	uint32_t parent, name, stack;
};

#define CALLS_KNOWN 256

/**
 * The calls that a thread is executing, at a time that only moves forward.
 * @st: its calls; NULL: none are known; @stacks: where its stacks get their ids, as callees of stack
 * @base; all are set by the user, who frees open with vec_done
 * @known: stacks that were looked up before, since a lookup takes long
 */
struct calls_now {
	const struct slice_thread *st;
	struct stacks *stacks;
	uint32_t base;
	size_t next;
	VEC(struct open_call) open;
	struct calls_known known[CALLS_KNOWN];
};

void calls_go_to(struct calls_now *calls, uint64_t time_ns);
/* The id of the stack that is executed; base: no call is known to be. */
uint32_t calls_stack(struct calls_now *calls);
/* That is so at least until then. */
uint64_t calls_until(const struct calls_now *calls);

struct pystack_times {
	uint64_t *v;
	size_t n;
	size_t alloc;
};

/**
 * @stacks: frames are functions; their names are ids of the trace's names
 * @ns: time charged to each stack itself, by id; id 0: no Python call is known to have run
 * @rest: the time of id 0, by frame of the stretch
 * @see: told of each charge, with @data; NULL: nobody is
 */
struct pystack {
	struct stacks *stacks;
	struct pystack_times ns, rest;
	void (*see)(void *data, const struct stretch *stretch, uint32_t stack, uint64_t ns);
	void *data;
};

/* slices are borrowed until pystack_done. */
void pystack_init(struct pystack *py, const struct slices *slices);
void pystack_done(struct pystack *py);

/* Charges stretches, in order of time, to the calls that st was running; if st is NULL, to stack
 * 0. */
void pystack_charge(struct pystack *py, const struct slice_thread *st,
                    const struct stretches *stretches);

/* A function's time of its own, over all its callers. @name: id in the trace's names; @stack: its
 * heaviest stack */
struct pystack_function {
	uint32_t name, stack;
	uint64_t ns;
};

/* @all_ns: all time that was charged, also to no function */
struct pystack_functions {
	struct pystack_function *v;
	size_t n;
	size_t alloc;
	uint64_t all_ns;
};

/* Most time first. Free with vec_done. */
struct pystack_functions pystack_functions(const struct pystack *py);

/* "function (/path/file.py:12)" of the last function of a stack; and its caller: of a function of a
 * library, the innermost one that belongs to the program, if there is one. NULL: none. */
const char *pystack_name(const struct pystack *py, uint32_t stack);
const char *pystack_caller(const struct pystack *py, uint32_t stack);

/* The calls of a model's thread; NULL if the trace has none. */
const struct slice_thread *pystack_find(const struct recording_pass *pass, uint32_t thread);

#endif

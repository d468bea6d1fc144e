/* SPDX-License-Identifier: MIT */
/*
 * Which Python stack ran when: the calls of a Python-side trace as a prefix tree, with the time
 * charged to each.
 */
#ifndef GILTRACER_ANALYSIS_PYSTACK_H
#define GILTRACER_ANALYSIS_PYSTACK_H

#include <stdint.h>

#include "analysis/facts.h"
#include "trace/stacks.h"

/* Python's own limit. Deeper calls are charged to the last frame within it. */
#define PYSTACK_DEPTH_MAX 1000

/* A stretch of a thread's time; it counts weight times its length. */
struct stretch {
	uint64_t start_ns, end_ns;
	uint32_t weight;
};

struct stretches {
	struct stretch *v;
	size_t n;
	size_t alloc;
};

/* The spans of lane whose state is in mask (1 << state). Free with vec_done. */
struct stretches stretches_of_lane(const struct lane *lane, uint32_t mask);

/* The times at which thread held a GIL for which others waited, weighted by the number of waiters.
 * Free with vec_done. */
struct stretches stretches_blamed(const struct model *model, uint32_t thread);

/* A call that has not ended yet. stack: its id, once somebody asked for it. */
struct open_call {
	uint64_t end_ns;
	uint32_t name, stack;
};

/**
 * The calls that a thread is executing, at a time that only moves forward.
 * @st: its calls; NULL: none are known; @stacks: where its stacks get their ids, as callees of stack
 * @base; all are set by the user, who frees open with vec_done
 */
struct calls_now {
	const struct slice_thread *st;
	struct stacks *stacks;
	uint32_t base;
	size_t next;
	VEC(struct open_call) open;
};

void calls_go_to(struct calls_now *calls, uint64_t time_ns);
/* The id of the stack that is executed; base: no call is known to be. */
uint32_t calls_stack(struct calls_now *calls);
/* That is so at least until then. */
uint64_t calls_until(const struct calls_now *calls);

/**
 * @stacks: frames are functions; their names are ids of the trace's names
 * @ns: time charged to each stack itself, by id; id 0: no Python call is known to have run
 */
struct pystack {
	struct stacks *stacks;
	struct {
		uint64_t *v;
		size_t n;
		size_t alloc;
	} ns;
};

/* slices are borrowed until pystack_done. */
void pystack_init(struct pystack *py, const struct slices *slices);
void pystack_done(struct pystack *py);

/* Charges stretches, in order of time, to the calls that st was running; if st is NULL, to stack
 * 0. */
void pystack_charge(struct pystack *py, const struct slice_thread *st,
                    const struct stretches *stretches);

/**
 * The function with the most time of its own, over all its callers.
 * @name: id in the trace's names
 * @stack: its heaviest stack, 0: none
 * @ns, @all_ns: its time, and all time that was charged
 */
struct pystack_top {
	uint32_t name, stack;
	uint64_t ns, all_ns;
};

struct pystack_top pystack_top(const struct pystack *py);

/* The calls of a model's thread; NULL if the trace has none. */
const struct slice_thread *pystack_find(const struct recording_pass *pass, uint32_t thread);

#endif

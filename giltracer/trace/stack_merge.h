/* SPDX-License-Identifier: MIT */
/*
 * Python frames among the native ones: the calls that a Python-side trace knows to be running on a
 * thread at a time are put on top of the native frames that evaluate Python (STACK_EVAL).
 *
 * Which native frame runs which Python frame is said only where it follows. Up to CPython 3.10 each
 * evaluation runs one Python frame, and calls that began before the trace are the outer ones: so
 * the innermost fit, and outer evaluations for which the trace has no call are marked
 * STACK_MISMATCH. From 3.11 on one evaluation may run several Python frames: with one evaluation
 * all frames are its own; with more the innermost Python frame is the innermost evaluation's, and
 * the frames above it stand there too, in their order, but marked STACK_MISMATCH.
 */
#ifndef GILTRACER_TRACE_STACK_MERGE_H
#define GILTRACER_TRACE_STACK_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct names;
struct slices;
struct stacks;

/**
 * @slices: of the same execution as the stacks
 * @names: of the stacks
 * @one_to_one: CPython up to 3.10
 */
struct join_options {
	const struct slices *slices;
	struct names *names;
	struct stacks *stacks;
	bool one_to_one;
};

/* How stacks fared. @bare: the trace has no call there, so nothing was added. */
struct join_stats {
	uint64_t joined, mismatched, bare;
};

struct join;

/* All is borrowed until join_free. */
struct join *join_new(const struct join_options *options);
void join_free(struct join *join);

/* The stack of thread tid at time_ns with its Python frames; the stack itself if there are none.
 * Fast if the times of a thread ascend. */
uint32_t join_stack(struct join *join, uint32_t stack, uint64_t time_ns, uint32_t pid,
                    uint32_t tid);

const struct join_stats *join_stats(const struct join *join);

DEFINE_CLEANUP(struct join *, join_free);

#endif

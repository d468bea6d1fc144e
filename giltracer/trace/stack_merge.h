/* SPDX-License-Identifier: MIT */
/*
 * Inserts Python frames among native ones: the calls in progress on a thread, according to a
 * Python-side trace, are put on top of the native frames that evaluate Python (STACK_EVAL).
 *
 * The native frame of a Python frame is stated only where it is certain. Up to CPython 3.10, each
 * evaluation runs one Python frame, and calls that began before the trace are the outer ones: so
 * the innermost frames match, and outer evaluations for which the trace has no call are marked
 * STACK_MISMATCH. From 3.11 on, one evaluation may run several Python frames. If there is only one
 * evaluation, it runs all frames; if there are more, only the innermost Python frame is known to
 * belong to the innermost evaluation, and the frames above it are put there, too, in their order,
 * but marked STACK_MISMATCH.
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

/* Number of stacks by result. @bare: the trace has no call there, so nothing was added. */
struct join_stats {
	uint64_t joined, mismatched, bare;
};

struct join;

/* All pointers are borrowed until join_free. */
struct join *join_new(const struct join_options *options);
void join_free(struct join *join);

/* The stack of thread tid at time_ns with its Python frames; the stack itself if there are none.
 * Fast if the times of a thread ascend. */
uint32_t join_stack(struct join *join, uint32_t stack, uint64_t time_ns, uint32_t pid,
                    uint32_t tid);

const struct join_stats *join_stats(const struct join *join);

DEFINE_CLEANUP(struct join *, join_free);

#endif

/* SPDX-License-Identifier: MIT */
/* Waiting between groups of threads: a thousand threads that all wait for each other make a million
 * pairs, but one row. */
#ifndef GILTRACER_ANALYSIS_GROUP_BLAME_H
#define GILTRACER_ANALYSIS_GROUP_BLAME_H

#include "analysis/thread_groups.h"

enum wait_kind {
	WAIT_FOR_GIL,  /* rows of the model's blame */
	WAIT_FOR_LOCK, /* of its lock_blame, with state GIL_LOCK_WAIT */
	WAIT_STOPPED,  /* and with GIL_STOPPED */
	WAIT_FOR_CPU,  /* of its cpu_blame: runnable without a CPU */
};

/**
 * The sum of the model's rows between two groups, or between a group and a holder that is not a
 * thread.
 * @waiter, @holder: groups; holder may be MODEL_NONE or MODEL_UNKNOWN
 * @name: of WAIT_FOR_CPU with holder MODEL_NONE: as in struct model_cpu_blame
 * @pairs: number of rows of the model; @wait_ns: their sum
 * @longest_ns, @longest_at_ns, @longest_waiter, @longest_holder: longest overlap and its threads;
 *	for WAIT_FOR_CPU the largest row, without a time
 */
struct group_blame {
	enum wait_kind kind;
	uint32_t waiter, holder, name;
	uint64_t pairs, wait_ns;
	uint64_t longest_ns, longest_at_ns;
	uint32_t longest_waiter, longest_holder;
};

/* @wait_ns: sum over all rows */
struct group_blames {
	VEC(struct group_blame) v;
	uint64_t wait_ns;
};

/* Number of the model's rows of that kind; WAIT_FOR_LOCK and WAIT_STOPPED are counted together. */
size_t blame_pair_count(const struct model *model, enum wait_kind kind);

/* One of these rows, as if each thread were a group of its own: waiter and holder are threads. */
struct group_blame blame_pair(const struct model *model, enum wait_kind kind, size_t i);

/* The rows, most wait first. WAIT_FOR_LOCK and WAIT_STOPPED are returned together, for either
 * argument. Free with vec_done(&blames.v). */
struct group_blames group_blames_find(const struct thread_groups *groups, const struct model *model,
                                      enum wait_kind kind);

#endif

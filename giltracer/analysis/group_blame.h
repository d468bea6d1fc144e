/* SPDX-License-Identifier: MIT */
/* Who waited for whom, by groups: a thousand threads that all wait for each other make a million
 * pairs, but one row. */
#ifndef GILTRACER_ANALYSIS_GROUP_BLAME_H
#define GILTRACER_ANALYSIS_GROUP_BLAME_H

#include "analysis/thread_groups.h"

enum wait_kind {
	WAIT_FOR_GIL,  /* of the model's blame */
	WAIT_FOR_LOCK, /* of its lock_blame, of state GIL_LOCK_WAIT, */
	WAIT_STOPPED,  /* and of GIL_STOPPED */
	WAIT_FOR_CPU,  /* of its cpu_blame: runnable without a CPU */
};

/**
 * Rows of the model between two groups, or a group and whoever is no thread.
 * @waiter, @holder: groups; holder may be MODEL_NONE or MODEL_UNKNOWN
 * @name: WAIT_FOR_CPU, of holder MODEL_NONE: as in struct model_cpu_blame
 * @pairs: how many rows of the model it is; @wait_ns: their sum
 * @longest_ns, @longest_at_ns, @longest_waiter, @longest_holder: the longest overlap, and of which
 *	threads; of WAIT_FOR_CPU the largest row, and no time
 */
struct group_blame {
	enum wait_kind kind;
	uint32_t waiter, holder, name;
	uint64_t pairs, wait_ns;
	uint64_t longest_ns, longest_at_ns;
	uint32_t longest_waiter, longest_holder;
};

/* @wait_ns: the sum of all */
struct group_blames {
	VEC(struct group_blame) v;
	uint64_t wait_ns;
};

/* How many rows of that kind the model has; WAIT_FOR_LOCK and WAIT_STOPPED are counted together. */
size_t blame_pair_count(const struct model *model, enum wait_kind kind);

/* One of them, as if each thread were a group of its own: waiter and holder are threads. */
struct group_blame blame_pair(const struct model *model, enum wait_kind kind, size_t i);

/* Most wait first. WAIT_FOR_LOCK and WAIT_STOPPED are returned together, for either argument. Free
 * with vec_done(&blames.v). */
struct group_blames group_blames_find(const struct thread_groups *groups, const struct model *model,
                                      enum wait_kind kind);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Groups of threads whose names differ only in digits, such as those of a pool or of a server that
 * starts one for each request. If there are many threads, groups keep tables readable.
 */
#ifndef GILTRACER_ANALYSIS_GROUPS_H
#define GILTRACER_ANALYSIS_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/facts.h"
#include "base/str.h"
#include "base/vec.h"

#define GROUPS_FROM       12 /* with more threads, tables show groups */
#define GROUP_MIN_THREADS 4  /* smaller groups are shown as single threads nevertheless */

/**
 * @name: with "*" for each run of digits; any bytes
 * @first: one of its threads; @threads: their number
 * @sum: the sum of their numbers as one thread; the maximum of the longest waits, holds and stops; no
 * lanes
 */
struct thread_group {
	struct str name;
	uint32_t first, threads;
	struct model_thread sum;
};

/* In the order of facts_compare_threads. @of: by thread: its group. Every thread is in a group,
 * possibly alone; main threads are always alone. */
struct thread_groups {
	VEC(struct thread_group) v;
	uint32_t *of;
};

/* Free with thread_groups_done. */
void thread_groups_init(struct thread_groups *groups, const struct recording_pass *pass);
void thread_groups_done(struct thread_groups *groups);

/* The same for tables: small groups, and all groups if there are few threads, are split into single
 * threads. */
void thread_groups_init_table(struct thread_groups *groups, const struct recording_pass *pass);

/* Waiting between groups of threads: a thousand threads that all wait for each other make a million
 * pairs, but one row. */

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

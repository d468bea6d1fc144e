/* SPDX-License-Identifier: MIT */
/*
 * Groups of threads whose names differ only in digits, such as those of a pool or of a server that
 * starts one for each request. If there are many threads, groups keep tables readable.
 */
#ifndef GILTRACER_ANALYSIS_THREAD_GROUPS_H
#define GILTRACER_ANALYSIS_THREAD_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/recording.h"
#include "base/str.h"
#include "base/vec.h"

#define GROUPS_FROM       12 /* with more threads, tables show groups */
#define GROUP_MIN_THREADS 4  /* smaller groups are shown as single threads nevertheless */

/**
 * @name: with "*" for each run of digits; any bytes
 * @first: one of its threads; @threads: their number
 * @sum: the sum of their times as one thread; the maximum of the longest waits, holds and stops; no
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

#endif

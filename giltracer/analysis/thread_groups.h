/* SPDX-License-Identifier: MIT */
/*
 * Groups: threads whose names differ in digits only, such as those of a pool or of a server that
 * starts one for each request. Where there are many threads, groups are what a person can look at.
 */
#ifndef GILTRACER_ANALYSIS_THREAD_GROUPS_H
#define GILTRACER_ANALYSIS_THREAD_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/recording.h"
#include "base/str.h"
#include "base/vec.h"

#define GROUPS_FROM       12 /* more threads than that are shown in groups */
#define GROUP_MIN_THREADS 4  /* fewer of a name are shown one by one nevertheless */

/**
 * @name: with "*" for each run of digits; any bytes
 * @first: one of its threads; @threads: how many it has
 * @sum: their times added up, as of one thread; of the longest waits, holds and stops the maximum.
 * No lanes
 */
struct thread_group {
	struct str name;
	uint32_t first, threads;
	struct model_thread sum;
};

/* In the order of facts_compare_threads. @of: by thread, its group. Every thread is in one, alone
 * perhaps; main threads always are. */
struct thread_groups {
	VEC(struct thread_group) v;
	uint32_t *of;
};

/* Free with thread_groups_done. */
void thread_groups_init(struct thread_groups *groups, const struct recording_pass *pass);
void thread_groups_done(struct thread_groups *groups);

/* The same for tables: small groups, and all where there are few threads, are taken apart. */
void thread_groups_init_table(struct thread_groups *groups, const struct recording_pass *pass);

#endif

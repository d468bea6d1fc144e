/* SPDX-License-Identifier: MIT */
/* What is exported of one process: its threads in groups of names that differ in digits only. */
#ifndef GILTRACER_METRICS_PROCESS_H
#define GILTRACER_METRICS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "live/totals.h"

/* Groups and GILs that have series of their own, the first that there were; all others are one.
 * With the series of the process at most METRICS_SERIES. */
#define METRICS_GROUPS 7
#define METRICS_GILS   4
#define METRICS_SERIES 200

/* For whom a group waits: nobody, the groups in their order, all others. */
#define METRICS_NONE    "none"
#define METRICS_OTHER   "other"
#define METRICS_NOBODY  0
#define METRICS_OTHERS  (METRICS_GROUPS + 1)
#define METRICS_HOLDERS (METRICS_GROUPS + 2)

/**
 * @name: of its threads, ready to print; owned
 * @labels: of its series but for pid, ready to print; owned
 * @gil: index in gils
 * @...: sums of its threads, those that have ended included
 * @wait_for_ns: of wait_ns, by holder: they add up to it
 * @threads: that are there now
 */
struct metrics_group {
	char *name, *labels;
	uint32_t gil;
	uint64_t hold_ns, wait_ns, kept_ns, life_ns;
	uint64_t wait_for_ns[METRICS_HOLDERS];
	unsigned threads;
};

/* @watched_ns: how long it has been there; 0: it has not; @waiters: threads that wait for it now */
struct metrics_gil {
	uint64_t watched_ns;
	unsigned waiters;
};

/* Of completed holds or waits. @longest: the thread of the longest; longest_ns 0: there is none */
struct metrics_histogram {
	uint64_t buckets[TOTALS_BUCKETS], sum_ns;
	uint64_t longest_ns, longest_end_ns;
	const struct totals_thread *longest;
};

/**
 * @pid: number of the process here; @parent
 * @command: what the kernel calls it, ready to print; owned
 * @arguments: how it was started, likewise; NULL: not to be said
 * @page: owned; @observed: see totals_is_observed
 * @pidfd: readable when the process has ended; -1: the kernel has no such thing
 * @created_ms: Unix time, when counting began
 * @snapshot: the last one
 * @cpu_ns: CPU time of its threads, those that have ended included
 * @group_of: by slot, index in groups + 1; 0: not known yet
 * @holders: by GIL and group of the page, index in wait_for_ns; 0: not known yet
 * @gils: the last is all others
 */
struct metrics_process {
	pid_t pid, parent;
	char *command, *arguments;
	struct totals *page;
	bool observed;
	int pidfd;
	uint64_t created_ms;
	struct totals_snapshot snapshot;
	uint64_t cpu_ns;
	VEC(uint16_t) group_of;
	uint8_t holders[TOTALS_WAITED][TOTALS_GROUPS];
	VEC(struct metrics_group) groups;
	struct metrics_gil gils[METRICS_GILS + 1];
	struct metrics_histogram holds, waits;
};

/* Of the page of process pid, which is the process's from now on. NULL: it is not there any more. */
struct metrics_process *metrics_process_new(struct totals *page, pid_t pid);
void metrics_process_free(struct metrics_process *process);

/* From now on its arguments are in a label: the first bytes of them, separated by spaces. */
void metrics_process_label_arguments(struct metrics_process *process);

/* How it is now. False: its page was cut off. */
bool metrics_process_read(struct metrics_process *process);

/* Escaped for the value of a label; caller frees. */
char *metrics_label_value(const char *text);

DEFINE_CLEANUP(struct metrics_process *, metrics_process_free);

#endif

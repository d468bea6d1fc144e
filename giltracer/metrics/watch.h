/* SPDX-License-Identifier: MIT */
/* The exported processes: those with pages in a folder, as they come and go. */
#ifndef GILTRACER_METRICS_WATCH_H
#define GILTRACER_METRICS_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "live/totals.h"

/* The exported values of one process, with its threads in groups whose names differ in digits
 * only. */

/* The number of groups and GILs that have series of their own, in the order of appearance; all
 * others share one. With the series of the process itself, there are at most METRICS_SERIES. */
#define METRICS_GROUPS 7
#define METRICS_GILS   4
#define METRICS_SERIES 264

/* What a group waits for: nobody, each group in its order, all others. */
#define METRICS_NONE    "none"
#define METRICS_OTHER   "other"
#define METRICS_NOBODY  0
#define METRICS_OTHERS  (METRICS_GROUPS + 1)
#define METRICS_HOLDERS (METRICS_GROUPS + 2)

/**
 * @name: of its threads, escaped for a label; owned
 * @labels: of its series, except pid, escaped; owned
 * @gil: index in gils
 * @hold_ns, @wait_ns, @kept_ns, @life_ns: sums over its threads, including those that have ended
 * @wait_for_ns: wait_ns by holder; the sum is wait_ns
 * @lock_wait_ns: completed waits for locks, by line of the snapshot
 * @threads: present threads
 */
struct metrics_group {
	char *name, *labels;
	uint32_t gil;
	uint64_t hold_ns, wait_ns, kept_ns, life_ns;
	uint64_t wait_for_ns[METRICS_HOLDERS];
	uint64_t lock_wait_ns[TOTALS_LOCKS];
	unsigned threads;
};

/* @watched_ns: for how long it has been watched; 0: it does not exist; @waiters: present waiters */
struct metrics_gil {
	uint64_t watched_ns;
	unsigned waiters;
};

/* Completed holds or waits. @longest: the thread of the longest one; longest_ns 0: none */
struct metrics_histogram {
	uint64_t buckets[TOTALS_BUCKETS], sum_ns;
	uint64_t longest_ns, longest_end_ns;
	const struct totals_thread *longest;
};

/**
 * @pid: number of the process in our namespace, and of its @parent
 * @command: its name in the kernel, escaped for a label; owned
 * @arguments: its command line, likewise; NULL: not exported
 * @page: owned
 * @pidfd: readable when the process has ended; -1: the kernel does not support pidfds
 * @created_ms: Unix time when counting began
 * @snapshot: the last one
 * @cpu_ns: CPU time of its threads, including those that have ended
 * @group_of: by slot, index in groups + 1; 0: not known yet
 * @holders: by GIL and group of the page, index in wait_for_ns; 0: not known yet
 * @gils: the last one stands for all others
 */
struct metrics_process {
	pid_t pid, parent;
	char *command, *arguments;
	struct totals *page;
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

/* A process with its page, which it owns from now on. NULL: the process has ended. */
struct metrics_process *metrics_process_new(struct totals *page, pid_t pid);
void metrics_process_free(struct metrics_process *process);

/* Export the arguments, too, as a label: their first bytes, separated by spaces. */
void metrics_process_label_arguments(struct metrics_process *process);

/* Read the present values. False: the page was truncated. */
bool metrics_process_read(struct metrics_process *process);

/* Escaped for the value of a label; caller frees. */
char *metrics_label_value(const char *text);

DEFINE_CLEANUP(struct metrics_process *, metrics_process_free);

/* Further processes have no series, but are counted. Each process takes two descriptors. */
#define METRICS_PROCESSES 300

/**
 * @root: only this process and its descendants; 0: all
 * @own: only @root, which has this number in its own namespace; 0: others, too
 * @ours: we made the folder, and remove the files of dead processes
 */
struct watch_folder {
	char *path;
	pid_t root, own;
	bool ours;
};

/**
 * @processes: in the order of discovery, as read by the last watch_update()
 * @left_out: the number of processes beyond METRICS_PROCESSES
 * @label_arguments: export the programs' arguments; set before the first process is added
 */
struct watch {
	VEC(struct watch_folder) folders;
	VEC(struct metrics_process *) processes;
	unsigned left_out;
	bool label_arguments;
};

/* Add all processes with pages in a folder, which we made. */
void watch_add_folder(struct watch *watch, const char *path);

/* Add a running process and its descendants. Returns 1 if its page ends with its observer, though the process goes
 * on. Errors are those of totals_open_process. */
int watch_add_process(struct watch *watch, pid_t pid, struct error *err);

/* Add a running process without its descendants, as long as it has a page in this folder, where it has the number
 * own. */
void watch_add_observed(struct watch *watch, pid_t pid, const char *path, uint32_t own);

/* Find new processes, forget those that have ended, and read all. */
void watch_update(struct watch *watch);

void watch_done(struct watch *watch);

#endif

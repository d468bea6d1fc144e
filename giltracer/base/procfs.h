/* SPDX-License-Identifier: MIT */
/*
 * Files in /proc/PID and /proc/PID/task/TID (proc(5)). tid 0: of the process as a whole. A process may
 * end, or belong to another user, at any time, so nothing here is an error.
 */
#ifndef GILTRACER_BASE_PROCFS_H
#define GILTRACER_BASE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

/* The caller frees it. name "": the folder. */
char *procfs_path(pid_t pid, pid_t tid, const char *name);

/* The contents; caller frees. NULL: it cannot be read, or has more than 16 MiB. ret_len may be NULL. */
char *procfs_read(pid_t pid, pid_t tid, const char *name, size_t *ret_len);

/* The name; caller frees, NULL: it cannot be read. */
char *procfs_comm(pid_t pid, pid_t tid);

/* @name: of the thread, cut at 15 bytes by the kernel; @flags: PF_…; @start_time: in clock ticks since boot */
struct procfs_stat {
	char name[64];
	char state;
	pid_t parent;
	unsigned long flags;
	uint64_t start_time;
};

bool procfs_stat(struct procfs_stat *ret, pid_t pid, pid_t tid);

/* The number of a thread, or of a process if tid is 0, in its own PID namespace; unknown: as in ours. */
uint32_t procfs_own_number(pid_t pid, pid_t tid);

/* Whether a process sees other files than we do. */
bool procfs_is_elsewhere(pid_t pid);

/* Whether two processes are in the same container: they see the same files and numbers. */
bool procfs_is_beside(pid_t pid, pid_t other);

struct procfs_threads {
	VEC(pid_t) v;
};

/* Appends the numbers of all threads. False: there is no such process. Free with vec_done. */
bool procfs_threads(struct procfs_threads *ret, pid_t pid);

/* A line of maps. @path: "" if it has none; points into the text */
struct procfs_mapping {
	uint64_t start, end, offset, inode;
	unsigned major, minor;
	char rights[5];
	const char *path;
};

/* Takes the next line off the text of maps, which is changed; *text begins after it. Returns false at the
 * end. Lines of another form are skipped. */
bool procfs_next_mapping(struct procfs_mapping *ret, char **text);

/**
 * The CPU limit of a control group, and how often it stopped the processes in it.
 * @quota_us: CPU time in each period of @period_us; 0: no limit, or not known
 * @periods: number of periods in which the group ran; @throttled: of these, in which it used up its quota
 */
struct cpu_quota {
	uint64_t quota_us, period_us, periods, throttled;
};

#endif

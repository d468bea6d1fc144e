/* SPDX-License-Identifier: MIT */
/* The kernel's list of a process's threads: /proc/PID/task. */
#ifndef GILTRACER_LIVE_TASKS_H
#define GILTRACER_LIVE_TASKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "trace/samples.h"

/**
 * @tid: in our PID namespace; @own_tid: in the process's own
 * @name, @state: see struct snapshot_thread; as of the last look at all threads
 * @activity, @futex, @sp: see struct activity; as of the last tasks_look
 * @fd: of its syscall file; -1: not open; @opens: the file is opened for each look instead
 */
struct task {
	uint32_t tid, own_tid;
	char name[16];
	char state;
	enum sample_activity activity;
	uint64_t futex, sp;
	int fd;
	bool opens, seen;
};

/* { 0 } is empty. */
struct tasks {
	VEC(struct task) v; /* by tid */
	struct idmap by_tid, by_own_tid;
	uint64_t read_ns;
};

/* Update the activity of each thread, and the list of threads if that was read long enough ago
 * or again is true. Error ESRCH: the process no longer exists. */
int tasks_look(struct tasks *tasks, pid_t pid, bool again, struct error *err);
void tasks_done(struct tasks *tasks);

/* The thread with this number in the process's own PID namespace; NULL: none. */
const struct task *tasks_find(const struct tasks *tasks, uint32_t own_tid);

/* ---- finds the C stack of a thread in the memory of a process */

/**
 * The mapping that contains an address, from low to high; high is 0 if there is none. The stack of
 * a thread other than the main one ends with the data to which its pthread_t points.
 * @of_main: it is the main thread's stack
 */
struct cstack {
	uint64_t low, high;
	bool of_main;
};

struct cstack cstack_find(pid_t pid, uint64_t address);

#endif

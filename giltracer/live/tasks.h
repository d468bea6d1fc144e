/* SPDX-License-Identifier: MIT */
/* The threads of a process as the kernel knows them: /proc/PID/task. */
#ifndef GILTRACER_LIVE_TASKS_H
#define GILTRACER_LIVE_TASKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "live/activity.h"

/**
 * @tid: here; @own_tid: in the process's own PID namespace
 * @name, @state: see struct snapshot_thread; as of the last look at all threads
 * @activity, @futex: see struct activity; as of the last tasks_look
 * @fd: of its syscall file, -1: it is not kept open; @opens: it is opened for each look
 */
struct task {
	uint32_t tid, own_tid;
	char name[16];
	char state;
	enum sample_activity activity;
	uint64_t futex;
	int fd;
	bool opens, seen;
};

/* { 0 } is none. */
struct tasks {
	VEC(struct task) v; /* by tid */
	uint64_t read_ns;
};

/* Updates what each thread does now, and the list of threads if it was read a while ago or again is
 * true. Errors: ESRCH the process no longer exists. */
int tasks_look(struct tasks *tasks, pid_t pid, bool again, struct error *err);
void tasks_done(struct tasks *tasks);

/* The thread by its number in the process's own PID namespace; NULL: there is none. */
const struct task *tasks_find(const struct tasks *tasks, uint32_t own_tid);

#endif

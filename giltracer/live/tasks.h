/* SPDX-License-Identifier: MIT */
/* The threads of a process as the kernel knows them: /proc/PID/task. */
#ifndef GILTRACER_LIVE_TASKS_H
#define GILTRACER_LIVE_TASKS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "live/activity.h"

/**
 * @tid: here; @own_tid: in the process's own PID namespace
 * @name, @state: see struct snapshot_thread
 * @activity, @futex: see struct activity
 */
struct task {
	uint32_t tid, own_tid;
	char name[16];
	char state;
	enum sample_activity activity;
	uint64_t futex;
};

struct tasks {
	VEC(struct task) v; /* by tid */
};

/* Errors: ESRCH there is no such process any more. Done by tasks_done. */
int tasks_read(struct tasks *ret, pid_t pid, struct error *err);
void tasks_done(struct tasks *tasks);

/* By its number in the process's own PID namespace; NULL: there is none. */
const struct task *tasks_find(const struct tasks *tasks, uint32_t own_tid);

#endif

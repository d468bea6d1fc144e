/* SPDX-License-Identifier: MIT */
/*
 * Threads of a running program that sleep, or are stopped, throughout a recording. They have no
 * events, so nothing else tells them from threads of which nothing is known. Proof: the kernel counts
 * how often it gave each thread a CPU (/proc/PID/task/TID/schedstat).
 */
#ifndef GILTRACER_RECORD_ASLEEP_H
#define GILTRACER_RECORD_ASLEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "live/snapshot.h"
#include "session/session.h"

struct asleep_thread {
	struct session_slept slept;
	uint64_t slices;
};

struct asleep {
	VEC(struct asleep_thread) v;
};

/* Before the recording: lists the threads of a process that sleep or are stopped. Returns whether these
 * are all of its threads. */
bool asleep_begin(struct asleep *asleep, pid_t pid);

/* After the recording, before asleep_end: takes from a snapshot of the process which threads are without
 * the GIL, and removes those that hold it or wait for it: these are not idle. */
void asleep_look(struct asleep *asleep, pid_t pid, const struct snapshot *snapshot);

/* Removes those that have run since. Returns whether all threads of the process were stopped and
 * have not run. */
bool asleep_end(struct asleep *asleep, pid_t pid);

/* After asleep_end: whether no thread of the process has run. */
bool asleep_is_all(const struct asleep *asleep, pid_t pid);

void asleep_done(struct asleep *asleep);

#endif

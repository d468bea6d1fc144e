/* SPDX-License-Identifier: MIT */
/* What a thread does, by the system call that it is in: /proc/PID/task/TID/syscall. */
#ifndef GILTRACER_LIVE_ACTIVITY_H
#define GILTRACER_LIVE_ACTIVITY_H

#include <stdint.h>
#include <sys/types.h>

#include "trace/samples.h"

/**
 * @activity: SAMPLE_UNKNOWN if the text says nothing
 * @futex: address of the futex that it sleeps for; 0: it sleeps for none
 */
struct activity {
	enum sample_activity activity;
	uint64_t futex;
};

/* Of the file's text, terminated; pid: whose descriptors the call is about. */
struct activity activity_of(const char *text, pid_t pid);

#endif

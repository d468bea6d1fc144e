/* SPDX-License-Identifier: MIT */
/* What a thread is doing, judged by its present system call: /proc/PID/task/TID/syscall. */
#ifndef GILTRACER_LIVE_ACTIVITY_H
#define GILTRACER_LIVE_ACTIVITY_H

#include <stdint.h>
#include <sys/types.h>

#include "trace/samples.h"

/**
 * @activity: SAMPLE_UNKNOWN if the text does not tell
 * @futex: address of the futex for which the thread sleeps; 0: none
 */
struct activity {
	enum sample_activity activity;
	uint64_t futex;
};

/* text: the contents of the file, terminated; pid: the process whose descriptors the call uses. */
struct activity activity_of(const char *text, pid_t pid);

#endif

/* SPDX-License-Identifier: MIT */
/* Which memory of a process is the C stack of a thread. */
#ifndef GILTRACER_LIVE_CSTACK_H
#define GILTRACER_LIVE_CSTACK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * The mapping that an address is in, low to high; that of another thread than the main one ends with
 * what its pthread_t points to. Not a mapping: high is 0.
 * @of_main: it is the main thread's stack
 */
struct cstack {
	uint64_t low, high;
	bool of_main;
};

struct cstack cstack_find(pid_t pid, uint64_t address);

#endif

/* SPDX-License-Identifier: MIT */
/* Finds the C stack of a thread in the memory of a process. */
#ifndef GILTRACER_LIVE_CSTACK_H
#define GILTRACER_LIVE_CSTACK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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

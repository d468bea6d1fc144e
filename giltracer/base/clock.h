/* SPDX-License-Identifier: MIT */
/* The clock of all times in a recording. */
#ifndef GILTRACER_BASE_CLOCK_H
#define GILTRACER_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SECOND UINT64_C(1000000000)
#define NS_PER_MS     UINT64_C(1000000)

/* CLOCK_MONOTONIC, in ns. */
static inline uint64_t clock_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SECOND + (uint64_t)ts.tv_nsec;
}

#endif

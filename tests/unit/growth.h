/* SPDX-License-Identifier: MIT */
/*
 * How the cost of some work grows with its size. It is measured in CPU time of this thread
 * and in allocated bytes. Only the ratio of two sizes is judged, so that neither the machine nor
 * its load matters: linear cost grows by about GROWTH_FACTOR, quadratic cost by its square.
 */
#ifndef GILTRACER_TESTS_GROWTH_H
#define GILTRACER_TESTS_GROWTH_H

#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "tap.h"

#define GROWTH_FACTOR 16
#define GROWTH_LIMIT  128 /* N log N, the larger in cold caches: 30 to 70; quadratic: 256 */
#define GROWTH_RUNS   3
/* Shorter times count as this one: the resolution of the clock would distort their ratios. */
#define GROWTH_FLOOR_NS 300000

/* In the library that --enable-sanitizers links. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

__attribute__((unused)) static uint64_t growth_bytes(void)
{
	struct mallinfo2 info;

	if (__sanitizer_get_current_allocated_bytes)
		return __sanitizer_get_current_allocated_bytes();
	info = mallinfo2();
	return info.uordblks + info.hblkhd;
}

static uint64_t growth_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The shortest of several runs, because the host may take CPUs away, and caches may be cold. */
static uint64_t growth_least(void (*work)(size_t n), size_t n)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < GROWTH_RUNS; i++) {
		uint64_t start = growth_cpu_ns(), ns;

		work(n);
		ns = growth_cpu_ns() - start;
		least = ns < least ? ns : least;
	}
	return least > GROWTH_FLOOR_NS ? least : GROWTH_FLOOR_NS;
}

/* Whether GROWTH_FACTOR times as much of work takes no more than GROWTH_LIMIT times as long. */
__attribute__((unused)) static void growth_ok(void (*work)(size_t n), size_t n, const char *what)
{
	uint64_t small = growth_least(work, n), large = growth_least(work, GROWTH_FACTOR * n);

	if (!ok(large <= GROWTH_LIMIT * small, "%s cost no more than in proportion", what))
		printf("# %zu: %" PRIu64 " us, %zu: %" PRIu64 " us\n", n, small / 1000,
		       GROWTH_FACTOR * n, large / 1000);
}

#endif

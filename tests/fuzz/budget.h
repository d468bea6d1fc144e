/* SPDX-License-Identifier: MIT */
/*
 * The time and memory that an input may cost; exceeding them is a finding. Time is CPU time of this
 * process, so that a busy machine does not cause findings; sanitizers multiply it.
 */
#ifndef GILTRACER_TESTS_FUZZ_BUDGET_H
#define GILTRACER_TESTS_FUZZ_BUDGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define BUDGET_NS_PER_BYTE 100
#define BUDGET_FIXED_NS    50000000
#define BUDGET_KB          65536
#define BUDGET_TRIES       3

#if defined(__SANITIZE_ADDRESS__)
#define BUDGET_SLOWER 20
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BUDGET_SLOWER 20
#endif
#endif
#ifndef BUDGET_SLOWER
#define BUDGET_SLOWER 4 /* in make check, on any machine */
#endif

static uint64_t budget_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static size_t budget_peak_kb(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (size_t)usage.ru_maxrss;
}

/* Do the work on an input; ends the process if it repeatedly costs too much. */
static void budget_run(void (*work)(const uint8_t *data, size_t size), const uint8_t *data,
                       size_t size)
{
	uint64_t limit = BUDGET_SLOWER * (BUDGET_FIXED_NS + BUDGET_NS_PER_BYTE * (uint64_t)size);
	size_t before = budget_peak_kb(), peak;
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < BUDGET_TRIES && least > limit; i++) {
		uint64_t start = budget_cpu_ns(), ns;

		work(data, size);
		ns = budget_cpu_ns() - start;
		least = ns < least ? ns : least;
	}
	peak = budget_peak_kb() - before;
	if (least > limit || peak > BUDGET_SLOWER * (BUDGET_KB + size / 16)) {
		fprintf(stderr,
		        "%zu bytes: %llu ms, %zu more KB at the peak; the limit is %llu ms\n", size,
		        (unsigned long long)least / 1000000, peak,
		        (unsigned long long)limit / 1000000);
		abort();
	}
}

#endif

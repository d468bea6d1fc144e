/* SPDX-License-Identifier: MIT */
#include "record/ticks.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "base/clock.h"

uint64_t ticks_now(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#else
	return clock_now_ns();
#endif
}

void ticks_look(uint64_t *stamp, uint64_t *ns)
{
	uint64_t narrowest = UINT64_MAX;

	/* This process may be preempted between the readings: use the pair that was read in the
	 * shortest time. */
	for (int i = 0; i < 10; i++) {
		uint64_t before = ticks_now(), now = clock_now_ns(), after = ticks_now();

		if (after - before >= narrowest)
			continue;
		narrowest = after - before;
		*stamp = before + narrowest / 2;
		*ns = now;
	}
}

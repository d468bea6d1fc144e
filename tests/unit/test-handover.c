/* SPDX-License-Identifier: MIT */
/* The library asks to take over from uprobes as soon as they cost the program too much, and only then. */
#include "preload/internal.h"

#include <time.h>

#include "tap.h"

struct process process;
struct gil gils[GILS_MAX];
__thread struct self self;
static struct preload_control control;

bool stream_extend(struct self *me, uint64_t stamp)
{
	(void)me;
	(void)stamp;
	return false;
}

/* Turns until it asks; most: the greatest number. */
static unsigned turns(unsigned most)
{
	control.slow = 0;
	for (unsigned n = 1; n <= most; n++) {
		handover_turn(&gils[0]);
		if (control.slow)
			return n;
	}
	return 0;
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void compute(uint64_t ns)
{
	uint64_t end = cpu_ns() + ns;

	while (cpu_ns() < end)
		continue;
}

int main(void)
{
	unsigned n;

	process.control = &control;
	ok(!turns(1000), "before the cost of a turn is known, nothing is asked");

	handover_begin(10000);
	n = turns(100000);
	ok(n > 300 && n < 500,
	   "turns of 10 us with nothing else: after little more than 3 ms (%u turns)", n);
	ok(turns(100000), "it asks again, because the launcher may have refused");

	handover_begin(100000);
	n = turns(100000);
	ok(n >= 30 && n <= 64, "turns of 100 us: after fewer (%u)", n);

	handover_begin(10000);
	compute(200000000);
	n = turns(100000);
	ok(n > 300 && n < 600, "an earlier time without turns does not delay that (%u)", n);

	handover_begin(10000);
	control.slow = 0;
	for (unsigned i = 0; i < 40; i++) {
		turns(32);
		compute(4000000);
	}
	ok(!control.slow, "a tenth of the CPU time is never too much");

	done_testing();
}

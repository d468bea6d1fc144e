/* SPDX-License-Identifier: MIT */
/* Reads the stolen time from /proc/stat. */
#include "system/steal_time.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

#define STAT_MAX (1 << 20)

uint64_t steal_time_parse(const char *text, uint64_t ticks)
{
	uint64_t steal;

	/* user nice system idle iowait irq softirq steal */
	if (!ticks || sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &steal) != 1 ||
	    steal > UINT64_MAX / NS_PER_SECOND)
		return 0;
	return steal * NS_PER_SECOND / ticks;
}

uint64_t steal_time_ns(void)
{
	CLEANUP(free) char *text = NULL;
	long ticks = sysconf(_SC_CLK_TCK);
	struct error err;

	if (file_read(&text, NULL, "/proc/stat", STAT_MAX, &err) < 0)
		return 0;
	return steal_time_parse(text, ticks > 0 ? (uint64_t)ticks : 0);
}

uint64_t steal_time_since(uint64_t before_ns)
{
	uint64_t now_ns = steal_time_ns();

	return now_ns > before_ns ? now_ns - before_ns : 0;
}

uint64_t steal_time_most(uint64_t stolen_ns)
{
	long ticks = sysconf(_SC_CLK_TCK);

	if (!steal_time_ns() || ticks <= 0)
		return 0;
	return stolen_ns + NS_PER_SECOND / (uint64_t)ticks;
}

double steal_time_percent(uint64_t stolen_ns, uint64_t wall_ns, uint64_t cpus)
{
	double all = (double)wall_ns * (double)cpus;

	return all > 0 ? 100 * (double)stolen_ns / all : 0;
}

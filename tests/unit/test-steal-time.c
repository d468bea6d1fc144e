/* SPDX-License-Identifier: MIT */
/* What a hypervisor took, from the text of /proc/stat. */
#include "system/host.h"

#include "tap.h"

#define MS UINT64_C(1000000)

int main(void)
{
	is_u64(steal_time_parse("cpu  1 2 3 4 5 6 7 42 0 0\ncpu0 1 2 3 4 5 6 7 40 0 0\n", 100),
	       420 * MS, "of all CPUs, in ticks");
	is_u64(steal_time_parse("cpu  1 2 3 4\n", 100), 0, "an old kernel does not say");
	is_u64(steal_time_parse("", 100), 0, "nothing");
	is_u64(steal_time_parse("cpu 1 2 3 4 5 6 7 99999999999999999 0 0\n", 100), 0, "too much");
	ok(steal_time_percent(30 * MS, 1000 * MS, 2) == 1.5, "a share of the time of all CPUs");
	ok(steal_time_percent(30 * MS, 0, 2) == 0, "no time, no share");
	return done_testing();
}

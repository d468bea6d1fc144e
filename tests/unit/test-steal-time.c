/* SPDX-License-Identifier: MIT */
/* What a hypervisor took, from the text of /proc/stat. */
#include <stdlib.h>

#include "system/steal_time.h"

#include "tap.h"

#define MS UINT64_C(1000000)

static void is_note(uint64_t stolen, const char *want, const char *name)
{
	char *note = steal_time_note(stolen, 1000 * MS, 2);

	is_str(note ? note : "none", want, "%s", name);
	free(note);
}

int main(void)
{
	is_u64(steal_time_parse("cpu  1 2 3 4 5 6 7 42 0 0\ncpu0 1 2 3 4 5 6 7 40 0 0\n", 100),
	       420 * MS, "of all CPUs, in ticks");
	is_u64(steal_time_parse("cpu  1 2 3 4\n", 100), 0, "an old kernel does not say");
	is_u64(steal_time_parse("", 100), 0, "nothing");
	is_u64(steal_time_parse("cpu 1 2 3 4 5 6 7 99999999999999999 0 0\n", 100), 0, "too much");
	is_note(0, "none", "nothing is not worth a note");
	is_note(19 * MS, "none", "less than a percent is not");
	is_note(30 * MS,
	        "the hypervisor stole 1.5 % of the CPUs' time: it "
	        "counts as running, and as hold for the thread that held the GIL",
	        "more is");
	return done_testing();
}

/* SPDX-License-Identifier: MIT */
/* What ends a recording before the program ends. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/execution.h"

#include "tap.h"

#define SECOND UINT64_C(1000000000)

static char path[] = "/tmp/giltracer-limit-XXXXXX";

static void reached(const struct limit *limit, uint64_t elapsed_ns, const char *want,
                    const char *name)
{
	const struct perf_plan recordings[] = { { .output = path }, { .output = path } };
	char *why = limit_reached(limit, elapsed_ns, recordings, 2);

	is_str(why ? why : "no", want, "%s", name);
	free(why);
}

static void test_duration(void)
{
	const struct limit limit = { .duration_s = 3 };

	reached(&limit, 3 * SECOND - 1, "no", "time is left");
	reached(&limit, 3 * SECOND,
	        "the recording ended after 3 s (--duration), before the program", "time is up");
	is_u64((uint64_t)limit_wait_ms(&limit, 0), 200, "looks again soon");
	is_u64((uint64_t)limit_wait_ms(&limit, 3 * SECOND - SECOND / 20), 51,
	       "sooner, when time is nearly up");
	is_u64((uint64_t)limit_wait_ms(&limit, 4 * SECOND), 0, "at once when it is");
}

static void test_size(void)
{
	const struct limit limit = { .max_mib = 2 };

	ok(truncate(path, 1024 * 1024 - 1) == 0, "two of nearly 1 MiB");
	reached(&limit, SECOND, "no", "are not large");
	ok(truncate(path, 1024 * 1024) == 0, "two of 1 MiB");
	reached(&limit, 5 * SECOND / 2,
	        "the recording ended after 2.5 s, before the program, when it had reached 2 MiB "
	        "(--max-size)",
	        "are, together");
}

static void test_disk(void)
{
	struct limit limit = { 0 };

	limit_begin(&limit, "/");
	ok(limit.least_free <= 256 * 1024 * 1024, "some space is left to others");
	limit.least_free = UINT64_MAX;
	reached(&limit, SECOND,
	        "the recording ended after 1.0 s, before the program, because the disk is nearly "
	        "full (choose another folder with TMPDIR or --keep)",
	        "a disk with less than that is nearly full");
}

int main(void)
{
	int fd = mkstemp(path);

	if (!ok(fd >= 0 && close(fd) == 0, "set up"))
		return done_testing();
	test_duration();
	test_size();
	test_disk();
	unlink(path);
	return done_testing();
}

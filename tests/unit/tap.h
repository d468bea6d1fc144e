/* SPDX-License-Identifier: MIT */
/* TAP for unit tests: ok(condition, "sentence"); the plan is printed last, so nobody counts. */
#ifndef GILTRACER_TESTS_TAP_H
#define GILTRACER_TESTS_TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int tap_count;
static int tap_failed;

/* Returns the condition, so that a test can stop where going on makes no sense. */
__attribute__((format(printf, 4, 5), unused)) static bool tap_ok(bool cond, const char *file,
                                                                 int line, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - ", cond ? "" : "not ", ++tap_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	if (!cond) {
		tap_failed++;
		printf("# %s:%d\n", file, line);
	}
	fflush(stdout);
	return cond;
}

#define ok(cond, ...) tap_ok((cond), __FILE__, __LINE__, __VA_ARGS__)

#define is_u64(got, want, ...)                                                            \
	({                                                                                \
		uint64_t is_got = (got), is_want = (want);                                \
		bool is_ok = ok(is_got == is_want, __VA_ARGS__);                          \
		if (!is_ok)                                                               \
			printf("# got %" PRIu64 ", want %" PRIu64 "\n", is_got, is_want); \
		is_ok;                                                                    \
	})

#define is_str(got, want, ...)                                                                  \
	({                                                                                      \
		const char *is_got = (got), *is_want = (want);                                  \
		bool is_ok = ok(is_got && !strcmp(is_got, is_want), __VA_ARGS__);               \
		if (!is_ok)                                                                     \
			printf("# got '%s', want '%s'\n", is_got ? is_got : "(null)", is_want); \
		is_ok;                                                                          \
	})

/* The folder of the sources; by hand, a test runs there or in a build folder below it. */
__attribute__((unused)) static const char *top_srcdir(void)
{
	const char *top = getenv("top_srcdir");

	return top ? top : access("configure.ac", F_OK) ? ".." : ".";
}

__attribute__((unused)) static int done_testing(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed ? 1 : 0;
}

#endif

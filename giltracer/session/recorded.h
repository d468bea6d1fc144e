/* SPDX-License-Identifier: MIT */
/* Terms that recording, reading and reporting share: the kind of a pass, and a function that takes
 * or releases the GIL. */
#ifndef GILTRACER_SESSION_RECORDED_H
#define GILTRACER_SESSION_RECORDED_H

#include <stddef.h>
#include <stdint.h>

/* What one execution of the program records: GIL events, or stacks and states. */
enum pass_kind { PASS_GIL, PASS_STACKS };

/* The name in documents and file names: "gil" or "stacks". */
static inline const char *pass_kind_name(enum pass_kind kind)
{
	return kind == PASS_GIL ? "gil" : "stacks";
}

/**
 * The CPU limit of the program's control group, and how often it stopped the program while it was
 * recorded. @quota_us: CPU time per period of @period_us, 0: no limit, or not known; @periods,
 * @throttled: number of periods in which the group ran, and in which it used up its quota
 */
struct cpu_quota {
	uint64_t quota_us, period_us, periods, throttled;
};

/* A time in which the program's main process was stopped, by SIGSTOP or Ctrl-Z. */
struct suspension {
	uint64_t from_ns, to_ns;
};

#define SUSPENSIONS_MAX 256 /* the last of more is not recorded */

struct suspensions {
	struct suspension v[SUSPENSIONS_MAX];
	size_t n;
};

/**
 * A function of the interpreter that takes or releases the GIL, where it was probed.
 * @name: for instance "take_gil", even if the file has no such symbol
 * @kind: how it was found: "symbol", "debug" or "code"
 * @offset: file offset of the function, or of the instruction after its endbr64, in the file with
 * the session's build-id
 */
struct gil_function {
	char *name, *kind;
	uint64_t offset;
};

#endif

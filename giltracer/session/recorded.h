/* SPDX-License-Identifier: MIT */
/* Words that recording, reading and reporting share: which pass it is, and which function is the
 * GIL's. */
#ifndef GILTRACER_SESSION_RECORDED_H
#define GILTRACER_SESSION_RECORDED_H

#include <stdint.h>

/* What an execution of the program is recorded for: GIL events, or stacks and states. */
enum pass_kind { PASS_GIL, PASS_STACKS };

/* The name in documents and file names: "gil" or "stacks". */
static inline const char *pass_kind_name(enum pass_kind kind)
{
	return kind == PASS_GIL ? "gil" : "stacks";
}

/**
 * A function of the interpreter that takes or releases the GIL, where it was probed.
 * @name: "take_gil", also where it has no symbol
 * @kind: how it was found: "symbol", "debug" or "code"
 * @offset: in the file with the session's build-id, of the function or what is behind its endbr64
 */
struct gil_function {
	char *name, *kind;
	uint64_t offset;
};

#endif

/* SPDX-License-Identifier: MIT */
/* Terms that recording, reading and reporting share: the kind of a pass, and a function that takes
 * or releases the GIL. */
#ifndef GILTRACER_SESSION_RECORDED_H
#define GILTRACER_SESSION_RECORDED_H

#include <stdint.h>

/* What one execution of the program records: GIL events, or stacks and states. */
enum pass_kind { PASS_GIL, PASS_STACKS };

/* The name in documents and file names: "gil" or "stacks". */
static inline const char *pass_kind_name(enum pass_kind kind)
{
	return kind == PASS_GIL ? "gil" : "stacks";
}

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

/* SPDX-License-Identifier: MIT */
/* Programs that are run to their end for what they print. */
#ifndef GILTRACER_BASE_CAPTURE_H
#define GILTRACER_BASE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/**
 * @argv: NULL-terminated; argv[0] is looked up in PATH unless it has a slash
 * @no_input: stdin is /dev/null, else ours
 * @no_errors: stderr is /dev/null, else it is captured with stdout
 * @max: bytes of output; a program that prints more is killed
 * @timeout_ms: it is killed after that; 0: never
 * @as: whose rights it has, if we are root; 0: ours
 * @prepare: as struct child_spec has it
 */
struct capture {
	const char *const *argv;
	bool no_input, no_errors;
	size_t max;
	int timeout_ms;
	uid_t as;
	bool (*prepare)(void);
};

/* @text: owned, never NULL; @status: as of waitpid; @endless, @late: why it was killed */
struct captured {
	char *text;
	int status;
	bool endless, late;
};

/* Fails if the program cannot be started, with execvp's errno as the code, or not be read; ret is
 * then as it was. */
int capture_run(struct captured *ret, const struct capture *capture, struct error *err);

#endif

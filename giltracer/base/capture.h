/* SPDX-License-Identifier: MIT */
/* Run a program until it ends and capture its output. */
#ifndef GILTRACER_BASE_CAPTURE_H
#define GILTRACER_BASE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/**
 * @argv: NULL-terminated; argv[0] is looked up in PATH unless it contains a slash
 * @no_input: stdin is /dev/null; otherwise it is inherited
 * @no_errors: stderr is /dev/null; otherwise it is captured with stdout
 * @max: largest output in bytes; a program that prints more is killed
 * @timeout_ms: the program is killed after this time; 0: never
 * @as, @dir, @prepare: as in struct child_spec
 */
struct capture {
	const char *const *argv;
	bool no_input, no_errors;
	size_t max;
	int timeout_ms;
	uid_t as;
	const char *dir;
	bool (*prepare)(void);
};

/* @text: owned, never NULL; @status: as from waitpid; @endless, @late: killed for too much output,
 * or after the timeout */
struct captured {
	char *text;
	int status;
	bool endless, late;
};

/* Fails if the program cannot be started, with execvp's errno as the code, or if its output cannot
 * be read. ret is then unchanged. */
int capture_run(struct captured *ret, const struct capture *capture, struct error *err);

#endif

/* SPDX-License-Identifier: MIT */
/* Writes the samples kept of a running program as a session. */
#ifndef GILTRACER_RECORD_KEPT_H
#define GILTRACER_RECORD_KEPT_H

#include <sys/types.h>

#include "base/error.h"
#include "live/keep.h"
#include "locate/python.h"

/**
 * @command: what the process was started with, NULL-terminated; @python: its interpreter
 * All are borrowed.
 */
struct kept {
	pid_t pid;
	char *const *command;
	const struct python *python;
	struct keep *keep;
};

/* Write a session with all samples that are kept so far into the existing folder dir. */
int kept_session(const struct kept *kept, const char *dir, struct error *err);

#endif

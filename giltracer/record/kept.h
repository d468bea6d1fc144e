/* SPDX-License-Identifier: MIT */
/* A session of the samples that were kept of a running program. */
#ifndef GILTRACER_RECORD_KEPT_H
#define GILTRACER_RECORD_KEPT_H

#include <sys/types.h>

#include "base/error.h"
#include "live/keep.h"
#include "locate/python.h"

/**
 * @command: what the process was started with, NULL-terminated; @python: what runs it
 * All are borrowed.
 */
struct kept {
	pid_t pid;
	char *const *command;
	const struct python *python;
	struct keep *keep;
};

/* Leave a session in the existing folder dir, of what is kept until now. */
int kept_session(const struct kept *kept, const char *dir, struct error *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Standard input for a program that runs twice. The first run reads it through a process that
 * keeps a copy; the second run reads the copy. A terminal is passed to both unchanged.
 */
#ifndef GILTRACER_RECORD_STDIN_TEE_H
#define GILTRACER_RECORD_STDIN_TEE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/child.h"

/**
 * @copy: a file with the data that was read; -1 if the input is passed unchanged
 * @partial: there was no room for all of it; shared with the process, NULL: there is no copy
 * @offset: of a regular file when the first run starts, or -1
 */
struct stdin_tee {
	int copy;
	bool *partial;
	off_t offset;
	struct child child;
};

#define STDIN_TEE_NONE                                        \
	{                                                     \
		.copy = -1, .offset = -1, .child = CHILD_NONE \
	}

/*
 * Standard input for the first run, in *ret_fd: -1 is our own, else the caller closes it. The copy
 * is an unnamed file in the folder dir.
 */
int stdin_tee_first(struct stdin_tee *tee, const char *dir, int *ret_fd, struct error *err);

/* The same input for the next run. Error EIO: the copy of it is not complete. */
int stdin_tee_again(struct stdin_tee *tee, int *ret_fd, struct error *err);

void stdin_tee_done(struct stdin_tee *tee);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Standard input for a program that runs twice. The first run reads it through a process that
 * keeps a copy; the second run reads the copy. A terminal is passed to both unchanged.
 */
#ifndef GILTRACER_RECORD_STDIN_TEE_H
#define GILTRACER_RECORD_STDIN_TEE_H

#include <sys/types.h>

#include "base/error.h"
#include "base/child.h"

/**
 * @copy: a file with the data that was read; -1 if the input is passed unchanged
 * @offset: of a regular file when the first run starts, or -1
 */
struct stdin_tee {
	int copy;
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

/* The same input for the next run. */
int stdin_tee_again(struct stdin_tee *tee, int *ret_fd, struct error *err);

void stdin_tee_done(struct stdin_tee *tee);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Standard input for a program that runs twice. The first run reads it as it comes, through a
 * process that keeps a copy; the second reads the copy. A terminal is given to both as it is.
 */
#ifndef GILTRACER_LAUNCH_SPOOL_H
#define GILTRACER_LAUNCH_SPOOL_H

#include <sys/types.h>

#include "base/error.h"
#include "launch/child.h"

/**
 * @copy: what was read; -1 if the input is given as it is
 * @offset: where a regular file stood, or -1
 */
struct spool {
	int copy;
	off_t offset;
	struct child tee;
};

#define SPOOL_NONE                                          \
	{                                                   \
		.copy = -1, .offset = -1, .tee = CHILD_NONE \
	}

/*
 * Standard input for the first run, in *ret_fd: -1 is ours as it is, else the caller closes it.
 * dir is where the copy is kept, without a name.
 */
int spool_first(struct spool *spool, const char *dir, int *ret_fd, struct error *err);

/* The same again for the next run. */
int spool_again(struct spool *spool, int *ret_fd, struct error *err);

void spool_done(struct spool *spool);

#endif

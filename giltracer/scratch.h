/* SPDX-License-Identifier: MIT */
/*
 * The temporary session folder, TMPDIR/giltracer.XXXXXX. Its file "lock" is locked, by flock(2),
 * while its giltracer lives: what a kill left behind can be told from what is in use, without
 * guessing from process numbers.
 */
#ifndef GILTRACER_SCRATCH_H
#define GILTRACER_SCRATCH_H

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"

/* path is absolute, owned. */
struct scratch {
	char *path;
	int lock;
};

#define SCRATCH_NONE        \
	{                   \
		.lock = -1, \
	}

/* Make one, and remove those that dead giltracers of this user left. */
int scratch_make(struct scratch *ret, struct error *err);

/* Remove it with all that is in it. */
int scratch_remove(struct scratch *scratch, struct error *err);

/* What dead giltracers of this user left in TMPDIR. Paths are owned. */
struct scratch_dead {
	VEC(char *) paths;
};

void scratch_find_dead(struct scratch_dead *ret);
void scratch_dead_done(struct scratch_dead *dead);

static inline void cleanup_scratch_dead_done(struct scratch_dead *dead)
{
	scratch_dead_done(dead);
}

#endif

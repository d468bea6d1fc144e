/* SPDX-License-Identifier: MIT */
/*
 * The temporary session folder, TMPDIR/giltracer.XXXXXX. Its file "lock" is locked, by flock(2),
 * while its giltracer lives, so that a folder left behind by a killed process can be told from one
 * in use without relying on process ids.
 */
#ifndef GILTRACER_SESSION_TEMP_SESSION_H
#define GILTRACER_SESSION_TEMP_SESSION_H

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"

/* path is absolute, owned. */
struct temp_session {
	char *path;
	int lock;
};

#define SCRATCH_NONE        \
	{                   \
		.lock = -1, \
	}

/* Make a session folder, and remove those that dead giltracers of this user left behind. */
int temp_session_make(struct temp_session *ret, struct error *err);

/* The same in another folder, under the name that it is given. */
int temp_session_make_in(struct temp_session *ret, const char *base, struct error *err);

/* Remove the folder with all its contents. */
int temp_session_remove(struct temp_session *scratch, struct error *err);

/* The folders that dead giltracers of this user left behind in TMPDIR. Paths are owned. */
struct temp_session_dead {
	VEC(char *) paths;
};

void temp_session_find_dead(struct temp_session_dead *ret);
void temp_session_dead_done(struct temp_session_dead *dead);

DEFINE_CLEANUP_IN(struct temp_session_dead, temp_session_dead_done);

#endif

/* SPDX-License-Identifier: MIT */
/* What a program calls its threads, see share/python/program.py. */
#ifndef GILTRACER_LAUNCH_NAMED_H
#define GILTRACER_LAUNCH_NAMED_H

#include <stdint.h>

#include "base/vec.h"
#include "launch/session.h"

/* Owned: session_threads_free(named->v, named->n). */
struct named {
	struct session_thread *v;
	size_t n, alloc;
};

/* "TID NAME" of a thread of process pid, 0: of the one that was started. Anything else is no name.
 */
void named_add(struct named *named, uint32_t pid, const char *text);

/*
 * Lines "PID TID NAME" that forked children have left in a file, which is removed. There may be no
 * file; the last line of a child that was killed may be cut, and is left out. So is what is behind
 * the first 10,000 threads.
 */
void named_read(struct named *named, const char *path);

#endif

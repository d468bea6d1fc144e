/* SPDX-License-Identifier: MIT */
/* What a program calls its threads, see share/python/program.py. */
#ifndef GILTRACER_RECORD_THREAD_NAMES_H
#define GILTRACER_RECORD_THREAD_NAMES_H

#include <stdint.h>

#include "base/vec.h"
#include "session/session.h"

/* Owned: session_threads_free(named->v, named->n). */
struct thread_names {
	struct session_thread *v;
	size_t n, alloc;
};

/* "TID NAME" of a thread of process pid, 0: of the one that was started. Anything else is no name.
 */
void thread_names_add(struct thread_names *named, uint32_t pid, const char *text);

/*
 * Lines "PID TID NAME" that the program and its forked children have left in a file, which is
 * removed. What named has already is newer. There may be no file; the last line of a process that
 * was killed may be cut, and is left out. So is what is behind the first 10,000 threads.
 */
void thread_names_read(struct thread_names *named, const char *path);

#endif

/* SPDX-License-Identifier: MIT */
/* The names that a program gives its threads, see share/python/program.py. */
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

/* Add "TID NAME", a thread of process pid (0: the process that was started). Ignores any other
 * text. */
void thread_names_add(struct thread_names *named, uint32_t pid, const char *text);

/*
 * Read lines "PID TID NAME" that the program and its forked children have left in a file, and
 * remove it. Names that are already known are newer. There may be no file. The last line of a
 * process that was killed may be cut, and is ignored; so are all threads after the first 10,000.
 */
void thread_names_read(struct thread_names *named, const char *path);

#endif

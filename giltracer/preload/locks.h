/* SPDX-License-Identifier: MIT */
/* The locks for which Python code waits: see locks.c. */
#ifndef GILTRACER_PRELOAD_LOCKS_H
#define GILTRACER_PRELOAD_LOCKS_H

#include "preload/internal.h"

/* CPython has created a GIL; symbol() finds CPython's symbols. */
void locks_begin(void *(*symbol)(const char *name));

void locks_in_child(void);

/* Records an event of the lock at an address. holder: tid of the thread that has it, 0: unknown */
void locks_put(struct self *me, enum preload_lock_event event, uint64_t lock, pid_t holder,
               uint64_t stamp);

/* The thread ends, or its process. */
void locks_end_spin(struct self *me);

#endif

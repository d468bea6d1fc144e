/* SPDX-License-Identifier: MIT */
/* The locks for which Python code waits: see locks.c. */
#ifndef GILTRACER_PRELOAD_LOCKS_H
#define GILTRACER_PRELOAD_LOCKS_H

#include <pthread.h>

#include "preload/internal.h"

/* CPython has created a GIL; symbol() finds CPython's symbols. */
void locks_begin(void *(*symbol)(const char *name));

void locks_in_child(void);

/* Of a mutex of C code that another thread has: takes it, by the functions of libc, and records the
 * wait, unless the thread holds a GIL. */
int locks_take_mutex(pthread_mutex_t *mutex, int (*try)(pthread_mutex_t *),
                     int (*lock)(pthread_mutex_t *));

/* With the GIL: from now on, takes and releases of Locks that are PyMutexes are seen. modules: sys.modules */
void locks_watch_takes(void *modules);

/* This lock of C code is about to be unlocked, perhaps by a wait for a condition. */
void locks_mutex_free(const void *mutex);

/* Records an event of the lock at an address. holder: tid of the thread that has it, 0: unknown */
void locks_put(struct self *me, enum preload_lock_event event, uint64_t lock, pid_t holder,
               uint64_t stamp);

/* The thread ends, or its process. */
void locks_end_spin(struct self *me);

#endif

/* SPDX-License-Identifier: MIT */
/* What a free-threaded CPython has in addition: see nogil.c. */
#ifndef GILTRACER_PRELOAD_NOGIL_H
#define GILTRACER_PRELOAD_NOGIL_H

#include "preload/internal.h"

/* Whether this CPython is free-threaded, and its layout is known. Its GIL may be on nevertheless. */
extern bool nogil_on;

/* CPython has created a GIL; symbol() finds CPython's symbols. The calling thread is one of Python's. */
void nogil_begin(void *(*symbol)(const char *name));

/* Whether it is free-threaded, and this code is its own. */
bool nogil_is_python(const char *caller);

/* The calling thread is one of Python's, which begins. */
void nogil_thread_begins(void);

/* The innermost Python frame of the calling thread; NULL: unknown. */
const char *nogil_frame(void);

/**
 * What a parked thread waits for, by the address.
 * @event: PRELOAD_LOCK_STOPPED: for the thread that has stopped the world; PRELOAD_LOCK_STOPS or
 * PRELOAD_LOCK_COLLECTS: the thread is stopping the world, for all others to stop; 0: something else
 */
enum preload_lock_event nogil_event(uint64_t address);

/* The calling thread waits for others to stop. If only one of them has not, its PyThreadState and its id;
 * NULL: none or several, or it is unknown. */
const char *nogil_late(pid_t *ret_tid);

/* The thread waits for the lock from that stamp on: describes the object that it belongs to in the log, if
 * that has not been done yet. */
void nogil_describe(uint64_t lock, uint64_t stamp);

/*
 * While CPython imports an extension module, the GIL is on, until the module is known not to need it:
 * it is then a lock of the interpreter like others, and is recorded as one. Returns whether this was
 * done with the event of the GIL; false: the GIL is on for good.
 */
bool nogil_import(struct self *me, enum preload_type type, uint64_t stamp, struct gil *g);

/* The calling thread has imported a module: if that turned the GIL on for good, the thread holds it
 * from now on. */
void nogil_imported(struct self *me);

/* A forked child, or another recording, has its own log. */
void nogil_again(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The lock of what all interpreters of the process share: from CPython 3.12 on, each may have a GIL of
 * its own, and then no GIL guards that. Nothing that may run Python code is called with it. It is not
 * recursive.
 */
#ifndef GILTRACER_PRELOAD_CALLS_LOCK_H
#define GILTRACER_PRELOAD_CALLS_LOCK_H

void calls_lock(void);
void calls_unlock(void);

/* In a forked child: the thread that had it may not exist there. */
void calls_lock_in_child(void);

#endif

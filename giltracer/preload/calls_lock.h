/* SPDX-License-Identifier: MIT */
/*
 * The lock of the data that all interpreters of the process share: from CPython 3.12 on, each may
 * have a GIL of its own, which then does not guard this data. Nothing that may run Python code is
 * called while the lock is held. It is not recursive.
 */
#ifndef GILTRACER_PRELOAD_CALLS_LOCK_H
#define GILTRACER_PRELOAD_CALLS_LOCK_H

void calls_lock(void);
void calls_unlock(void);

/* Call in a forked child, in which the thread that held the lock may not exist. */
void calls_lock_in_child(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Subinterpreters. Recording begins in each one separately, in the thread that runs there first:
 * an audit hook in C is called in all interpreters, and CPython's own initialization of an
 * interpreter raises audit events. The hook is added when the program imports the module that
 * makes interpreters, so other programs have no overhead from it.
 */
#ifndef GILTRACER_PRELOAD_CALLS_INTERPRETERS_H
#define GILTRACER_PRELOAD_CALLS_INTERPRETERS_H

#include <stdbool.h>

/* Call in the main interpreter, to record in each interpreter that is made from now on. Older ones
 * are counted as not recorded. */
void calls_interpreters_watch(void);

/* Whether the calling thread had this thread state at the last event in a subinterpreter.
 * PyGILState only knows a thread's first state. */
bool calls_interpreters_runs(const void *thread);

/* Set the state for which calls_interpreters_runs returns true in the calling thread. */
void calls_interpreters_note(const void *thread);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Subinterpreters. Recording begins in each one by itself, in the thread that runs there first: an audit
 * hook of C is called in all interpreters, and CPython's own initialization of an interpreter raises
 * events. The hook is added when the program imports the module that makes interpreters, so other
 * programs pay nothing for it.
 */
#ifndef GILTRACER_PRELOAD_CALLS_INTERPRETERS_H
#define GILTRACER_PRELOAD_CALLS_INTERPRETERS_H

#include <stdbool.h>

/* Called in the main interpreter: record in each interpreter that is made from now on. Older ones are
 * counted as not recorded. */
void calls_interpreters_watch(void);

/* Whether the calling thread had this thread state at the last event in a subinterpreter. PyGILState
 * knows only a thread's first one. */
bool calls_interpreters_runs(const void *thread);

/* It has this one. */
void calls_interpreters_note(const void *thread);

#endif

/* SPDX-License-Identifier: MIT */
/* Tasks of asyncio on uvloop, from the coroutines that they run. */
#ifndef GILTRACER_PRELOAD_CALLS_UVLOOP_H
#define GILTRACER_PRELOAD_CALLS_UVLOOP_H

#include "preload/calls_tasks.h"

/* Call when recording begins: check whether uvloop is imported. */
void calls_uvloop_begin(void);
bool calls_uvloop_is_imported(void);

/* The role of a function that creates tasks, by its file, of length len, and its name. A
 * function of uvloop shows that uvloop is imported. */
enum calls_role calls_uvloop_role(const char *file, size_t len, const char *name);

/* Call when such a function returns value. */
void calls_uvloop_created(struct calls_self *me, PyObject *at, PyObject *value);

/* Call when a coroutine begins that no other coroutine has called. Returns false if it is not a
 * step of a task on uvloop. */
bool calls_uvloop_step(struct calls_self *me, struct calls_loops *l);

/* Call when this coroutine has ended. value: what it yields; NULL: unknown */
void calls_uvloop_step_ends(struct calls_self *me, struct calls_loops *l,
                            enum preload_call_type type, PyObject *value);

#endif

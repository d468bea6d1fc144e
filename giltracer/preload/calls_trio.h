/* SPDX-License-Identifier: MIT */
/* trio's tasks, from calls of trio's own functions. */
#ifndef GILTRACER_PRELOAD_CALLS_TRIO_H
#define GILTRACER_PRELOAD_CALLS_TRIO_H

#include "preload/calls_tasks.h"

/* The role of a function of trio, by its file, of length len, and its name. */
enum calls_role calls_trio_role(PyObject *code, const char *file, size_t len, const char *name);

/* Call when a function with such a role begins, and when it has ended. at: as in
 * calls_record_role */
void calls_trio_begins(struct calls_self *me, enum calls_role role, PyObject *at);
void calls_trio_ended(struct calls_self *me, enum calls_role role);

/* Call when the loop calls a coroutine. Returns false if its task is unknown. */
bool calls_trio_step(struct calls_self *me, struct calls_loops *l, enum preload_call_type type);

/* Call when this coroutine has ended. value: what it yields; NULL: unknown */
void calls_trio_step_ends(struct calls_self *me, struct calls_loops *l, enum preload_call_type type,
                          PyObject *value);

#endif

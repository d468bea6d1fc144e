/* SPDX-License-Identifier: MIT */
/* Tasks and other callbacks of asyncio's own loops, from calls of asyncio's own functions. */
#ifndef GILTRACER_PRELOAD_CALLS_ASYNCIO_H
#define GILTRACER_PRELOAD_CALLS_ASYNCIO_H

#include "preload/calls_tasks.h"

/* The role of a function of asyncio, by its file, of length len, and its name. */
enum calls_role calls_asyncio_role(const char *file, size_t len, const char *name);

/* Call when a function with such a role begins, returns a value, and has ended. at: as in
 * calls_record_role */
void calls_asyncio_begins(struct calls_self *me, enum calls_role role, PyObject *at);
void calls_asyncio_returns(struct calls_self *me, enum calls_role role, PyObject *value);
void calls_asyncio_ended(struct calls_self *me, enum calls_role role);

#endif

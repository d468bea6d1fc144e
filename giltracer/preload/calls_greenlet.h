/* SPDX-License-Identifier: MIT */
/* Greenlets, of which a thread can have several stacks: gevent, eventlet. */
#ifndef GILTRACER_PRELOAD_CALLS_GREENLET_H
#define GILTRACER_PRELOAD_CALLS_GREENLET_H

#include "preload/calls_record.h"

/* Call when recording begins: check whether greenlet is imported. */
void calls_greenlet_begin(void);

/* The role of a function, by its file, of length len. A function of greenlet shows that greenlet is
 * being imported. */
enum calls_role calls_greenlet_role(const char *file, size_t len, const char *name);

/* Watch the switches of the calling thread, once. Cheap if greenlet is not imported. */
void calls_greenlet_watch(void);
void calls_greenlet_in_child(void);

#endif

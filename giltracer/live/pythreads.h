/* SPDX-License-Identifier: MIT */
/* What a running program itself calls its threads: threading._active, read from its memory. */
#ifndef GILTRACER_LIVE_PYTHREADS_H
#define GILTRACER_LIVE_PYTHREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "live/target.h"

#define PYTHREAD_NAME 64

/* @ident: its pthread_t; @name: UTF-8, cut if it is longer */
struct pythread {
	uint64_t ident;
	char name[PYTHREAD_NAME];
};

/* Where an interpreter has them. */
struct pythreads_dict {
	uint64_t interpreter, active;
};

/* { 0 } is none. */
struct pythreads {
	VEC(struct pythread) v;
	VEC(struct pythreads_dict) dicts;
	uint64_t looked_ns, cost_ns, found_ns;
	size_t changes;
};

/*
 * Look which there are, if it is a while since that was done; sooner if changes, a number that grows
 * with threads that come or go, is another one. interpreters: addresses, the main one last: a thread
 * of several has its name there. False: there is nothing new, or it could not be read.
 */
bool pythreads_look(struct pythreads *p, const struct target *target, const uint64_t *interpreters,
                    size_t n, size_t changes);

/* By the last look that was true; NULL: not known. Borrowed until the next look. */
const char *pythreads_name(const struct pythreads *p, uint64_t ident);

void pythreads_done(struct pythreads *p);

#endif

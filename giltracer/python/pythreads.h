/* SPDX-License-Identifier: MIT */
/* The names that a running program gives its threads: threading._active, read from its memory. */
#ifndef GILTRACER_LIVE_PYTHREADS_H
#define GILTRACER_LIVE_PYTHREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "base/vec.h"
#include "python/target.h"

#define PYTHREAD_NAME 64

/* @ident: its pthread_t; @name: UTF-8, truncated if it is longer */
struct pythread {
	uint64_t ident;
	char name[PYTHREAD_NAME];
};

/* The address of threading._active in an interpreter. */
struct pythreads_dict {
	uint64_t interpreter, active;
};

/* { 0 } is empty. */
struct pythreads {
	VEC(struct pythread) v;
	struct idmap by_ident; /* index in v */
	VEC(struct pythreads_dict) dicts;
	uint64_t looked_ns, cost_ns, found_ns;
	size_t changes;
};

/*
 * Read the names again if the last time was long enough ago; earlier if changes, a number that
 * grows whenever threads come or go, differs from then. interpreters: their addresses, the main one
 * last, so that its name for a thread takes precedence. False: nothing was read.
 */
bool pythreads_look(struct pythreads *p, struct target *target, const uint64_t *interpreters,
                    size_t n, size_t changes);

/* The name as of the last successful reading; NULL: not known. Borrowed until the next
 * pythreads_look. */
const char *pythreads_name(const struct pythreads *p, uint64_t ident);

void pythreads_done(struct pythreads *p);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Dicts and attributes of objects in a running process. Nothing stops it: what is read may be half
 * of one state and half of the next, so whoever reads twice and finds the same knows more.
 */
#ifndef GILTRACER_LIVE_PYOBJECT_H
#define GILTRACER_LIVE_PYOBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "live/target.h"

/* Addresses of two objects; value 0: there is none (any more). */
struct pyentry {
	uint64_t key, value;
};

/* { 0 } is empty; vec_done(&entries.v). */
struct pyentries {
	VEC(struct pyentry) v;
};

/* The entries of a dict. False: it cannot be read. ret is overwritten. */
bool pyobject_dict(const struct target *target, uint64_t dict, struct pyentries *ret);

/* The same of the attributes in an object's own __dict__, whether the dict was made or not. */
bool pyobject_attributes(const struct target *target, uint64_t object, struct pyentries *ret);

/* The value whose key is the str name, which is ASCII; 0: there is none. */
uint64_t pyentries_find(const struct target *target, const struct pyentries *entries,
                        const char *name);

#endif

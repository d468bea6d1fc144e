/* SPDX-License-Identifier: MIT */
/* Reads dicts and attributes of objects in a running process. The process is not stopped, so the
 * data may mix two states; reading it twice with the same result makes that unlikely. */
#ifndef GILTRACER_PYTHON_PYOBJECT_H
#define GILTRACER_PYTHON_PYOBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "python/target.h"

/* Addresses of two objects; value 0: the entry is empty or was deleted. */
struct pyentry {
	uint64_t key, value;
};

/* Reading stops for good after target->entries entries, counting each dict as one more: the caller
 * sets how many are enough.
 *
 * { 0 } is empty; free with vec_done(&entries.v). */
struct pyentries {
	VEC(struct pyentry) v;
};

/* Read the entries of a dict. False: it cannot be read. ret is overwritten. */
bool pyobject_dict(struct target *target, uint64_t dict, struct pyentries *ret);

/* Read the attributes in an object's own __dict__, whether or not the dict has been created. */
bool pyobject_attributes(struct target *target, uint64_t object, struct pyentries *ret);

/* The value for the key name, an ASCII str; 0: none. */
uint64_t pyentries_find(struct target *target, const struct pyentries *entries, const char *name);

#endif

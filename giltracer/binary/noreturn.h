/* SPDX-License-Identifier: MIT */
/* Whether a function of a file ever returns: code after a call of a function that does not is not
 * reached from there. x86-64. */
#ifndef GILTRACER_BINARY_NORETURN_H
#define GILTRACER_BINARY_NORETURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct codemap;
struct noreturn;

/* map is borrowed until noreturn_free. */
struct noreturn *noreturn_new(const struct codemap *map);
void noreturn_free(struct noreturn *n);

/* Whether a call of the function at this address, or of this import, is known not to return. */
bool noreturn_function(struct noreturn *n, uint64_t address);
bool noreturn_import(const char *name);

/* Whether every path from the function's entry to its return passes one of these instruction
 * addresses. */
bool noreturn_passes(struct noreturn *n, uint64_t function, const uint64_t *stops, size_t count);

DEFINE_CLEANUP(struct noreturn *, noreturn_free);

#endif

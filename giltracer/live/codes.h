/* SPDX-License-Identifier: MIT */
/* Writes the code objects seen in running processes as a list that reports read. */
#ifndef GILTRACER_LIVE_CODES_H
#define GILTRACER_LIVE_CODES_H

#include "base/error.h"
#include "python/target.h"

/* Write those of n processes, at least one, to path in the format of python/pycode.h, completely or
 * not at all; those of another version than the first one's are left out. */
int codes_write(struct target *const *targets, size_t n, const char *path, struct error *err);

#endif

/* SPDX-License-Identifier: MIT */
/* Loads the library into a program that already runs, by having the program execute a script
 * (live/remote_exec.h, live/remote_call.h). */
#ifndef GILTRACER_RECORD_JOINING_H
#define GILTRACER_RECORD_JOINING_H

#include <stdbool.h>

#include "base/error.h"

struct preloading;
struct target;

/* How long the program's main thread may take to execute the script. */
#define JOINING_TIMEOUT_MS 5000

/* Whether the program can execute a script, as far as this user may find out. */
int joining_check(const struct target *target, struct error *err);

/*
 * Load the library, which records from then on. preloading has been prepared; alone: do not record
 * children. Errors: ETIMEDOUT the main thread executes no Python; others: the library cannot be
 * loaded, and the program is unchanged.
 */
int joining_begin(const struct preloading *preloading, const struct target *target, bool alone,
                  struct error *err);

#endif

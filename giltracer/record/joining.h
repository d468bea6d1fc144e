/* SPDX-License-Identifier: MIT */
/* Loads the library into a program that runs already: the program does it itself, when asked to
 * (live/remote_exec.h). */
#ifndef GILTRACER_RECORD_JOINING_H
#define GILTRACER_RECORD_JOINING_H

#include <stdbool.h>

#include "base/error.h"

struct preloading;
struct target;

/* How long the program's main thread may take to do it, if it is at work. */
#define JOINING_TIMEOUT_MS 5000

/* Whether it can be asked to, as far as anybody may know. */
int joining_check(const struct target *target, struct error *err);

/*
 * Load the library; from then on it records. preloading is prepared; alone: children are not
 * recorded. Errors: ETIMEDOUT the main thread executes no Python; others: the library cannot be loaded, and
 * nothing of the program was changed.
 */
int joining_begin(const struct preloading *preloading, const struct target *target, bool alone,
                  struct error *err);

#endif

/* SPDX-License-Identifier: MIT */
/* Waits for locks, and stops of the world of a free-threaded interpreter, as JSON. */
#ifndef GILTRACER_REPORT_JSON_LOCKS_H
#define GILTRACER_REPORT_JSON_LOCKS_H

#include "analysis/analysis.h"
#include "base/jsonw.h"

/* Write what blocked threads into the open object: "locks", "lock_blame", "lock_chains" and
 * "critical_path" (at most this many rows of each, the largest), and "blocked"; null if waits for locks
 * were not recorded. */
void locks_json(struct jsonw *w, const struct analysis *a, size_t most);

#endif

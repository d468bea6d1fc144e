/* SPDX-License-Identifier: MIT */
/* The time for which threads of a free-threaded interpreter are blocked, as JSON. */
#ifndef GILTRACER_REPORT_JSON_LOCKS_H
#define GILTRACER_REPORT_JSON_LOCKS_H

#include "analysis/analysis.h"
#include "report/json/jsonw.h"

/* Write the members "locks", "lock_blame" and "lock_chains" (at most this many rows each, the largest) and "blocked"
 * into the open object. */
void locks_json(struct jsonw *w, const struct analysis *a, size_t most);

#endif

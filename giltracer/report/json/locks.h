/* SPDX-License-Identifier: MIT */
/* What blocks the threads of a free-threaded interpreter, for machines. */
#ifndef GILTRACER_REPORT_JSON_LOCKS_H
#define GILTRACER_REPORT_JSON_LOCKS_H

#include "analysis/analysis.h"
#include "report/json/jsonw.h"

/* Members "locks", "lock_blame" (at most so many rows, the largest) and "blocked" of an open
 * object.
 */
void locks_json(struct jsonw *w, const struct analysis *a, size_t most);

#endif

/* SPDX-License-Identifier: MIT */
/* Locks, and stops of the world of a free-threaded interpreter, as reasons of the verdict. */
#ifndef GILTRACER_ANALYSIS_LOCK_REASONS_H
#define GILTRACER_ANALYSIS_LOCK_REASONS_H

#include "analysis/analysis.h"

/* Appends to the reasons and the advice what threads waited for without a GIL. */
void lock_reasons_find(struct verdict *v, const struct analysis *a);

/* Appends what was done while threads waited for locks of the program. */
void lock_reasons_chains(struct reasons *because, struct reasons *advice, const struct analysis *a);

/* Adds that the GIL of a free-threaded interpreter is on, and why; adds nothing if it is off. */
void lock_reasons_turned_on(struct reasons *to, const struct analysis *a);

#endif

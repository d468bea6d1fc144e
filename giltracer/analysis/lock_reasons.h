/* SPDX-License-Identifier: MIT */
/* What blocks the threads of a free-threaded interpreter, as reasons of the verdict. */
#ifndef GILTRACER_ANALYSIS_LOCK_REASONS_H
#define GILTRACER_ANALYSIS_LOCK_REASONS_H

#include "analysis/analysis.h"

/* What they wait for where there is no GIL: append to because and advice. */
void lock_reasons_find(struct verdict *v, const struct analysis *a);

/* That the GIL of such an interpreter is on, and why; nothing if it is not. */
void lock_reasons_turned_on(struct reasons *to, const struct analysis *a);

#endif

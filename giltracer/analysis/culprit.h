/* SPDX-License-Identifier: MIT */
/* Whose fault the waiting for the GIL is; verdict.h has the rules. */
#ifndef GILTRACER_ANALYSIS_CULPRIT_H
#define GILTRACER_ANALYSIS_CULPRIT_H

#include "analysis/analysis.h"

/* Append to because and advice of v, and fill in the moment. */
void culprit_find(struct verdict *v, const struct analysis *a);

#endif

/* SPDX-License-Identifier: MIT */
/* Which threads, groups or functions to blame for the waiting for the GIL; verdict.h has the
 * rules. */
#ifndef GILTRACER_ANALYSIS_CULPRIT_H
#define GILTRACER_ANALYSIS_CULPRIT_H

#include "analysis/analysis.h"

/* Appends to the reasons and the advice of v, and sets the moment to show. */
void culprit_find(struct verdict *v, const struct analysis *a);

/* What helps against a lack of CPUs. */
enum reason_code culprit_cpu_advice(const struct analysis *a);

#endif

/* SPDX-License-Identifier: MIT */
/* What perf counted in addition to the GIL (--event), by counter and thread. */
#ifndef GILTRACER_REPORT_COUNTERS_H
#define GILTRACER_REPORT_COUNTERS_H

#include "report/jsonw.h"
#include "analysis/analysis.h"

/* The member "counters": a row for each counter and thread with samples of it. Each sample stands
 * for everything counted since the previous one; what came after the last sample is missing. */
void counters_json(struct jsonw *w, const struct analysis *a);

#endif

/* SPDX-License-Identifier: MIT */
/* What perf counted beside the GIL (--event), by counter and thread. */
#ifndef GILTRACER_REPORT_COUNTERS_H
#define GILTRACER_REPORT_COUNTERS_H

#include "report/jsonw.h"
#include "analysis/analysis.h"

/*
 * The member "counters": a row for each counter and thread that has samples of it. Each sample
 * stands for all that was counted since the one before; what came after the last is missing.
 */
void counters_json(struct jsonw *w, const struct analysis *a);

#endif

/* SPDX-License-Identifier: MIT */
/* Who had the CPUs while threads were runnable, for machines. */
#ifndef GILTRACER_REPORT_JSON_STARVATION_H
#define GILTRACER_REPORT_JSON_STARVATION_H

#include "analysis/analysis.h"
#include "report/json/jsonw.h"

/* The member "starvation": a row for each thread and whoever had the CPU that it waited for. If
 * those are more than most, one for each group and whoever, under the names of the two with the
 * largest row, at most so many; and a last one, of nobody, for the time of those that are left out.
 */
void starvation_json(struct jsonw *w, const struct analysis *a, size_t most);

#endif

/* SPDX-License-Identifier: MIT */
/* Users of the CPUs while threads were runnable, as JSON. */
#ifndef GILTRACER_REPORT_JSON_STARVATION_H
#define GILTRACER_REPORT_JSON_STARVATION_H

#include "analysis/analysis.h"
#include "base/jsonw.h"

/*
 * Write the member "starvation": a row for each runnable thread and each user of the CPU that it
 * waited for. If there are more than most, one for each group and user, at most that many, with the
 * names of the two in its largest row; and a last one, with nobody, for the time of the omitted
 * rows.
 */
void starvation_json(struct jsonw *w, const struct analysis *a, size_t most);

#endif

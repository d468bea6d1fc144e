/* SPDX-License-Identifier: MIT */
/* The verdict of a recording that consists of samples only. */
#ifndef GILTRACER_ANALYSIS_SAMPLED_REASONS_H
#define GILTRACER_ANALYSIS_SAMPLED_REASONS_H

#include "analysis/analysis.h"

/* The first function adds headline, reasons and advice, the second judges the quality of the
 * samples. */
void sampled_reasons_find(struct verdict *v, const struct analysis *a);
void sampled_reasons_judge(struct verdict *v, const struct analysis *a);

#endif

/* SPDX-License-Identifier: MIT */
/* The verdict where samples are all that was recorded. */
#ifndef GILTRACER_ANALYSIS_SAMPLED_REASONS_H
#define GILTRACER_ANALYSIS_SAMPLED_REASONS_H

#include "analysis/analysis.h"

/* Headline, reasons and advice; then how good the samples are. */
void sampled_reasons_find(struct verdict *v, const struct analysis *a);
void sampled_reasons_judge(struct verdict *v, const struct analysis *a);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef GILTRACER_REPORT_JSON_SAMPLES_H
#define GILTRACER_REPORT_JSON_SAMPLES_H

#include "analysis/analysis.h"
#include "base/jsonw.h"

/* Write the member "samples": counts of samples, or null; with at most this many places. */
void samples_json(struct jsonw *w, const struct analysis *a, size_t most);

#endif

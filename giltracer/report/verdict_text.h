/* SPDX-License-Identifier: MIT */
/* The verdict in words; analysis/verdict.h has the rules. */
#ifndef GILTRACER_REPORT_VERDICT_TEXT_H
#define GILTRACER_REPORT_VERDICT_TEXT_H

#include "analysis/analysis.h"
#include "base/str.h"

/* Append sentences for the reasons: UTF-8 without controls, which may contain untrusted names.
 * Nothing for an empty list. */
void verdict_add_text(struct str *out, const struct analysis *analysis,
                      const struct reasons *reasons);

/* Append one sentence about the users of the CPUs; nothing if they are unknown. */
void verdict_add_cpu_users(struct str *out, const struct analysis *analysis);

/* "gil-bound" and the like; "good", "fair", "poor". */
const char *verdict_kind_name(enum verdict_kind kind);
const char *verdict_quality_name(enum verdict_quality quality);

#endif

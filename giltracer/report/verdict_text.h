/* SPDX-License-Identifier: MIT */
/* The verdict in words; analysis/verdict.h has the rules. */
#ifndef GILTRACER_REPORT_VERDICT_TEXT_H
#define GILTRACER_REPORT_VERDICT_TEXT_H

#include "analysis/analysis.h"
#include "base/str.h"

/* Append its sentences: UTF-8 without controls, with names of others in them. Nothing for an empty
 * list. */
void verdict_add_text(struct str *out, const struct analysis *analysis,
                      const struct reasons *reasons);

/* The users of the CPUs, in one sentence; nothing if they are unknown. */
void verdict_add_cpu_users(struct str *out, const struct analysis *analysis);

/* "gil-bound" and the like; "good", "fair", "poor". */
const char *verdict_kind_name(enum verdict_kind kind);
const char *verdict_quality_name(enum verdict_quality quality);

#endif

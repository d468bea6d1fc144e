/* SPDX-License-Identifier: MIT */
/* The name, text and advice of each pattern. */
#ifndef GILTRACER_REPORT_PATTERN_TEXT_H
#define GILTRACER_REPORT_PATTERN_TEXT_H

#include "analysis/patterns.h"
#include "base/str.h"
#include "model/model.h"
#include "report/phrases.h"

/* A short stable name ("convoy"), a title and one piece of advice for a person. */
const char *pattern_name(enum pattern_kind kind);
const char *pattern_title(enum pattern_kind kind);
const char *pattern_advice(enum pattern_kind kind);

/* Append the evidence: one sentence with threads and numbers. */
void pattern_text(const struct model *model, const struct pattern *pattern, struct str *ret);

#endif

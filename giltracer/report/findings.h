/* SPDX-License-Identifier: MIT */
/* The findings in words, which are UTF-8 without controls and may contain untrusted names. */
#ifndef GILTRACER_REPORT_FINDINGS_H
#define GILTRACER_REPORT_FINDINGS_H

#include "analysis/analysis.h"
#include "base/str.h"

/* Short stable names: "lock"; "exact", "inferred", "sampled". */
const char *finding_kind_name(enum finding_kind kind);
const char *finding_certainty_name(enum finding_certainty certainty);

/* Append, each without a full stop or blank at its end: the title, a few words; "30.8 s (69.1 %)";
 * the evidence, sentences; what helps, with what it would save. Nothing if there is none. */
void finding_add_title(struct str *out, const struct analysis *analysis, const struct finding *f);
void finding_add_cost(struct str *out, const struct finding *f);
void finding_add_text(struct str *out, const struct analysis *analysis, const struct finding *f);
void finding_add_remedy(struct str *out, const struct analysis *analysis, const struct finding *f);

/* The title that does not depend on the other findings, by which one is found in another recording. */
void finding_add_full_title(struct str *out, const struct analysis *analysis,
                            const struct finding *f);

/* The line to look at: of the program, if one of its functions called the one of a library. The
 * name is NULL if it is not known. */
struct function finding_place_of(const struct analysis *analysis, const struct finding *f);

#endif

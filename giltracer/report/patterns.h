/* SPDX-License-Identifier: MIT */
/* The patterns of a pass, as JSON and as text. */
#ifndef GILTRACER_REPORT_PATTERNS_H
#define GILTRACER_REPORT_PATTERNS_H

#include <stdio.h>

#include "base/jsonw.h"
#include "report/report.h"

/* Write the member "patterns" into the open object. */
void patterns_json(struct jsonw *w, const struct recording_pass *pass);

/* Write one paragraph for each, for a terminal. */
void patterns_text(const struct recording_pass *pass, FILE *out);

#endif

/* SPDX-License-Identifier: MIT */
/* The patterns of a pass, in words. */
#ifndef GILTRACER_REPORT_PATTERNS_H
#define GILTRACER_REPORT_PATTERNS_H

#include <stdio.h>

#include "report/json/jsonw.h"
#include "report/report.h"

/* Member "patterns" of an open object. */
void patterns_json(struct jsonw *w, const struct recording_pass *pass);

/* One paragraph each, for a terminal. */
void patterns_text(const struct recording_pass *pass, FILE *out);

#endif

/* SPDX-License-Identifier: MIT */
/* Writes a comparison for a terminal, and as JSON. */
#ifndef GILTRACER_REPORT_DIFF_WRITE_H
#define GILTRACER_REPORT_DIFF_WRITE_H

#include <stdio.h>

#include "analysis/diff.h"
#include "base/str.h"
#include "report/tables.h"

/* Append what changed, in one or two sentences. Names in them may contain any bytes. */
void diff_add_headline(struct str *out, const struct diff *diff);

/* Append what limits the comparison; nothing if nothing does. */
void diff_add_caveat(struct str *out, const struct diff *diff);

enum diff_table { DIFF_FACTS, DIFF_THREADS, DIFF_FUNCTIONS, DIFF_TABLES };

/* all: see diff_text. Free with table_done. */
void diff_table(struct table *ret, const struct diff *diff, enum diff_table which, bool all);

/* all: include rows whose change is within the noise. Names are made safe for a terminal. */
void diff_text(const struct diff *diff, bool all, FILE *out);

/* {"diff": 1, "giltracer": version, "verdict", "text", "facts", "threads", "functions"} */
void diff_json(const struct diff *diff, const char *version, FILE *out);

#endif

/* SPDX-License-Identifier: MIT */
/* The writers of reports: each writes all facts of a recording in one format. */
#ifndef GILTRACER_REPORT_REPORT_H
#define GILTRACER_REPORT_REPORT_H

#include <stdio.h>

#include "analysis/analysis.h"
#include "analysis/diff.h"
#include "base/error.h"

#define HTML_MAX_THREADS 50000 /* of all passes */

/* The caller that opened out checks it for errors (filewriter_commit, main). */
int report_text(const struct analysis *analysis, FILE *out, struct error *err);
int report_json(const struct analysis *analysis, FILE *out, struct error *err);
int report_markdown(const struct analysis *analysis, FILE *out, struct error *err);
/* E2BIG: more than HTML_MAX_THREADS. */
int report_html(const struct analysis *analysis, FILE *out, struct error *err);

/* Two recordings: @diff compares their sides, of which @a and @b are shown; @a_path, @b_path: where they
 * are. */
struct change {
	const struct diff *diff;
	const struct analysis *a, *b;
	const char *a_path, *b_path;
};

/* Likewise. */
int report_diff_html(const struct change *change, FILE *out, struct error *err);

#endif

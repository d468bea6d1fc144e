/* SPDX-License-Identifier: MIT */
/* Culprits as annotations of source lines, for continuous integration. */
#ifndef GILTRACER_REPORT_ANNOTATE_H
#define GILTRACER_REPORT_ANNOTATE_H

#include <stdio.h>

#include "analysis/analysis.h"

#define ANNOTATE_MAX     3
#define ANNOTATE_PERCENT 5 /* of all waiting; less is not worth a mark */

enum annotate { ANNOTATE_NONE, ANNOTATE_GITHUB };

/* The option of run and report: value is unsigned *, an enum annotate. */
#define ANNOTATE_OPT(value)                                        \
	OPT_CHOICE(0, "annotate", "FORMAT", value, annotate_names, \
	           "print the worst functions as annotations for CI: github")
extern const char *const annotate_names[];

/*
 * GitHub's workflow commands: a warning at each of the ANNOTATE_MAX functions whose holds made others
 * wait most, if the verdict is that the GIL limits or slows the program; else one notice with the
 * verdict. A file below root, or below the working directory if that is NULL, is named relative to
 * it.
 */
void annotate_github(const struct analysis *analysis, const char *root, FILE *out);

#endif

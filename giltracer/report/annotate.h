/* SPDX-License-Identifier: MIT */
/* Culprits as annotations of source lines, for continuous integration. */
#ifndef GILTRACER_REPORT_ANNOTATE_H
#define GILTRACER_REPORT_ANNOTATE_H

#include <stdio.h>

#include "analysis/analysis.h"

#define ANNOTATE_MAX     3
#define ANNOTATE_PERCENT 5 /* of all waiting; functions with less get no annotation */

enum annotate { ANNOTATE_NONE, ANNOTATE_GITHUB };

/* The option of run and report: value is unsigned *, an enum annotate. */
#define ANNOTATE_OPT(value)                                        \
	OPT_CHOICE(0, "annotate", "FORMAT", value, annotate_names, \
	           "print the worst functions as annotations for CI: github")
extern const char *const annotate_names[];

/*
 * Write GitHub's workflow commands: if the verdict is that the GIL limits or slows the program, a
 * warning at each of the ANNOTATE_MAX functions whose holds made others wait most; else one notice
 * with the verdict. Paths of files below root, or below the working directory if root is NULL, are
 * written relative to it.
 */
void annotate_github(const struct analysis *analysis, const char *root, FILE *out);

#endif

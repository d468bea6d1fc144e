/* SPDX-License-Identifier: MIT */
/* The two small JSON documents of the page, see share/report/FORMAT.md: meta and overview. */
#ifndef GILTRACER_REPORT_HTML_META_H
#define GILTRACER_REPORT_HTML_META_H

#include <stdio.h>

#include "analysis/analysis.h"
#include "report/html/rows.h"

/* CPython's default, with which waits are compared. */
#define SWITCH_INTERVAL_NS 5000000
/* A wait of at least this length is never smaller than a pixel. */
#define WAIT_MARK_NS 1000000

/* If there are more rows of who waited for whom, or who used whose CPU, those of groups
 * stand for them, and at most so many: a page has to be read by a browser, and by a person. */
#define META_BLAME_ROWS 10000

/* rows are those of the passes, by index. */
void meta_write(const struct analysis *analysis, const struct rows *rows, FILE *out);

/* Shares of each GIL state in equal slices of time, of the main pass. */
void overview_write(const struct analysis *analysis, FILE *out);

#endif

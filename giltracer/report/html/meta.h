/* SPDX-License-Identifier: MIT */
/* The two small JSON documents of the page, see share/report/FORMAT.md: meta and overview. */
#ifndef GILTRACER_REPORT_HTML_META_H
#define GILTRACER_REPORT_HTML_META_H

#include <stdio.h>

#include "analysis/analysis.h"
#include "report/html/encode.h"

/* CPython's default switch interval, with which waits are compared. */
#define SWITCH_INTERVAL_NS 5000000
/* A wait of at least this length is drawn at least one pixel wide. */
#define WAIT_MARK_NS 1000000

/*
 * The maximum number of rows about holders of the GIL or users of CPUs. If there are more, rows of
 * groups replace them, at most this many, so that a browser can load the page and a person can read
 * it.
 */
#define META_BLAME_ROWS 10000

/* rows are those of the passes, by index. */
void meta_write(const struct analysis *analysis, const struct rows *rows, FILE *out);

/* Shares of each GIL state in equal slices of time, of the main pass. */
void overview_write(const struct analysis *analysis, FILE *out);

#endif

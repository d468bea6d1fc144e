/* SPDX-License-Identifier: MIT */
/* The page's tables for readers without JavaScript, and for print without it. */
#ifndef GILTRACER_REPORT_HTML_TABLES_H
#define GILTRACER_REPORT_HTML_TABLES_H

#include <stdio.h>

#include "analysis/analysis.h"

/* Maximum number of rows of a table; omitted rows are counted below it, with their time. */
#define HTML_ROWS 1000

/* Tables of the main pass. */
void html_tables(const struct analysis *a, FILE *out);

#endif

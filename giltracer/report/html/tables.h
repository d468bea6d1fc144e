/* SPDX-License-Identifier: MIT */
/* The page's tables for readers without JavaScript, and for print where there is none. */
#ifndef GILTRACER_REPORT_HTML_TABLES_H
#define GILTRACER_REPORT_HTML_TABLES_H

#include <stdio.h>

#include "analysis/analysis.h"

#define HTML_ROWS 1000 /* rows of a table; what is left out, and how much, is stated below it */

/* Of the main pass. */
void html_tables(const struct analysis *a, FILE *out);

#endif

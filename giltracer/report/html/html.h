/* SPDX-License-Identifier: MIT */
/* Parts of the page that are plain HTML. */
#ifndef GILTRACER_REPORT_HTML_HTML_H
#define GILTRACER_REPORT_HTML_HTML_H

#include <stdio.h>

#include "analysis/analysis.h"
#include "report/report.h"
#include "report/tables.h"

/* Maximum number of rows of a table; omitted rows are counted below it, with their time. */
#define HTML_ROWS 1000

/* Tables of the main pass. */
void html_tables(const struct analysis *a, FILE *out);

/* Writes and frees the table. own: the page shows it as it is, because it makes none from other
 * data. */
void html_table(struct table *table, bool own, FILE *out);

/* The parts of a page of two recordings that take the place of the verdict, and of the tables. */
void change_verdict(const struct change *change, FILE *out);
void change_tables(const struct change *change, FILE *out);

/* Write text with & < > " ' as entities; controls, bidi controls and invalid UTF-8 become
 * U+FFFD. Suitable for element content and quoted attributes. */
void html_text(const char *text, FILE *out);

#endif

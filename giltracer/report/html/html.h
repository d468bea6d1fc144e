/* SPDX-License-Identifier: MIT */
/* Parts of the page that are plain HTML. */
#ifndef GILTRACER_REPORT_HTML_HTML_H
#define GILTRACER_REPORT_HTML_HTML_H

#include <stdio.h>

#include "analysis/analysis.h"

/* Maximum number of rows of a table; omitted rows are counted below it, with their time. */
#define HTML_ROWS 1000

/* Tables of the main pass. */
void html_tables(const struct analysis *a, FILE *out);

/* Write text with & < > " ' as entities; controls, bidi controls and invalid UTF-8 become
 * U+FFFD. Suitable for element content and quoted attributes. */
void html_text(const char *text, FILE *out);

#endif

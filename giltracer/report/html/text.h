/* SPDX-License-Identifier: MIT */
/* Untrusted text in HTML. */
#ifndef GILTRACER_REPORT_HTML_TEXT_H
#define GILTRACER_REPORT_HTML_TEXT_H

#include <stdio.h>

/* Write text with & < > " ' as entities; controls, bidi controls and bytes that are no UTF-8 become
 * U+FFFD. Fit for element content and quoted attributes. */
void html_text(const char *text, FILE *out);

#endif

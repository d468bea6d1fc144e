/* SPDX-License-Identifier: MIT */
/* Untrusted text in HTML. */
#ifndef GILTRACER_REPORT_HTML_TEXT_H
#define GILTRACER_REPORT_HTML_TEXT_H

#include <stdio.h>

/* Write text with & < > " ' as entities; controls, bidi controls and invalid UTF-8 become
 * U+FFFD. Suitable for element content and quoted attributes. */
void html_text(const char *text, FILE *out);

#endif

/* SPDX-License-Identifier: MIT */
/* Text for a terminal window: as wide as the window. */
#ifndef GILTRACER_REPORT_TERMINAL_H
#define GILTRACER_REPORT_TERMINAL_H

#include <stdio.h>

#include "base/str.h"

/* The width of the terminal that out writes to; 0 if it is not a terminal or has no known width. */
unsigned terminal_columns(FILE *out);

/* Append text as one paragraph, indented by two columns, its further lines by four, each at most so
 * many columns wide if its words allow; 0: one line, however long. A newline ends it. */
void terminal_wrap(struct str *str, const char *text, unsigned columns);

/* Print a paragraph to out, as wide as its terminal. */
void terminal_putf(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif

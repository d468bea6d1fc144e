/* SPDX-License-Identifier: MIT */
/* Text that is read in a window: as wide as that is. */
#ifndef GILTRACER_REPORT_TERMINAL_H
#define GILTRACER_REPORT_TERMINAL_H

#include <stdio.h>

#include "base/str.h"

/* How wide the terminal is that out writes to; 0 if that is none, or does not say. */
unsigned terminal_columns(FILE *out);

/* Append text as one paragraph, indented by two columns, its further lines by four, each at most so
 * many columns wide if its words allow; 0: one line, however long. A newline ends it. */
void terminal_wrap(struct str *str, const char *text, unsigned columns);

/* Print a paragraph to out, as wide as its terminal. */
void terminal_putf(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif

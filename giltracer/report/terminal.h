/* SPDX-License-Identifier: MIT */
/* Text for a terminal, wrapped to the width of its window. */
#ifndef GILTRACER_REPORT_TERMINAL_H
#define GILTRACER_REPORT_TERMINAL_H

#include <stdio.h>

#include "base/str.h"
#include "report/tables.h"

/* Append text as one paragraph, its first line indented by two columns, others by four, each at
 * most columns wide if its words permit; 0: one line of any length. A newline ends it. */
void terminal_wrap(struct str *str, const char *text, unsigned columns);

/* Print a paragraph to out, wrapped to the width of its terminal. */
void terminal_putf(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Tables for terminals: aligned, and as narrow as the terminal if their words permit. */

/* Write the table, the sentence about omitted rows, and its notes; nothing if it has no rows. */
void terminal_table(const struct table *table, FILE *out);

#endif

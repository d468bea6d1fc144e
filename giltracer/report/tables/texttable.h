/* SPDX-License-Identifier: MIT */
/* Tables for terminals: aligned, and as narrow as the terminal if their words permit. */
#ifndef GILTRACER_REPORT_TABLES_TEXTTABLE_H
#define GILTRACER_REPORT_TABLES_TEXTTABLE_H

#include <stdio.h>

#include "report/tables.h"

/* Write the table, the sentence about omitted rows, and its notes; nothing if it has no rows. */
void texttable_write(const struct table *table, FILE *out);

#endif

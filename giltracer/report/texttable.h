/* SPDX-License-Identifier: MIT */
/* Tables for terminals: rows of cells, aligned over all of them. */
#ifndef GILTRACER_REPORT_TEXTTABLE_H
#define GILTRACER_REPORT_TEXTTABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/str.h"
#include "base/vec.h"
#include "report/crowds.h"
#include "report/report.h"

#define CELLS              9
#define TABLE_TEXT_COLUMNS 80
#define TABLE_NAME_COLUMNS 40 /* of a thread, or a function */

/* widths: columns of the terminal that the cells take. */
struct row {
	struct str cells[CELLS];
	unsigned widths[CELLS];
};

/* The first text_columns of columns are text, the others numbers; headed: the first row is one of
 * headings, which take two lines where the terminal is too narrow. */
struct table {
	unsigned columns, text_columns;
	bool headed;
	VEC(struct row) rows;
};

/* A new row; borrowed until the next one. */
struct row *table_row(struct table *table);
/* Before any other row. */
void table_headings(struct table *table, const char *const *headings);

/* Any bytes, made safe. */
void row_text(struct row *row, unsigned column, const char *text);

/* "NAME 1235*", as facts_add_id has it. */
void row_thread(struct row *row, unsigned column, const struct report_pass *pass, uint32_t thread);

/* A thread, or "Thread-* 12 threads". */
void row_crowd(struct row *row, unsigned column, const struct report_pass *pass,
               const struct crowd *crowd);

/* Thousands apart, so that a long number can be read. */
void row_number(struct row *row, unsigned column, double value, int decimals);

/* Write the table, and that so many rows were left out of it: "… and 12 more" and what, unless that
 * is none. The table is done with. */
void table_end(struct table *table, size_t left, const char *what, FILE *out);

#endif

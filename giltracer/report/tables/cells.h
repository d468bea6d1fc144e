/* SPDX-License-Identifier: MIT */
/* Helpers for filling in tables; private to this folder. */
#ifndef GILTRACER_REPORT_TABLES_CELLS_H
#define GILTRACER_REPORT_TABLES_CELLS_H

#include "report/tables/tables.h"

/* Add a row without text; borrowed until the next one. */
struct row *table_add_row(struct table *table);

/* text: any bytes, which are made safe. */
void cell_text(struct row *row, unsigned column, const char *text);
void cell_number(struct row *row, unsigned column, double value, int decimals);
void cell_ms(struct row *row, unsigned column, uint64_t ns, int decimals);

/* "NAME 1235*", see wording_add_id. */
void cell_thread(struct row *row, unsigned column, const struct analysis *a, uint32_t thread,
                 unsigned name_columns);

/* A thread, or "Thread-* 12 threads". */
void cell_group(struct row *row, unsigned column, const struct analysis *a, uint32_t group,
                unsigned name_columns);

/* Owns the note; an empty one is dropped. */
void table_add_note(struct table *table, struct str *note);

void table_set_headings(struct table *table, const enum phrase *headings, unsigned columns);

#define TABLE_HEADINGS(table, ...)                                      \
	table_set_headings(table, (const enum phrase[]){ __VA_ARGS__ }, \
	                   sizeof((const enum phrase[]){ __VA_ARGS__ }) / sizeof(enum phrase))

#endif

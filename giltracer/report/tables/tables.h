/* SPDX-License-Identifier: MIT */
/* The tables of a report, for a terminal and for a page without JavaScript. */
#ifndef GILTRACER_REPORT_TABLES_TABLES_H
#define GILTRACER_REPORT_TABLES_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/analysis.h"
#include "base/str.h"
#include "base/vec.h"
#include "report/phrases.h"

#define TABLE_COLUMNS 11

/**
 * @number: it is one, of @value with so many @decimals; else
 * @text: made safe for a terminal, @width columns of it
 */
struct cell {
	struct str text;
	unsigned width;
	bool number;
	double value;
	int decimals;
};

struct row {
	struct cell cells[TABLE_COLUMNS];
};

/**
 * @caption: for a page; @headings: of each column
 * @columns: of which the first @text_columns are text, the others numbers
 * @left, @left_ns: rows that were left out, and their time; @say_left: how to say that
 * @notes: sentences below the table
 */
struct table {
	enum phrase caption, headings[TABLE_COLUMNS];
	unsigned columns, text_columns;
	VEC(struct row) rows;
	uint64_t left, left_ns;
	void (*say_left)(struct str *out, uint64_t count, uint64_t ns);
	VEC(struct str) notes;
};

/**
 * How much of them is wanted.
 * @threads, @waits, @functions: at most so many rows
 * @name_columns: names are cut there
 * @all: rows of next to no time, too
 */
struct table_limits {
	size_t threads, waits, functions;
	unsigned name_columns;
	bool all;
};

/* Each fills in ret, to be freed with table_done; a table without rows is not shown. */
void table_threads(struct table *ret, const struct analysis *a, const struct table_limits *limits);
void table_states(struct table *ret, const struct analysis *a, const struct table_limits *limits);
void table_gil_waits(struct table *ret, const struct analysis *a,
                     const struct table_limits *limits);
void table_lock_waits(struct table *ret, const struct analysis *a,
                      const struct table_limits *limits);
void table_cpu_waits(struct table *ret, const struct analysis *a,
                     const struct table_limits *limits);
/* Overdue holds by function; and all holds that others waited for, unless nearly all that waiting
 * was for overdue ones. */
void table_overdue(struct table *ret, const struct analysis *a, const struct table_limits *limits);
void table_holders(struct table *ret, const struct analysis *a, const struct table_limits *limits);
void table_places(struct table *ret, const struct analysis *a, const struct table_limits *limits);

/* What samples show, marked as estimates. */
void table_sampled_threads(struct table *ret, const struct analysis *a,
                           const struct table_limits *limits);
void table_sampled_places(struct table *ret, const struct analysis *a,
                          const struct table_limits *limits);

/* asyncio's tasks. */
void table_tasks(struct table *ret, const struct analysis *a, const struct table_limits *limits);

void table_done(struct table *table);

#endif

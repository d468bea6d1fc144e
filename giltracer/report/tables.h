/* SPDX-License-Identifier: MIT */
/* The tables of a report, for a terminal and for a page without JavaScript. */
#ifndef GILTRACER_REPORT_TABLES_H
#define GILTRACER_REPORT_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/analysis.h"
#include "base/str.h"
#include "base/vec.h"
#include "report/phrases.h"

#define TABLE_COLUMNS 14

/* Percent of the waiting: if overdue holds caused so much of it, other holds have no table. */
#define TABLE_NEARLY_ALL 95

/**
 * @number: the cell is a number, @value with this many @decimals; else
 * @text: safe for a terminal, @width columns wide
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
 * @columns: number of columns; the first @text_columns are text, the others numbers
 * @left, @left_ns: omitted rows, and their time; @say_left: the sentence about them
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
 * Limits for a table.
 * @threads, @waits, @functions: maximum numbers of rows
 * @name_columns: width at which names are cut
 * @all: include rows with almost no time
 */
struct table_limits {
	size_t threads, waits, functions;
	unsigned name_columns;
	bool all;
};

/* Each fills in ret; free with table_done. A table without rows is not shown. */
void table_threads(struct table *ret, const struct analysis *a, const struct table_limits *limits);
void table_states(struct table *ret, const struct analysis *a, const struct table_limits *limits);
void table_gil_waits(struct table *ret, const struct analysis *a,
                     const struct table_limits *limits);
void table_lock_waits(struct table *ret, const struct analysis *a,
                      const struct table_limits *limits);
void table_cpu_waits(struct table *ret, const struct analysis *a,
                     const struct table_limits *limits);

/* Overdue holds by function; and all holds that others waited for, unless nearly all of the
 * waiting was for overdue ones. */
void table_overdue(struct table *ret, const struct analysis *a, const struct table_limits *limits);
void table_holders(struct table *ret, const struct analysis *a, const struct table_limits *limits);

/* Waits for locks of the program, by what the threads that had them did. */
void table_chains(struct table *ret, const struct analysis *a, const struct table_limits *limits);

/* The critical path, by line of code. */
void table_path(struct table *ret, const struct analysis *a, const struct table_limits *limits);

/* The replay without the GIL, if it was asked for. */
void table_without_gil(struct table *ret, const struct analysis *a,
                       const struct table_limits *limits);
void table_places(struct table *ret, const struct analysis *a, const struct table_limits *limits);

/* Stops of the world, by the thread that stopped last, and its line. */
void table_late(struct table *ret, const struct analysis *a, const struct table_limits *limits);

/* Facts from samples, marked as estimates. */
void table_sampled_threads(struct table *ret, const struct analysis *a,
                           const struct table_limits *limits);
void table_sampled_places(struct table *ret, const struct analysis *a,
                          const struct table_limits *limits);

/* Tasks of event loops. */
void table_tasks(struct table *ret, const struct analysis *a, const struct table_limits *limits);
void table_done(struct table *table);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The numbers of a thread, and the columns that show them: one line for each in threads.c, from which
 * the tables of the terminal, the JSON document and the table of the page are made.
 */
#ifndef GILTRACER_REPORT_THREADS_H
#define GILTRACER_REPORT_THREADS_H

#include "analysis/analysis.h"
#include "base/jsonw.h"
#include "report/phrases.h"

struct thread_column;

#define THREAD_COLUMNS 12 /* of one table, at most */

enum thread_table { THREADS_GIL, THREADS_LOCKS, THREADS_STATES, THREADS_TABLES };

/* The columns of a terminal's table, in order. Those that do not matter in this model are left out.
 * Returns their number. */
size_t thread_columns(const struct thread_column *ret[THREAD_COLUMNS], enum thread_table table,
                      const struct model *model);

enum phrase thread_column_heading(const struct thread_column *column);

/* Whether the column is a time, and not a percentage. t: a thread, or the sum of a group. */
bool thread_column_is_time(const struct thread_column *column);
double thread_column_percent(const struct thread_column *column, const struct model_thread *t);
uint64_t thread_column_ns(const struct thread_column *column, const struct model_thread *t);

/* Write the numbers of a schema 1 thread into the open object. */
void thread_json(struct jsonw *w, const struct recording_pass *pass, const struct model_thread *t);

/* For the page: "longest_X_at_ns" for each "longest_X_ns", since the start of the pass. */
void thread_longest_json(struct jsonw *w, const struct recording_pass *pass,
                         const struct model_thread *t);

/* Write "columns" and "state_columns" of a pass of the page's meta, see share/report/FORMAT.md. locks:
 * the pass's GIL is off. */
void thread_columns_json(struct jsonw *w, const struct model *model, bool locks);

#endif

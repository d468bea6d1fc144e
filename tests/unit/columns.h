/* SPDX-License-Identifier: MIT */
/* What a column of a table of threads shows for a thread. */
#ifndef GILTRACER_TESTS_COLUMNS_H
#define GILTRACER_TESTS_COLUMNS_H

#include "report/threads.h"

/* -1: there is no such column. */
static inline double column_percent(const struct model *model, enum thread_table table,
                                    enum phrase heading, const struct model_thread *t)
{
	const struct thread_column *columns[THREAD_COLUMNS];
	size_t n = thread_columns(columns, table, model);

	for (size_t i = 0; i < n; i++)
		if (thread_column_heading(columns[i]) == heading)
			return thread_column_percent(columns[i], t);
	return -1;
}

#endif

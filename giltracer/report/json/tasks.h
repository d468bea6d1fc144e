/* SPDX-License-Identifier: MIT */
#ifndef GILTRACER_REPORT_JSON_TASKS_H
#define GILTRACER_REPORT_JSON_TASKS_H

#include "report/json/json.h"

/* The maximum number of tasks if other lists have at most this many entries; a task takes half a
 * kilobyte. */
size_t tasks_json_most(size_t most);

/* Write the member "tasks": tasks of event loops, in at most this many groups, and one by one; null
 * if there were none. */
void tasks_json(struct jsonw *w, const struct analysis *analysis, size_t most);

/* The number of groups in the page's meta that have levels: those with the most time late. */
#define TASK_LANES 16

/* Write the member "tasks" of the page's meta, see share/report/FORMAT.md. Nothing if there were
 * no tasks. */
void tasks_meta(struct jsonw *w, const struct analysis *analysis);

#endif

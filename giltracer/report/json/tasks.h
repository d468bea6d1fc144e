/* SPDX-License-Identifier: MIT */
#ifndef GILTRACER_REPORT_JSON_TASKS_H
#define GILTRACER_REPORT_JSON_TASKS_H

#include "report/json/json.h"

/* Of tasks, of which each takes half a kilobyte, how many are listed where of other things at most so
 * many are. */
size_t tasks_json_most(size_t most);

/* The member "tasks": of asyncio, in at most so many groups, and one by one; null if there were none. */
void tasks_json(struct jsonw *w, const struct analysis *analysis, size_t most);

/* Groups of the page's meta that have levels: those that are most late. */
#define TASK_LANES 16

/* The member "tasks" of the page's meta: see share/report/FORMAT.md. None if there were no tasks. */
void tasks_meta(struct jsonw *w, const struct analysis *analysis);

#endif

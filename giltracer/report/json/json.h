/* SPDX-License-Identifier: MIT */
/* What the JSON document and the page's meta have in common. */
#ifndef GILTRACER_REPORT_JSON_JSON_H
#define GILTRACER_REPORT_JSON_JSON_H

#include "model/model.h"
#include "report/json/jsonw.h"
#include "report/report.h"

/* The members of a schema 1 thread, written into the open object. */
void json_thread_members(struct jsonw *w, const struct recording_pass *pass, uint32_t thread);

/* The same of a GIL. */
void json_gil_members(struct jsonw *w, const struct model_gil *gil);

/*
 * The document, as report_json writes it, with at most so many rows of "blame" and of "lock_blame",
 * the largest, and of "starvation", which are those of groups (analysis/thread_groups.h) if there
 * are more. Is anything left out or put together, "shortened" says what: pages have to be read.
 */
void json_write(const struct analysis *analysis, size_t most, FILE *out);

/* The member key: the tid of a thread of the model; null if it is MODEL_NONE, 0 if MODEL_UNKNOWN.
 */
static inline void json_tid(struct jsonw *w, const char *key, const struct model *model,
                            uint32_t thread)
{
	if (thread == MODEL_NONE)
		jsonw_null(w, key);
	else
		jsonw_u64(w, key, thread == MODEL_UNKNOWN ? 0 : model->threads.v[thread].tid);
}

#endif

/* SPDX-License-Identifier: MIT */
/* Shared by the JSON document and the page's meta. */
#ifndef GILTRACER_REPORT_JSON_JSON_H
#define GILTRACER_REPORT_JSON_JSON_H

#include "model/model.h"
#include "base/jsonw.h"
#include "report/report.h"

/* Write the members of a schema 1 thread into the open object. */
void json_thread_members(struct jsonw *w, const struct recording_pass *pass, uint32_t thread);

/* Write those of a GIL. */
void json_gil_members(struct jsonw *w, const struct model_gil *gil);

/*
 * Write the document of report_json, with at most this many rows: of "blame" and "lock_blame", the
 * largest; of "starvation", those of groups (analysis/groups.h) if there are more.
 * "shortened" lists what was omitted or grouped. Used for pages, whose size matters.
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

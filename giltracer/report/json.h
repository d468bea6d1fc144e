/* SPDX-License-Identifier: MIT */
/* The document of --json, and parts of it that the page has, too. */
#ifndef GILTRACER_REPORT_JSON_H
#define GILTRACER_REPORT_JSON_H

#include "analysis/diff.h"
#include "base/error.h"
#include "base/jsonw.h"
#include "model/model.h"
#include "report/report.h"

/* Write the members of a schema 1 thread into the open object. */
void json_thread_members(struct jsonw *w, const struct recording_pass *pass, uint32_t thread);

/* Write those of a GIL. */
void json_gil_members(struct jsonw *w, const struct model_gil *gil);

/*
 * Write the document of report_json, with at most this many rows: of "blame", "lock_blame" and
 * "locks", the largest; of "starvation", those of groups (analysis/groups.h) if there are more.
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

/* The number of groups in the page's meta that have levels: those with the most time late. */
#define TASK_LANES 16

/* Write the member "tasks" of the page's meta, see share/report/FORMAT.md. Nothing if there were
 * no tasks. */
void tasks_meta(struct jsonw *w, const struct analysis *analysis);

/* Parses schema 1; free with summary_done, even after an error. */
int summary_read(struct summary *ret, const char *text, size_t len, struct error *err);

#endif

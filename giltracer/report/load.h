/* SPDX-License-Identifier: MIT */
/* Reads all recordings of a session simultaneously and makes models of them. */
#ifndef GILTRACER_REPORT_LOAD_H
#define GILTRACER_REPORT_LOAD_H

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "report/report.h"
#include "session/session.h"

struct privacy;

/**
 * The data of a pass.
 * @note: why there are no slices, "" if unknown
 * @nothing: the recording contains nothing of the program
 * @only_pid: the only process to report, 0: all
 * @all_wakeups: the wake-ups of the whole machine were recorded
 * @locks_known: waits for locks were recorded
 * @warnings: what is wrong with the recording, one sentence each
 */
struct loaded {
	struct source *source;
	struct model *model;
	struct slices *slices;
	struct pycode *code;     /* NULL: none */
	struct samples *samples; /* likewise */
	struct holds holds;
	bool all_wakeups, nothing, locks_known;
	uint32_t only_pid;
	struct str note;
	VEC(char *) warnings;
};

/* Read one struct loaded per pass of the session, which was read from dir; free with
 * report_unload. A Python-side trace that cannot be read is omitted from the report. privacy: for all
 * names, borrowed until then; NULL: nothing is hidden. */
int report_load(struct loaded **ret, const struct session *session, const char *dir,
                const struct privacy *privacy, struct error *err);
void report_unload(struct loaded *loaded, size_t count);

#endif

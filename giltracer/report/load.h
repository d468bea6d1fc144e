/* SPDX-License-Identifier: MIT */
/* Session folder -> models: reads all its recordings at the same time. */
#ifndef GILTRACER_REPORT_LOAD_H
#define GILTRACER_REPORT_LOAD_H

#include "base/error.h"
#include "base/str.h"
#include "report/report.h"
#include "session/session.h"

/**
 * What a pass is made of.
 * @note: why there are no slices, "" if nothing is known
 * @nothing: what was recorded is not the program's
 * @only_pid: the process that is of interest, 0: all are
 * @all_wakeups: there is a recording of the whole machine's wake-ups
 * @warning: what is wrong with the recording, "" if nothing
 */
struct loaded {
	struct source *source;
	struct model *model;
	struct slices *slices;
	struct pycode *code;     /* NULL: there is none */
	struct samples *samples; /* likewise */
	struct hogs hogs;
	struct patterns patterns;
	bool all_wakeups, nothing;
	uint32_t only_pid;
	struct str note;
	char warning[1024];
};

/* One struct loaded per pass of the session, which was read from dir; free with report_unload. A
 * Python-side trace that cannot be read costs its part of the report only. */
int report_load(struct loaded **ret, const struct session *session, const char *dir,
                struct error *err);
void report_unload(struct loaded *loaded, size_t count);

#endif

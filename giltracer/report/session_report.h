/* SPDX-License-Identifier: MIT */
/* Makes the reports of a session, for `giltracer report` and, after recording, `giltracer X`. */
#ifndef GILTRACER_REPORT_SESSION_REPORT_H
#define GILTRACER_REPORT_SESSION_REPORT_H

#include <stdio.h>

#include "analysis/analysis.h"
#include "analysis/diff.h"
#include "analysis/whatif.h"
#include "base/error.h"

/* Writes a document of the analysis to out; the caller that opened out checks it for errors. */
typedef int report_writer(const struct analysis *analysis, FILE *out, struct error *err);

#define CONFIDENTIAL_OPT(value)            \
	OPT_FLAG(0, "confidential", value, \
	         "for somebody outside: hide paths, arguments, names of user and host, secrets")

struct report_document {
	report_writer *write;
	const char *path; /* "-" is stdout */
};

/**
 * What to write; NULL: omit it.
 * @confidential: for somebody outside, see session/privacy.h
 * @html, @json, @markdown: files; "-" is stdout
 * @summary: the recording in numbers; free with summary_done, even after an error
 * @text: destination of the terminal report
 * @annotations: destination of annotations for GitHub
 * @documents: in other formats, see export/export.h; borrowed
 * @without_gil: of the replay without the GIL, which is then in all documents; borrowed
 */
struct report_outputs {
	bool confidential;
	const char *html;
	const char *json;
	const char *markdown;
	struct summary *summary;
	FILE *text;
	FILE *annotations;
	const struct report_document *documents;
	size_t document_count;
	const struct whatif_options *without_gil;
};

/* The options of the replay without the GIL. */
struct without_gil {
	const char *cpus, *cost;
	struct whatif_options options;
};

#define WITHOUT_GIL_OPTS(w)                                                             \
	OPT_STR(0, "without-gil", "CPUS", &(w)->cpus,                                   \
	        "estimate the run without the GIL, on so many CPUs, such as 2,4,8,64"), \
		OPT_STR(0, "without-gil-cost", "FACTOR", &(w)->cost,                    \
	                "how many times as long Python code runs then in one thread (1.2)")

/* Parse them. *ret is NULL if they were not given. */
int without_gil_parse(const struct whatif_options **ret, struct without_gil *w, struct error *err);

/* Check that no two outputs have the same name. */
int report_check_outputs(const struct report_outputs *outputs, struct error *err);

/* A session that has been read into memory. Logs progress and warnings. */
struct opened;

/* confidential: all of it is hidden that session/privacy.h tells. */
int session_open(struct opened **ret, const char *dir, bool confidential, struct error *err);
const struct recording *opened_recording(const struct opened *opened); /* borrowed */
void session_close(struct opened *opened);

/* Read the session in dir and write the outputs. Logs progress and warnings. Each file is
 * written completely or not at all. Needs no privilege. */
int report_session(const char *dir, const struct report_outputs *outputs, struct error *err);

#endif

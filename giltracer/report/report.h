/* SPDX-License-Identifier: MIT */
/* What every report is made of, and the writers that make one: the same facts for all of them. */
#ifndef GILTRACER_REPORT_REPORT_H
#define GILTRACER_REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "model/hogs.h"
#include "model/patterns.h"
#include "model/model.h"
#include "trace/slices.h"
#include "trace/source.h"

struct report_gil_function {
	const char *name;
	uint64_t offset;  /* in the file that holds it */
	const char *kind; /* "symbol", "debug" or "code" */
};

/* @gil: of a free-threaded interpreter when tracing began: "off", "on", or "forced" by an option */
struct report_python {
	const char *executable, *version, *implementation, *build_id; /* NULL: unknown */
	bool free_threaded;
	const char *gil;
	const struct report_gil_function *functions;
	size_t function_count;
};

/**
 * One execution of the program. Everything is borrowed.
 * @name: "gil" or "stacks"
 * @free_threaded: of an interpreter that can do without a GIL
 * @exit_status: of the program; 128 + signal if it died of one
 * @hogs, @patterns: its holds by function, and how its threads got in each other's way; NULL if it
 *                   is no gil pass
 * @slices: its Python-side trace, or NULL, and then slices_note says why in one sentence
 */
struct report_pass {
	const char *name;
	bool free_threaded;
	int exit_status;
	uint64_t wall_ns;
	const struct model *model;
	const struct source *source;
	const struct hogs *hogs;
	const struct patterns *patterns;
	const struct slices *slices;
	const char *slices_note;
};

struct report_note { /* something the recorder had to say */
	const char *code;
	uint64_t count;
	const char *text;
};

/* The whole of it. */
struct report {
	const char *version;
	const char *const *command; /* argv of the program, NULL-terminated */
	const char *created;        /* ISO 8601, UTC */
	const char *host;           /* kernel, architecture, CPUs in one line */
	unsigned cpus;
	bool state_detect, gil_detect, one_run;
	struct report_python python;
	const struct report_pass *passes;
	size_t pass_count;
	const struct report_note *notes;
	size_t note_count;
};

/* The pass whose GIL numbers count ("gil", else "stacks"), never NULL. */
const struct report_pass *report_main_pass(const struct report *report);

/* Writers. out is checked for errors by who opened it (filewriter_commit, main). */
int report_text(const struct report *report, FILE *out, struct error *err);
int report_json(const struct report *report, FILE *out, struct error *err);
int report_html(const struct report *report, FILE *out, struct error *err);

#endif

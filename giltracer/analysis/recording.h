/* SPDX-License-Identifier: MIT */
/* The input of the analysis: the model of each pass, and facts about the program and the host. */
#ifndef GILTRACER_ANALYSIS_RECORDING_H
#define GILTRACER_ANALYSIS_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/hogs.h"
#include "analysis/patterns.h"
#include "model/model.h"
#include "session/session.h"
#include "trace/samples.h"
#include "trace/slices.h"
#include "trace/source.h"

/* @gil: state of a free-threaded interpreter's GIL when tracing began: "off", "on", or "forced" by
 * an option */
struct recording_python {
	const char *executable, *version, *implementation, *build_id; /* NULL: unknown */
	bool free_threaded;
	const char *gil;
	const struct gil_function *functions;
	size_t function_count;
};

/**
 * One execution of the program. Everything is borrowed.
 * @free_threaded: the interpreter can run without a GIL
 * @locks_known: waits for locks were recorded
 * @attached: the program already ran; @gil_recorded: GIL events were, not only samples
 * @quota: the CPU limit of the program's control group
 * @exit_status: the program's, or 128 + signal if a signal ended it
 * @hogs, @patterns: its holds by function, and the patterns of its threads; NULL if it is not a GIL
 *                   pass
 * @samples: sampled stacks; NULL: none were taken
 * @slices: its Python-side trace; if NULL, slices_note gives the reason in one sentence
 */
struct recording_pass {
	enum pass_kind kind;
	bool free_threaded, locks_known, attached, gil_recorded;
	int exit_status;
	uint64_t wall_ns;
	struct cpu_quota quota;
	const struct model *model;
	const struct source *source;
	const struct hogs *hogs;
	const struct patterns *patterns;
	const struct slices *slices;
	const char *slices_note;
	const struct samples *samples;
};

struct sources;

struct recording_note { /* a note of the recorder */
	const char *code;
	uint64_t count;
	const char *text;
};

/* The whole recording. */
struct recording {
	const char *version;
	const char *const *command; /* argv of the program, NULL-terminated */
	const char *created;        /* ISO 8601, UTC */
	const char *host;           /* kernel, architecture, CPUs in one line */
	unsigned cpus;
	bool state_detect, gil_detect, one_run;
	struct recording_python python;
	const struct recording_pass *passes;
	size_t pass_count;
	const struct recording_note *notes;
	size_t note_count;
	const struct sources *sources; /* NULL: no lines of the program were recorded */
};

/* The pass whose GIL numbers are reported: PASS_GIL if there is one, otherwise PASS_STACKS; never
 * NULL. */
const struct recording_pass *recording_main_pass(const struct recording *recording);

bool recording_has_note(const struct recording *recording, const char *code);

#endif

/* SPDX-License-Identifier: MIT */
/* Session folder -> reports: what `giltracer report` and, after recording, `giltracer X` do. */
#ifndef GILTRACER_REPORT_SESSION_H
#define GILTRACER_REPORT_SESSION_H

#include <stdio.h>

#include "base/error.h"
#include "report/folded.h"

struct report_folded_output {
	enum folded_kind kind;
	const char *path; /* "-" is stdout */
};

/**
 * What to write; NULL: not that one.
 * @html, @json: files; "-" is stdout
 * @json_stream: the same document, to an open stream
 * @text: where the terminal table goes
 */
struct report_outputs {
	const char *html;
	const char *json;
	FILE *json_stream;
	FILE *text;
	const struct report_folded_output *folded;
	size_t folded_count;
};

/* That no two of them are to be in the same place, by its name. */
int report_check_outputs(const struct report_outputs *outputs, struct error *err);

/*
 * Read the session in dir and write what outputs name. Logs progress and warnings. Each file
 * appears whole or not at all. Needs no privilege.
 */
int report_session(const char *dir, const struct report_outputs *outputs, struct error *err);

#endif

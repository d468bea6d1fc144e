/* SPDX-License-Identifier: MIT */
/* Functions by the waiting they caused, as the probes saw them: for all writers. */
#ifndef GILTRACER_REPORT_FUNCTIONS_H
#define GILTRACER_REPORT_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "model/hogs.h"
#include "report/jsonw.h"
#include "report/report.h"

/**
 * A function by name. Borrowed from the pass; any bytes.
 * @name: NULL if it is not known
 * @file: "" if it is not known; @line: 0 likewise
 */
struct function {
	const char *name, *file;
	uint32_t line;
};

struct function function_of(const struct report_pass *pass, const struct hog *hog);

/* The caller of function_of; its name is NULL if it was not fetched. */
struct function function_caller(const struct report_pass *pass, const struct hog *hog);

/* The same if it tells something: in another file, and none of Python's own that starts or feeds
 * threads and so calls everything (threading, concurrent.futures, multiprocessing, asyncio). */
struct function function_telling_caller(const struct report_pass *pass, const struct hog *hog);

/* "name (file.py:12)", without folders, or "(unknown)"; safe for a terminal, at most about columns
 * wide. Returns the columns used. */
unsigned function_add(struct str *out, const struct function *f, unsigned columns);

/* The C function that kept the GIL in most samples of the row's late holds; NULL: not known. */
const char *function_native(const struct report_pass *pass, const struct hog *hog);

/* The row of the thread that caused most waiting, late or not; NULL if no function of it is known.
 */
const struct hog *functions_top(const struct report_pass *pass, uint32_t thread);

/* The row for a table: function_add, the C function below it, and the caller if it tells something.
 * Returns the columns used. */
unsigned function_add_row(struct str *out, const struct report_pass *pass, const struct hog *hog,
                          unsigned columns);

/* Whether the function is one of Python's own library or of a package, and who called it was not
 * fetched. */
bool function_wants_caller(const struct report_pass *pass, const struct hog *hog);

/* How much of all that is known of the thread's holds the row made others wait, in percent. */
double functions_percent(const struct report_pass *pass, const struct hog *hog);

/* What the numbers of would-be savings are, in one sentence. */
#define FUNCTIONS_GAIN                                                                            \
	"an estimate: the recording replayed on the CPUs it had, with these calls letting go of " \
	"the GIL and all else as long as it was"

/* What is saved by the function of hog in all threads; HOGS_NO_GAIN if that is not known. */
uint64_t functions_gain(const struct report_pass *pass, const struct hog *hog);

/* Members "hogs" and "functions" of an open object. */
void functions_json(struct jsonw *w, const struct report_pass *pass);

#endif

/* SPDX-License-Identifier: MIT */
/* The parts of a report's sentences: threads, functions, notes; safe for a terminal. */
#ifndef GILTRACER_REPORT_WORDING_H
#define GILTRACER_REPORT_WORDING_H

#include "analysis/facts.h"
#include "analysis/functions.h"
#include "analysis/group_blame.h"
#include "base/str.h"

/* "1235*": the star marks a main thread; "1234/1235*" where there are several processes. */
void wording_add_id(struct str *out, const struct recording_pass *pass, uint32_t thread);

/* A thread in a sentence: its name, and its id only if other threads have the same name. Safe for
 * terminals. */
void wording_add_thread(struct str *out, const struct recording_pass *pass, uint32_t thread);

/* "name (file.py:12)", without folders, or "(unknown)"; safe for a terminal, at most about columns
 * wide. Returns the columns used. */
unsigned wording_add_function(struct str *out, const struct function *f, unsigned columns);

/* A function as slices name it, "function (/long/path/file.py:12)", without the path: likewise. */
unsigned wording_add_traced(struct str *out, const char *name, unsigned columns);

/* The row for a table: wording_add_function, the C function below it, the caller if it tells
 * something (it is in another file, and none of Python's own that starts or feeds threads and so
 * calls everything: threading, concurrent.futures, multiprocessing, asyncio, runpy), and ": slow
 * under perf" of what function_is_slow_start is true of. Returns the columns used. */
unsigned wording_add_function_row(struct str *out, const struct recording_pass *pass,
                                  const struct hog *hog, unsigned columns);

/* A holder that is not a group, in words that depend on the kind; for WAIT_FOR_CPU, not the names
 * of programs. */
const char *wording_nobody(const struct group_blame *blame);

/* What is missing in a Python trace; nothing if it is complete. */
void wording_add_flaw(struct str *out, const struct slices *slices);

/* What a caveat says, any bytes: notes may have names in them. With the name of its pass before it,
 * if that is asked for, and how often it applies, it is a note. */
void wording_add_caveat(struct str *out, const struct facts_caveat *caveat);
void wording_add_note(struct str *out, const struct facts_caveat *caveat, bool name_pass);

#endif

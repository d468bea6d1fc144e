/* SPDX-License-Identifier: MIT */
/* The parts of a report's sentences: threads, functions, notes; safe for a terminal. */
#ifndef GILTRACER_REPORT_WORDS_H
#define GILTRACER_REPORT_WORDS_H

#include "analysis/analysis.h"
#include "analysis/facts.h"
#include "analysis/functions.h"
#include "analysis/groups.h"
#include "analysis/locks.h"
#include "analysis/patterns.h"
#include "base/str.h"
#include "model/model.h"
#include "report/phrases.h"

/* "1235*": the star marks a main thread; "1234/1235*" if there are several processes. */
void wording_add_id(struct str *out, const struct recording_pass *pass, uint32_t thread);

/* The name of a thread, with its id if other threads have the same name. Safe for a terminal. */
void wording_add_thread(struct str *out, const struct recording_pass *pass, uint32_t thread);

/* "name (file.py:12)", without folders, or "(unknown)"; safe for a terminal, at most about
 * columns wide. Returns the columns used. */
unsigned wording_add_function(struct str *out, const struct function *f, unsigned columns);

/* The same for a function of the slices, "function (/long/path/file.py:12)". */
unsigned wording_add_traced(struct str *out, const char *name, unsigned columns);

/*
 * The text for a table row: wording_add_function, the C function that it calls, its caller if that
 * is informative (in another file, and not a function of Python's own that starts or feeds threads
 * and therefore calls everything: threading, concurrent.futures, multiprocessing, asyncio, runpy),
 * and ": slow under perf" if function_is_slow_start is true. Returns the columns used.
 */
unsigned wording_add_function_row(struct str *out, const struct recording_pass *pass,
                                  const struct hog *hog, unsigned columns);

/* "`self._lock` of Cache in get (cache.py:40)", or what kind of lock it is. Returns the columns used. */
unsigned wording_add_lock_in(struct str *out, const struct lock_name *lock, unsigned columns);

/* What the thread that had a lock did meanwhile. */
const char *wording_chain(const struct chain *chain);

/* The same with the function, which is known. */
void wording_add_meanwhile(struct str *out, const struct chain *chain, const char *at);

/* The words for a holder that is not a group; for WAIT_FOR_CPU, without the names of programs. */
const char *wording_nobody(const struct group_blame *blame);

/* Append what is missing in a Python trace; nothing if it is complete. */
void wording_add_flaw(struct str *out, const struct slices *slices);

/* Append the text of a caveat, which may contain any bytes, because notes contain names. A note
 * has its count in addition and, with name_pass, the name of its pass before it. */
void wording_add_caveat(struct str *out, const struct facts_caveat *caveat);
void wording_add_note(struct str *out, const struct facts_caveat *caveat, bool name_pass);

/* The words for facts from samples. */

/* "has the GIL" */
/* pass: in which it was sampled */
const char *sampled_what_text(const struct recording_pass *pass, enum sampled_what what);

/* "recv_into (socket.py:706) called by fetch (client.py:12)"; safe for a terminal. Returns the
 * columns used. */
unsigned sampled_add_place(struct str *out, const struct recording_pass *pass,
                           const struct sampled_place *place, unsigned columns);

/* The name, text and advice of each pattern. */

/* A short stable name ("convoy"), a title and one piece of advice for a person. */
const char *pattern_name(enum pattern_kind kind);
const char *pattern_title(enum pattern_kind kind);
const char *pattern_advice(enum pattern_kind kind);

/* Append the evidence: one sentence with threads and numbers. */
void pattern_text(const struct model *model, const struct pattern *pattern, struct str *ret);

/* The verdict in words; analysis/verdict.h has the rules. */

/* Append sentences for the reasons: UTF-8 without controls, which may contain untrusted names.
 * Nothing for an empty list. */
void verdict_add_text(struct str *out, const struct analysis *analysis,
                      const struct reasons *reasons);

/* Append one sentence about the users of the CPUs; nothing if they are unknown. */
void verdict_add_cpu_users(struct str *out, const struct analysis *analysis);

/* "gil-bound" and the like; "good", "fair", "poor". */
const char *verdict_kind_name(enum verdict_kind kind);
const char *verdict_quality_name(enum verdict_quality quality);

#endif

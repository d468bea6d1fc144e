/* SPDX-License-Identifier: MIT */
/* Functions, with the waiting that they caused according to the probes; used by all writers. */
#ifndef GILTRACER_ANALYSIS_FUNCTIONS_H
#define GILTRACER_ANALYSIS_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/facts.h"
#include "analysis/hogs.h"

/**
 * A function's name and place. Borrowed from the pass; strings may contain any bytes.
 * @name: NULL if it is not known
 * @file: "" if it is not known; @line: 0 if it is not known
 */
struct function {
	const char *name, *file;
	uint32_t line;
};

/* The Python frames that the probes fetched; NULL if there are none. */
const struct stacks *functions_frames(const struct recording_pass *pass);

/* The function with this id in the source's frames; 0: unknown. */
struct function function_at(const struct recording_pass *pass, uint32_t id);

struct function function_of(const struct recording_pass *pass, const struct hog *hog);

/* Its caller; the name is NULL if the caller was not fetched. */
struct function function_caller(const struct recording_pass *pass, const struct hog *hog);

/* A file with one of these in its path belongs to Python's own library or to a package. NULL is the last. */
extern const char *const library_marks[];

/* Whether the file does. The text may be longer, such as "name (file:line)". */
bool function_in_library(const char *file);

/* Of such a file, what follows the folder that import searches, such as "json/decoder.py"; otherwise the path. The
 * text may be longer at its end. */
const char *function_import_path(const char *path);

/* The innermost function on its stack, itself included, that belongs neither to Python's own library
 * nor to a package; the name is NULL if none was fetched. */
struct function function_user(const struct recording_pass *pass, const struct hog *hog);

/* The line of the program that kept the GIL, of function_user() or else of the function itself; NULL:
 * it was not recorded. */
const char *function_source(const struct recording *recording, const struct recording_pass *pass,
                            const struct hog *hog, struct function *ret_of);

/* The caller to name: of a function of a library, function_user(); otherwise the immediate one, if it
 * is informative: in another file than the function, and not in one of Python's own modules that start
 * or feed threads and therefore call everything (threading, concurrent.futures, multiprocessing,
 * asyncio, runpy). Otherwise the name is NULL. */
struct function function_telling_caller(const struct recording_pass *pass, const struct hog *hog);

/* The C function that kept the GIL in most samples of the row's overdue holds; if it has no symbol, the
 * name of its file; NULL: not known. */
const char *function_native(const struct recording_pass *pass, const struct hog *hog);

/* Whether the function belongs to Python's own library or to a package, and its caller was not
 * fetched. */
bool function_wants_caller(const struct recording_pass *pass, const struct hog *hog);

/* Whether the row is the start of a thread that slept: clone(2) waits in the kernel while perf
 * records, and for long if other tracers run. The cause is tracing, not the program. */
bool function_is_slow_start(const struct recording_pass *pass, const struct hog *hog);

/* What kept the GIL in the function, as far as that is known. */
enum function_cause {
	CAUSE_CALL, /* a call of C code, or an operator */
	CAUSE_COLLECTOR,
	CAUSE_IMPORT,       /* a module was imported */
	CAUSE_DEALLOCATION, /* objects were freed */
	CAUSES,
};

enum function_cause function_cause(const struct recording_pass *pass, const struct hog *hog);

/* Whether it is not certain that this function kept the GIL: only the end of the hold is known, or it
 * may have been one that it called. A function that returns has no frame any more while its objects
 * are freed, so the freeing is its caller's, such as Thread.run(). */
bool function_is_inferred(const struct recording_pass *pass, const struct hog *hog);

/**
 * A function in all threads that ran it.
 * @hog: one of its rows, for its name, caller and C function
 * @threads: number of rows; if it is 1, @hog->thread is the thread
 * @holds, @ns, @wait_ns, @longest_ns, @longest_at_ns, @off_cpu_ns: as in struct hog, for overdue
 * holds or for all
 * @longest_thread: the thread of the longest hold
 */
struct function_row {
	const struct hog *hog;
	uint32_t threads, longest_thread;
	uint64_t holds, ns, wait_ns, longest_ns, longest_at_ns, off_cpu_ns;
};

/* @wait_ns: sum over the rows; @longest_ns: the largest of the rows */
struct function_rows {
	VEC(struct function_row) v;
	uint64_t wait_ns, longest_ns;
};

/* Functions whose holds were overdue or, without overdue, known functions whose holds made others
 * wait. Most wait first. Free with vec_done(&rows.v). */
struct function_rows functions_rows(const struct recording_pass *pass, bool overdue);

/* The time that avoiding the row's overdue holds would save, unless the result tells why that is
 * not known. */
enum no_gain function_gain(const struct recording_pass *pass, const struct hog *hog,
                           uint64_t *ret_ns);

/* The same for the function of hog in all threads. */
enum no_gain functions_gain(const struct recording_pass *pass, const struct hog *hog,
                            uint64_t *ret_ns);

#endif

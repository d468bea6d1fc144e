/* SPDX-License-Identifier: MIT */
/* Functions by the waiting they caused, as the probes saw them; used by all writers. */
#ifndef GILTRACER_ANALYSIS_FUNCTIONS_H
#define GILTRACER_ANALYSIS_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/hogs.h"
#include "analysis/recording.h"
#include "analysis/thread_groups.h"

/**
 * A function by name. Borrowed from the pass; any bytes.
 * @name: NULL if it is not known
 * @file: "" if it is not known; @line: 0 likewise
 */
struct function {
	const char *name, *file;
	uint32_t line;
};

/* The Python frames that the probes read; NULL if there are none. */
const struct stacks *functions_frames(const struct recording_pass *pass);

/* By id in the source's frames; 0: unknown. */
struct function function_at(const struct recording_pass *pass, uint32_t id);

struct function function_of(const struct recording_pass *pass, const struct hog *hog);

/* Its caller; the name is NULL if the caller was not fetched. */
struct function function_caller(const struct recording_pass *pass, const struct hog *hog);

/* The caller if it says more than the function does: it is in another file, which is not one of
 * Python's own that starts or feeds threads and so calls everything (threading, concurrent.futures,
 * multiprocessing, asyncio, runpy). Otherwise its name is NULL. */
struct function function_telling_caller(const struct recording_pass *pass, const struct hog *hog);

/* The C function that kept the GIL in most samples of the row's overdue holds; NULL: not known. */
const char *function_native(const struct recording_pass *pass, const struct hog *hog);

/* Whether the function belongs to Python's own library or to a package, and its caller was not
 * fetched. */
bool function_wants_caller(const struct recording_pass *pass, const struct hog *hog);

/* Whether the row is the start of a thread that slept: clone(2) waits in the kernel while perf
 * records, and for long while other tracers run. The tracing causes that, not the program. */
bool function_is_slow_start(const struct recording_pass *pass, const struct hog *hog);

/**
 * A function in all threads that ran it.
 * @hog: a row of it: whoever needs a name, a caller, a C function
 * @threads: how many rows; with one, @hog->thread is who
 * @holds, @ns, @wait_ns, @longest_ns, @longest_at_ns, @off_cpu_ns: as in struct hog, of overdue
 * holds or of all
 * @longest_thread: who ran the longest
 */
struct function_row {
	const struct hog *hog;
	uint32_t threads, longest_thread;
	uint64_t holds, ns, wait_ns, longest_ns, longest_at_ns, off_cpu_ns;
};

/* @wait_ns: the sum of all; @longest_ns: the longest of all */
struct function_rows {
	VEC(struct function_row) v;
	uint64_t wait_ns, longest_ns;
};

/* Functions whose holds were overdue or, where they are known, whose holds made others wait; of the
 * threads of a group, or of all threads if groups is NULL. Most wait first; free with
 * vec_done(&rows.v). */
struct function_rows functions_rows(const struct recording_pass *pass, bool overdue,
                                    const struct thread_groups *groups, uint32_t group);

/* What would be saved by the row. HOGS_NO_GAIN if that is unknown, or if the row is a slow start of
 * a thread, which takes no time without perf. */
uint64_t function_gain(const struct recording_pass *pass, const struct hog *hog);

/* What is saved by the function of hog in all threads; HOGS_NO_GAIN if that is unknown. */
uint64_t functions_gain(const struct recording_pass *pass, const struct hog *hog);

#endif

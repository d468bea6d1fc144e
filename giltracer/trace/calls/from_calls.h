/* SPDX-License-Identifier: MIT */
/*
 * Python calls that the preload library recorded (preload/format.h) -> slices, as VizTracer's JSON
 * gives them: "FUNCTION (FILE:LINE)" of each thread and process.
 */
#ifndef GILTRACER_TRACE_CALLS_FROM_CALLS_H
#define GILTRACER_TRACE_CALLS_FROM_CALLS_H

#include "base/error.h"
#include "trace/slices.h"

/**
 * @end_ns: the end of the recording, to which open calls last; 0: unknown, then it is the last that
 * is heard of their process
 */
struct from_calls_options {
	uint64_t end_ns;
};

/* Read the folder. A file that is not a recording is an error; a truncated one yields the calls up
 * to there. Caller frees with slices_free. */
int from_calls_read(struct slices **ret, const char *dir, const struct from_calls_options *options,
                    struct error *err);

/* As slices_from_calls, with one log and one file of records in memory. */
int from_calls_read_memory(struct slices **ret, const void *log, size_t log_size,
                           const void *records, size_t size, struct error *err);

#endif

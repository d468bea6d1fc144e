/* SPDX-License-Identifier: MIT */
/*
 * Turns the Python calls that the preload library recorded (preload/format.h) into slices like
 * those of VizTracer's JSON: "FUNCTION (FILE:LINE)" of each thread and process.
 */
#ifndef GILTRACER_TRACE_CALLS_FROM_CALLS_H
#define GILTRACER_TRACE_CALLS_FROM_CALLS_H

#include "base/error.h"
#include "trace/slices.h"

struct privacy;

/**
 * @end_ns: the end of the recording, until which open calls last if their process outlives it; 0:
 * unknown: they last until the last record of their process
 * @start_ns: calls that ended before are omitted
 * @privacy: for the names, borrowed until slices_free; NULL: nothing is hidden
 */
struct from_calls_options {
	uint64_t start_ns, end_ns;
	const struct privacy *privacy;
};

/* Read the folder. A file that is not a recording is an error; a truncated one yields the calls up
 * to there. Caller frees with slices_free. */
int from_calls_read(struct slices **ret, const char *dir, const struct from_calls_options *options,
                    struct error *err);

/* Like from_calls_read, for one log and one file of records in memory, without a control file. */
int from_calls_read_memory(struct slices **ret, const void *log, size_t log_size,
                           const void *records, size_t size,
                           const struct from_calls_options *options, struct error *err);

#endif

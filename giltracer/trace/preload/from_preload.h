/* SPDX-License-Identifier: MIT */
/*
 * Turns a folder of the preload library (preload/format.h) into events. Each turn of a thread
 * yields EV_REQUEST, EV_ACQUIRE, EV_RELEASE and EV_RELEASED; a thread's first record EV_FORK, its
 * end EV_EXIT, and each process EV_COMM. There are no events of the scheduler.
 */
#ifndef GILTRACER_TRACE_PRELOAD_FROM_PRELOAD_H
#define GILTRACER_TRACE_PRELOAD_FROM_PRELOAD_H

#include <stddef.h>

#include "base/error.h"
#include "trace/source.h"

/*
 * Open the folder; close with source_close. A file that is not a recording is an error; a truncated
 * one yields the events before its end, and source->stats tells that. with: another
 * source whose names and frames it uses until source_close; NULL: it has its own.
 */
int from_preload_open(struct source **ret, const char *dir, const struct source *with,
                      struct error *err);

/* The same from one log and one file of records in memory, both borrowed until source_close. */
int from_preload_open_memory(struct source **ret, const void *log, size_t log_size,
                             const void *records, size_t size, struct error *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A folder of the preload library (preload/format.h) -> events. Each turn of a thread gives
 * EV_REQUEST, EV_ACQUIRE, EV_RELEASE and EV_RELEASED; a thread's first record gives EV_FORK, its
 * end EV_EXIT, and each process EV_COMM. Nothing is known of the scheduler.
 */
#ifndef GILTRACER_TRACE_PRELOAD_FROM_PRELOAD_H
#define GILTRACER_TRACE_PRELOAD_FROM_PRELOAD_H

#include <stddef.h>

#include "base/error.h"
#include "trace/source.h"

struct names;

/* Open the folder; close with source_close. A file that is not a recording is an error; a truncated
 * one yields what it has, and source->stats says so. names: the table for its names, borrowed until
 * source_close; NULL: it makes one of its own. */
int from_preload_open(struct source **ret, const char *dir, struct names *names, struct error *err);

/* The same of one log and one file of records in memory, which are borrowed until source_close. */
int from_preload_open_memory(struct source **ret, const void *log, size_t log_size,
                             const void *records, size_t size, struct error *err);

#endif

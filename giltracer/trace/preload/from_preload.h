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

struct privacy;

/* The folder's file of thread names: lines "PID TID NAME". */
extern const char from_preload_names[];

/*
 * Open the folder; close with source_close. A file that is not a recording is an error; a truncated
 * one yields the events before its end, and source->stats tells that. with: another
 * source whose names and frames it uses until source_close; NULL: it has its own. privacy: for these
 * names, borrowed until then; NULL: nothing is hidden.
 */
int from_preload_open(struct source **ret, const char *dir, const struct source *with,
                      const struct privacy *privacy, struct error *err);

/* The last kept_ns of a flight recorder's recording, or the part of them of which nothing was dropped.
 * end_ns: the end, 0: its last event. *ret_start 0: it has everything from the beginning */
int from_preload_window(uint64_t *ret_start, uint64_t *ret_end, const char *dir, uint64_t kept_ns,
                        uint64_t end_ns, struct error *err);

/* The same as from_preload_open from one log and one file of records in memory, both borrowed until
 * source_close. */
int from_preload_open_memory(struct source **ret, const void *log, size_t log_size,
                             const void *records, size_t size, struct error *err);

#endif

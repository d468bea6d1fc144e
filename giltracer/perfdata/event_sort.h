/* SPDX-License-Identifier: MIT */
/*
 * Records in the order of time, in bounded memory.
 *
 * perf copies its ring buffers to the file one after the other, so that a file is made of chunks
 * that are ordered within. It writes FINISHED_ROUND behind one turn over all buffers: what comes
 * later is not older than the newest record before the previous FINISHED_ROUND. So two rounds
 * are kept, as runs (stretches of the file in order), and merged. No record is copied, and memory
 * grows with the number of runs in two rounds, not with the file.
 *
 * Stable: records of the same time come as they stand in the file; one that is in it twice, byte by
 * byte and with its time, comes once. A record without a time (or
 * with 0, as perf makes them up for what existed before the recording) has the time of the one
 * before it in the file, or else the earliest time in the recording.
 */
#ifndef GILTRACER_PERFDATA_EVENT_SORT_H
#define GILTRACER_PERFDATA_EVENT_SORT_H

#include <stdint.h>

#include "base/cleanup.h"
#include "perfdata/reader.h"

struct event_sort;

/* pd is borrowed until event_sort_free, and nobody else may pull records from it. */
struct event_sort *event_sort_new(struct perfdata *pd);
void event_sort_free(struct event_sort *order);

/*
 * 1 and *ret filled in with its time, or 0 at the end. Only records of the kernel (types below
 * PERF_USER_START); those of perf itself have been taken in by the reader.
 */
int event_sort_next(struct event_sort *order, struct perfdata_record *ret, uint64_t *ret_time_ns);

/* Records read from the file so far, those of perf itself included. */
uint64_t event_sort_records(const struct event_sort *order);

/* Those among them that are perf's own and of a type that we do not know. */
uint64_t event_sort_unknown(const struct event_sort *order);

/* The largest number of runs that were kept at once: what memory depends on. */
uint64_t event_sort_peak_runs(const struct event_sort *order);

DEFINE_CLEANUP(struct event_sort *, event_sort_free);

#endif

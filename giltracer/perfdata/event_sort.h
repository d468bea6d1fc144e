/* SPDX-License-Identifier: MIT */
/*
 * Records in order of time, in bounded memory.
 *
 * perf copies its ring buffers to the file one after the other, so a file consists of chunks that
 * are each in order. It writes FINISHED_ROUND after a pass over all buffers: later records are not
 * older than the newest record before the previous FINISHED_ROUND. So two rounds are kept, as runs
 * (stretches of the file in order), and merged. No record is copied, and memory grows with the
 * number of runs in two rounds, not with the file.
 *
 * The order is stable: records with the same time are returned in the order of the file; identical
 * copies of a record with a time are returned once. A record without a time (or with 0, as in the
 * records that perf synthesizes for what existed before the recording) gets the time of the record
 * before it in the file or, if there is none, the earliest time in the recording.
 */
#ifndef GILTRACER_PERFDATA_EVENT_SORT_H
#define GILTRACER_PERFDATA_EVENT_SORT_H

#include <stdint.h>

#include "base/cleanup.h"
#include "perfdata/reader.h"

struct event_sort;

/* pd is borrowed until event_sort_free, and no other code may pull records from it. */
struct event_sort *event_sort_new(struct perfdata *pd);
void event_sort_free(struct event_sort *order);

/*
 * Returns 1 and sets *ret and its time, or returns 0 at the end. Returns only records of the kernel
 * (types below PERF_USER_START); those of perf itself are handled by the reader.
 */
int event_sort_next(struct event_sort *order, struct perfdata_record *ret, uint64_t *ret_time_ns);

/* Number of records read from the file so far, including those of perf itself. */
uint64_t event_sort_records(const struct event_sort *order);

/* Number of those among them that are perf's own and of unknown type. */
uint64_t event_sort_unknown(const struct event_sort *order);

/* The largest number of runs that were kept at once, which determines the memory. */
uint64_t event_sort_peak_runs(const struct event_sort *order);

DEFINE_CLEANUP(struct event_sort *, event_sort_free);

#endif

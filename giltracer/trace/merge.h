/* SPDX-License-Identifier: MIT */
/*
 * A recording and, beside it, one of who woke whom on the whole machine: a recorder that watches
 * threads alone does not see them woken by an interrupt, since that happens to whoever has the CPU
 * (Linux 6.13 and newer, at least, where __perf_task() of sched_waking has no effect).
 */
#ifndef GILTRACER_TRACE_MERGE_H
#define GILTRACER_TRACE_MERGE_H

#include "trace/source.h"

/*
 * The events of recording, and among them the EV_WAKING, EV_PICK, EV_MOVE and EV_LOST of wakeups
 * that lie between its first event and its last, in the order of time; of the same time,
 * recording's first. Takes both over; close with source_close. Names, stacks, counters and frames
 * are recording's, cpu_names are wakeups', stats are summed.
 */
struct source *source_merge(struct source *recording, struct source *wakeups);

/*
 * What the library inside a program recorded, and what perf did of the same execution: the events of
 * the GIL are gil's, all others perf's. Both have the same struct names, which perf owns. Takes both
 * over; close with source_close. Frames are gil's, stacks and counters perf's, stats are summed.
 */
struct source *source_beside(struct source *gil, struct source *perf);

#endif

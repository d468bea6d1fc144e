/* SPDX-License-Identifier: MIT */
/*
 * Merges a recording with one of the wake-ups on the whole machine. Wake-ups by interrupts are
 * missing in a recording of single threads, because the kernel attributes them to the interrupted
 * thread (at least Linux 6.13 and newer, where __perf_task() of sched_waking has no effect).
 */
#ifndef GILTRACER_TRACE_MERGE_H
#define GILTRACER_TRACE_MERGE_H

#include "trace/source.h"

/*
 * The events of recording, merged with EV_WAKING, EV_PICK, EV_MOVE and EV_LOST of wakeups that are
 * between its first event and its last, in the order of time; at the same time, those of recording
 * first. The result owns both; close with source_close. Names, stacks, counters and frames are from
 * recording, cpu_names from wakeups, stats are sums.
 */
struct source *source_merge(struct source *recording, struct source *wakeups);

/*
 * Recordings of one execution by the library inside the program and by perf: the events of the GIL
 * are from gil, all others from perf. Both use the same struct names, which perf owns. The result
 * owns both; close with source_close. Frames are from gil, stacks and counters from perf, stats are
 * sums.
 */
struct source *source_beside(struct source *gil, struct source *perf);

/* The same for a recording in which perf recorded the GIL and the library only what holders ran when
 * they were asked to release it: EV_ASKED is from held, all others from perf. Both use perf's frames,
 * too. */
struct source *source_with_held(struct source *held, struct source *perf);

#endif

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
 * are from gil, all others from perf. Both use the same names and frames, which perf owns. The result
 * owns both; close with source_close. Stacks and counters are from perf, stats are sums.
 */
struct source *source_beside(struct source *gil, struct source *perf);

/* The same for a recording in which perf recorded the GIL, and the library only waits for locks and
 * what holders ran when they were asked to release the GIL: these are from held, all others from perf.
 * Both use perf's frames, too. */
struct source *source_with_held(struct source *held, struct source *perf);

/*
 * A run in which the library inside the program took over from uprobes (preload/handover.c).
 *
 * Both see the same events of a thread in the same order: uprobes a request and a release shortly
 * before the library, an acquire and the end of drop_gil shortly after it. The first record of a
 * thread by the library repeats its last event before the library recorded, so that one is either
 * the last that uprobes have, too, or the first that they lack. From the second record on, the
 * library alone is used for this thread; until then, what does not change the thread's state is
 * dropped, whichever has it second.
 */
/**
 * @from_ns: when the library took over
 * @shared: CPython before 3.12: uprobes give a process's only GIL another address than the library
 */
struct handover_options {
	uint64_t from_ns;
	bool shared;
};

/*
 * uprobes: perf's recording of all events until from_ns, and of GIL events for a while after;
 * library: GIL events; switches: perf's recording of all others from from_ns on. All use the names,
 * stacks and frames of uprobes. The result owns all three; close with source_close. Counters are
 * from uprobes, stats are sums.
 */
struct source *source_handover(struct source *uprobes, struct source *library,
                               struct source *switches, const struct handover_options *options);

#endif

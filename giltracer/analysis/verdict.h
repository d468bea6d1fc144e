/* SPDX-License-Identifier: MIT */
/*
 * Whether the GIL is the problem, how much, because of which threads, and where: from the numbers
 * of the main pass. These are all the rules. They are tried in this order, and the first that holds
 * is the verdict:
 *
 *	free-threaded    the interpreter has no GIL to wait for
 *	idle             no thread had a CPU at any time: all were asleep, or stopped
 *	nothing          no event of a GIL and no state of a thread was recorded
 *	too-short        less than VERDICT_SHORT_NS was recorded
 *	lock-bound       a thread (or a group of GROUP_MIN_THREADS threads) that lived for
 *	                 VERDICT_LIFE % of the recording waited for locks of the program for
 *	                 VERDICT_MUCH % of its life; and all threads waited for locks for longer than
 *	                 they waited for the GIL, and than they were runnable without a CPU
 *	cpu-starved      threads were runnable without a CPU for at least VERDICT_STARVED % of the
 *	                 time they wanted one; at least one thread that lived for VERDICT_LIFE %
 *	                 of the recording was so for VERDICT_LINE % of its life; and either all
 *	                 threads were so for longer than they waited for the GIL, or neither
 *	                 gil-bound nor gil-some holds. Where this and one of these hold, one is
 *	                 the verdict and the other is added to it
 *	gil-unknown      neither the GIL nor stacks were recorded, but who had the CPUs was; with
 *	                 samples, these are the verdict
 *	gil-bound        threads waited for a GIL during VERDICT_MUCH % of the recording, and either
 *	                 for as large a share of the time in which they held it or waited for it, or
 *	                 a thread (or a group of GROUP_MIN_THREADS threads) that lived for
 *	                 VERDICT_LIFE % of the recording for as large a share of its life. Threads
 *	                 that do not use the GIL change none of these numbers. Waiting that tracing
 *	                 caused does not count, nor does, where CPUs are lacking, waiting for
 *	                 a free GIL without a CPU, and less than VERDICT_SHORT_NS is no problem
 *	gil-some         the same with VERDICT_SOME
 *	gil-unknown      the threads' use of the GIL is unknown for longer than it is known that they
 *	                 held it or waited for it, and for VERDICT_LOST % of their lives
 *	single-threaded  one thread did at least VERDICT_SINGLE % of all work on CPUs, and ran for
 *	                 VERDICT_BUSY % of the recording
 *	native           at least VERDICT_NATIVE % of the CPU time was without the GIL
 *	io-bound         threads were asleep for VERDICT_ASLEEP % of their lives
 *	single-threaded  only one thread ever held the GIL
 *	gil-none         none of these: several threads that hardly waited
 *
 * With any verdict, a CPU limit that stopped the program in VERDICT_THROTTLED % of its periods is
 * reported, instead of the programs that used the CPUs meanwhile; and a task that was ready for VERDICT_LATE_NS before it ran is reported:
 * this is the limit from which asyncio's debug mode reports a callback as slow.
 *
 * The cause of the waiting is
 *
 *	a lack of CPUs   if VERDICT_HANDOVER % of the waiting, and more than any holder's share,
 *	                 passed while the GIL was free and the next thread had no CPU; and, in
 *	                 addition,
 *	hand-offs        if that is true of the time in which the GIL was free while the next thread
 *	                 woke up, and holds are shorter than VERDICT_SHORT_HOLD_NS on average; else
 *	a function       if VERDICT_CALL % passed while it kept the GIL after a release request, in
 *	                 whatever threads; else
 *	a thread         or a group (thread_groups.h), if it held the GIL during VERDICT_CULPRIT %
 *	                 of the waiting in which any thread held it; else
 *	two of these     those that held it longest
 */
#ifndef GILTRACER_ANALYSIS_VERDICT_H
#define GILTRACER_ANALYSIS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/reasons.h"

#define VERDICT_SHORT_NS  10000000
#define VERDICT_STARVED   25
#define VERDICT_LINE      20
#define VERDICT_MUCH      30
#define VERDICT_SOME      10
#define VERDICT_LOST      10
#define VERDICT_LIFE      20
#define VERDICT_SINGLE    95
#define VERDICT_BUSY      50
#define VERDICT_NATIVE    50
#define VERDICT_ASLEEP    50
#define VERDICT_HANDOVER  40
#define VERDICT_CULPRIT   60
#define VERDICT_CALL      30
#define VERDICT_THROTTLED 10 /* percent of a control group's periods, to be reported */
#define VERDICT_OTHERS \
	33 /* percent of the CPUs' time from which the verdict speaks of
                                  * "mostly" */
#define VERDICT_SHORT_HOLD_NS 1000000
#define VERDICT_LATE_NS       100000000

enum verdict_kind {
	VERDICT_FREE_THREADED,
	VERDICT_IDLE,
	VERDICT_NOTHING,
	VERDICT_TOO_SHORT,
	VERDICT_LOCK_BOUND,
	VERDICT_CPU_STARVED,
	VERDICT_GIL_BOUND,
	VERDICT_GIL_SOME,
	VERDICT_NATIVE_WORK,
	VERDICT_IO_BOUND,
	VERDICT_SINGLE_THREADED,
	VERDICT_GIL_NONE,
	VERDICT_GIL_UNKNOWN,
	VERDICT_SAMPLED,
};

enum verdict_quality { QUALITY_GOOD, QUALITY_FAIR, QUALITY_POOR };

/**
 * @headline, @because, @also, @advice: the problem, its causes, further problems, and what to do.
 * The headline is never empty
 * @moment: whether there is a worst wait to show; @moment_thread, @moment_start_ns, @moment_end_ns:
 * its thread and times (CLOCK_MONOTONIC)
 * @quality, @quality_why: how reliable the numbers are, and why
 */
struct verdict {
	enum verdict_kind kind;
	struct reasons headline, because, also, advice;
	bool moment;
	uint32_t moment_thread;
	uint64_t moment_start_ns, moment_end_ns;
	enum verdict_quality quality;
	struct reasons quality_why;
};

struct analysis;

/* Finds the verdict of an analysis whose other facts are complete, and completes its evidence. Free
 * with verdict_done. */
void verdict_find(struct verdict *ret, struct analysis *analysis);
void verdict_done(struct verdict *verdict);

#endif

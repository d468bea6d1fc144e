/* SPDX-License-Identifier: MIT */
/*
 * Is the GIL the problem, by how much, because of whom, where: from the numbers of
 * the main pass. All rules are here, tried in this order; the first that holds is the verdict.
 *
 *	free-threaded    the interpreter has no GIL to wait for
 *	nothing          no event of a GIL and no state of a thread was recorded
 *	too-short        less than VERDICT_SHORT_NS were recorded
 *	cpu-starved      threads were runnable without a CPU for at least VERDICT_STARVED % of the
 *time they wanted one, one that lived for VERDICT_LIFE % of the recording for VERDICT_LINE % of its
 *life, and all for longer than for the GIL, or gil-bound and gil-some do not hold; if one of them
 *is the verdict, this is said beside it, and the other way round gil-unknown      neither the GIL
 *was recorded nor stacks, but who had the CPUs alone gil-bound        on average at least
 *VERDICT_WAITERS % of a thread waited for the GIL, or a thread, or a group of GROUP_MIN_THREADS,
 *that lived for VERDICT_LIFE % of the recording waited for VERDICT_VICTIM % of its life gil-some
 *the same with VERDICT_WAITERS_SOME and VERDICT_VICTIM_SOME single-threaded  one thread did at
 *least VERDICT_SINGLE % of all that ran, and ran for VERDICT_BUSY % of the recording native at
 *least VERDICT_NATIVE % of what ran on the CPUs ran without the GIL io-bound         threads were
 *asleep for VERDICT_ASLEEP % of their lives single-threaded  only one thread ever held the GIL
 *	gil-none         none of these: several threads, and they hardly met
 *
 * Shares of lives are of what is known of them. Whose fault it is: nobody's if VERDICT_HANDOVER %
 * of the waiting and more than anybody's share passed while the GIL went from one thread to the
 * next, and holds are shorter than VERDICT_SHORT_HOLD_NS on average; a function's if VERDICT_CALL %
 * passed while it kept the GIL when asked to let go, in whatever threads; else a thread's, or a
 * group's (thread_groups.h), if it held the GIL during VERDICT_CULPRIT % of the waiting in which
 *anybody did; else the first two are named.
 */
#ifndef GILTRACER_ANALYSIS_VERDICT_H
#define GILTRACER_ANALYSIS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/hogs.h"
#include "base/vec.h"

#define VERDICT_SHORT_NS      10000000
#define VERDICT_STARVED       25
#define VERDICT_LINE          20
#define VERDICT_WAITERS       50
#define VERDICT_VICTIM        30
#define VERDICT_LIFE          20
#define VERDICT_WAITERS_SOME  5
#define VERDICT_VICTIM_SOME   5
#define VERDICT_SINGLE        95
#define VERDICT_BUSY          50
#define VERDICT_NATIVE        50
#define VERDICT_ASLEEP        50
#define VERDICT_HANDOVER      40
#define VERDICT_CULPRIT       60
#define VERDICT_CALL          30
#define VERDICT_OTHERS        33 /* percent of the CPUs' time; more is mostly */
#define VERDICT_SHORT_HOLD_NS 1000000

enum verdict_kind {
	VERDICT_FREE_THREADED,
	VERDICT_NOTHING,
	VERDICT_TOO_SHORT,
	VERDICT_CPU_STARVED,
	VERDICT_GIL_BOUND,
	VERDICT_GIL_SOME,
	VERDICT_NATIVE_WORK,
	VERDICT_IO_BOUND,
	VERDICT_SINGLE_THREADED,
	VERDICT_GIL_NONE,
	VERDICT_GIL_UNKNOWN,
};

enum verdict_quality { QUALITY_GOOD, QUALITY_FAIR, QUALITY_POOR };

/* What a verdict says, and which numbers of struct reason go with it. */
enum reason_code {
	/* how much: the headline of a kind, or what is wrong besides */
	REASON_NO_GIL,
	REASON_NOTHING,
	REASON_TOO_SHORT,    /* ns were recorded */
	REASON_CPUS,         /* runnable without a CPU for percent of the time; and */
	REASON_CPUS_NOT_GIL, /* the GIL is not to blame, */
	REASON_CPUS_TOO,     /* or it is */
	REASON_CPUS_TOO_FEW, /* there is none */
	REASON_GIL_BOUND,    /* thread, or group, waited for percent of its life, ns; on average */
	REASON_GIL_SOME,     /* number threads waited. Both may be MODEL_NONE */
	REASON_GIL_BOUND_TOO,
	REASON_GIL_SOME_TOO,
	REASON_NATIVE,      /* percent of the CPU time was without the GIL */
	REASON_ASLEEP,      /* percent of the lives */
	REASON_ASLEEP_DISK, /* the same, mostly uninterruptible */
	REASON_ASLEEP_TOO,
	REASON_SINGLE,
	REASON_SINGLE_TOO,
	REASON_GIL_NONE,      /* percent of the lives waited */
	REASON_GIL_UNKNOWN,   /* percent of the lives on a CPU */
	REASON_GIL_FORCED,    /* of a free-threaded interpreter: an option turned it on */
	REASON_GIL_ON,        /* an import, of module name if that is known, turned it on */
	REASON_GIL_TURNED_ON, /* the same, while the program was recorded */

	/* because of whom. Shares are of all waiting */
	REASON_HANDOFF,         /* percent while nobody held the GIL, which is released often */
	REASON_HANDOFF_TOO,     /* percent besides */
	REASON_SLOW_START,      /* percent while threads were started */
	REASON_SLOW_START_REST, /* of the rest percent, while hog kept the GIL when asked */
	REASON_CALL,            /* percent, ns while hog kept it, longest_ns at a time, in count */
	REASON_CALL_MOSTLY,     /* threads, one: thread */
	REASON_THREAD,          /* percent, ns while thread held it, longest_ns without a break */
	REASON_THREAD_MOSTLY,   /* if that is not 0 */
	REASON_GROUP,  /* percent while a thread of group did; the longest and function as */
	REASON_GROUPS, /* percent while one of group did, other_percent one of other */

	/* other reasons */
	REASON_CPU_USERS, /* who had the CPUs: the list is in the analysis */
	REASON_STATES,    /* shares of the threads' time: likewise */
	REASON_BUSIEST,   /* thread ran for percent of the recording */
	REASON_LOCKS,     /* thread was blocked by locks for percent of its life, ns, in */
	REASON_STOPS,     /* place; other_percent until other released it. The same: it */
	REASON_STOPPED,   /* stopped all others; it was stopped */
	REASON_NO_LOCKS,

	/* what to do */
	ADVICE_CALL,
	ADVICE_PYTHON,
	ADVICE_COLLECTOR,
	ADVICE_GIL_DETECT,
	ADVICE_HANDOFF,
	ADVICE_RECORD_ALONE,
	ADVICE_BUSIEST,
	ADVICE_OWN_THREADS,
	ADVICE_OTHER_PROGRAMS,
	ADVICE_CPUS,
	ADVICE_STATE_DETECT,
	ADVICE_LONGER,
	ADVICE_RECORD_AGAIN,
	ADVICE_TRACE_IMPORTS,
	ADVICE_LOCK,
	ADVICE_GIL_TOO, /* what follows is against the GIL */

	/* how good the recording is */
	QUALITY_SLOW_STARTS, /* percent of all waiting */
	QUALITY_LOST,        /* count records */
	QUALITY_UNKNOWN,     /* percent of the threads' time */
	QUALITY_INFERRED,    /* percent of the releases */
	QUALITY_COMPLETE,
	QUALITY_SEE_NOTES,
	REASON_CODES,
};

/**
 * A function that was at work, however it is known.
 * @percent: of the waiting that the reason is about; 0: no function is worth a name
 * @hog: as the probes saw it; NULL: as the Python trace did
 * @ended: it is where holds ended that made others wait, not what kept the GIL
 * @name, @caller: of the Python trace, "function (/path/file.py:12)"; caller may be NULL
 */
struct reason_function {
	double percent;
	const struct hog *hog;
	bool ended;
	const char *name, *caller;
};

/**
 * One thing that a verdict says. What is not of its code is 0, NULL or MODEL_NONE.
 * @thread, @other: indices in the model
 * @group, @other_group: indices in the analysis' groups
 * @preempted_ns: of longest_ns, when the holder was runnable and had no CPU, if it is worth a word
 * @name: of a module; any bytes
 * @frame, @of: where a thread was blocked, as in struct locks_place
 */
struct reason {
	enum reason_code code;
	uint32_t thread, other, group, other_group;
	uint64_t count, ns, longest_ns, preempted_ns;
	double percent, other_percent, number;
	const struct hog *hog;
	const char *name;
	struct reason_function function;
	uint32_t frame;
	const char *of;
};

struct reasons {
	VEC(struct reason) v;
};

/**
 * @headline, @because, @also, @advice: what is wrong, whose fault it is, what is wrong besides,
 * what to do. The headline is never empty
 * @moment: whether there is a worst wait; in which thread, from when to when (CLOCK_MONOTONIC)
 * @quality, @quality_why: how far the numbers can be trusted, and why
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

/* Of an analysis whose other facts are there already; completes its evidence. Free with
 * verdict_done. */
void verdict_find(struct verdict *ret, struct analysis *analysis);
void verdict_done(struct verdict *verdict);

/* A reason without numbers, at the end of the list; borrowed until the next one. */
struct reason *reasons_add(struct reasons *reasons, enum reason_code code);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Whether the GIL is the problem, how much, because of which threads, and where: from the numbers
 * of the main pass. These are all the rules. They are tried in this order, and the first that holds
 * is the verdict:
 *
 *	free-threaded    the interpreter has no GIL to wait for
 *	idle             no thread had a CPU at any time: all were asleep, or stopped
 *	held             no event of a GIL was recorded, because one thread held it throughout
 *	nothing          no event of a GIL and no state of a thread was recorded
 *	lock-bound       threads blocked each other until the end, for at least VERDICT_SHORT_NS
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
 *	gil-some         the same with VERDICT_SOME; with VERDICT_NEARLY, another verdict mentions it
 *	gil-unknown      the threads' use of the GIL is unknown for longer than it is known that they
 *	                 held it or waited for it, and for VERDICT_LOST % of their lives
 *	single-threaded  one thread did at least VERDICT_SINGLE % of all work on CPUs, and ran for
 *	                 VERDICT_BUSY % of the recording
 *	native           at least VERDICT_NATIVE % of the CPU time was without the GIL
 *	io-bound         threads were asleep for VERDICT_ASLEEP % of their lives
 *	single-threaded  only one thread ever held the GIL
 *	gil-none         none of these: several threads that hardly waited
 *
 * The context is what else is true of the whole program, and the advice is about recording it again. What
 * costs time in one place, and what helps there, are the findings (findings.h).
 */
#ifndef GILTRACER_ANALYSIS_VERDICT_H
#define GILTRACER_ANALYSIS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/facts.h"
#include "analysis/groups.h"
#include "base/vec.h"

#define VERDICT_SHORT_NS  10000000
#define VERDICT_STARVED   25
#define VERDICT_LINE      20
#define VERDICT_MUCH      30
#define VERDICT_SOME      10
#define VERDICT_NEARLY    8
#define VERDICT_LOST      10
#define VERDICT_LIFE      20
#define VERDICT_SINGLE    95
#define VERDICT_BUSY      50
#define VERDICT_NATIVE    50
#define VERDICT_ASLEEP    50
#define VERDICT_THROTTLED 10 /* percent of a control group's periods, to be reported */

enum verdict_kind {
	VERDICT_FREE_THREADED,
	VERDICT_IDLE,
	VERDICT_HELD,
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

struct chain;
struct sampled_place;
struct task_delay;

/* What the verdict and findings say, one code for each sentence of report/words.c, and which numbers of
 * struct reason belong to it. */
enum reason_code {
	/* headlines, and the context */
	REASON_NO_GIL,
	REASON_IDLE,   /* all threads were asleep for all ns that were recorded */
	REASON_HALTED, /* the program was stopped by a signal for all ns */
	REASON_HELD,   /* thread held the GIL for all ns */
	REASON_NOTHING,
	REASON_TOO_SHORT,    /* only ns were recorded */
	REASON_CPUS,         /* threads were runnable without a CPU for percent of the time */
	REASON_CPUS_NOT_GIL, /* the same; the GIL is not to blame */
	/* thread, or group, waited for percent of its life, ns; or both are MODEL_NONE: all threads
	 * waited for ns, percent of this and held_ns, for which they held it */
	REASON_GIL_BOUND,
	REASON_GIL_SOME,
	REASON_LOCK_BOUND, /* the same for locks; other_percent of the waits belong to chain */
	/* number threads at a time wait for the lock of chain, which is released count times a second, every
	 * ns */
	REASON_CONVOY,
	REASON_DEADLOCK, /* of deadlock */
	REASON_ORDER,    /* two threads took the locks of order in both orders */
	/* part of the critical path, which is percent of the run, is of thread, and other waited
	 * other_percent of its life for room in a queue, in frame */
	REASON_STAGE,
	REASON_NATIVE,      /* percent of the CPU time was without the GIL */
	REASON_ASLEEP,      /* threads were asleep for percent of their lives */
	REASON_ASLEEP_DISK, /* the same, mostly uninterruptible */
	REASON_ASLEEP_TOO,
	REASON_SINGLE,
	REASON_SINGLE_HOLDER,
	REASON_SINGLE_TOO,
	REASON_GIL_NEARLY, /* the waiting for the GIL, percent, is just below a verdict of its own */
	REASON_GIL_NONE,   /* a thread waited during percent of the recording */
	REASON_GIL_UNKNOWN,    /* threads were on a CPU for percent of their lives */
	REASON_GIL_LOST,       /* percent of the threads' time is unknown */
	REASON_SAMPLED,        /* count samples; on average number threads waited for the GIL */
	REASON_SAMPLED_NO_GIL, /* count samples; which thread had the GIL could not be read */
	REASON_GIL_FORCED,     /* an option turned on the GIL of a free-threaded interpreter */
	REASON_GIL_IS_ON,      /* it is on; it is not known why */
	REASON_GIL_NEEDED,     /* the model's other imports would also turn it on */
	REASON_GIL_NOT_NEEDED, /* without the option, it would be off */
	REASON_GIL_ON, /* an import turned it on: the first of the model's, if that has any */
	REASON_GIL_TURNED_ON, /* the same, while the program was recorded */

	REASON_SAMPLED_HOLDER, /* thread had the GIL in percent of the samples */
	REASON_SAMPLED_HELD,   /* place ran in percent of the samples in which the GIL was held */
	REASON_SAMPLED_PLACE,  /* percent of the threads' samples were in place */

	/* other reasons */
	REASON_CPU_USERS, /* which programs had the CPUs: the list is in the analysis */
	/* the control group may use number CPUs, and was stopped in count of other_count periods */
	REASON_QUOTA,
	REASON_STATES,  /* shares of the threads' time: the numbers are in the analysis */
	REASON_BUSIEST, /* thread ran for percent of the recording */
	/* count threads waited for one lock for percent of their lives, ns, other_percent of it without
	 * sleeping, mostly in frame */
	REASON_SHARED_LOCK,
	/* count stops of the world, other_count of them collections, lasted ns, the longest longest_ns */
	REASON_STOP_COUNT,
	/* in one, others were waited for for ns, last for thread, which ran frame */
	REASON_STOP_LATE,
	/* thread stopped all others, or was stopped, for percent of its life, ns, in frame;
	 * other_percent of it until other resumed it */
	REASON_STOPS,
	REASON_STOPPED,
	REASON_NO_LOCKS,
	/* percent of the waiting was in longest_ns from ns after the start on; count threads ended
	 * or started then */
	REASON_BURST,
	REASON_BURST_END,
	REASON_BURST_START,
	REASON_TASK_STEP, /* a step of a task lasted ns; delay has the details */
	REASON_TASK_LATE, /* a task was ready for ns before it ran; delay has the details */

	/* advice */
	ADVICE_CALL,
	ADVICE_PYTHON,
	ADVICE_COLLECTOR,
	ADVICE_IMPORT,
	ADVICE_DEALLOCATION,
	ADVICE_CALL_OF_PROCESS, /* the same, for a program that has several processes already */
	ADVICE_PYTHON_OF_PROCESS,
	ADVICE_LOOP_OF_PROCESS,
	ADVICE_GIL_DETECT,
	ADVICE_HANDOFF,
	ADVICE_RECORD_ALONE,
	ADVICE_BUSIEST,
	ADVICE_QUOTA,
	ADVICE_OWN_THREADS,
	ADVICE_OTHER_PROGRAMS,
	ADVICE_CPUS,
	ADVICE_STATE_DETECT,
	ADVICE_LONGER,
	ADVICE_RECORD_AGAIN,
	ADVICE_TRACE_IMPORTS,
	ADVICE_STACKS,
	ADVICE_LOCK,
	ADVICE_CONVOY,
	ADVICE_DEADLOCK,
	ADVICE_LOCK_ASLEEP, /* the thread that had the lock was without the GIL */
	ADVICE_EXACT,       /* record exactly, not by samples */
	ADVICE_LOOP,
	ADVICE_LOOP_BLOCKED, /* a step slept, waited or ran C code without the GIL */

	/* the quality of the recording */
	QUALITY_SLOW_STARTS, /* percent of all waiting */
	QUALITY_LOST,        /* count records */
	QUALITY_UNKNOWN,     /* percent of the threads' time */
	QUALITY_INFERRED,    /* percent of the releases */
	QUALITY_SAMPLED,     /* count samples */
	QUALITY_MISSED,      /* percent of the samples were not taken in time */
	QUALITY_TORN,        /* percent of the stacks could not be read */
	QUALITY_COMPLETE,
	QUALITY_SEE_NOTES,
	REASON_CODES,
};

/**
 * One statement of the verdict or of a finding. Members that its code does not use are 0, NULL or MODEL_NONE.
 * @thread, @other: indices in the model; @group: index in the analysis' groups
 * @place: a place where threads were sampled
 * @delay: the delay of a task
 * @chain: waits for locks, and what was done meanwhile; @caused: this explains most of the waits
 * @variable: refers to the object of type of
 * @frame, @of: where a thread was blocked, as in struct locks_place
 * @deadlock, @order, @part: borrowed from the model and the critical path
 */
struct reason {
	enum reason_code code;
	uint32_t thread, other, group;
	uint64_t count, other_count, ns, held_ns, longest_ns;
	double percent, other_percent, number;
	uint32_t frame;
	const char *of, *variable;
	const struct sampled_place *place;
	const struct task_delay *delay;
	const struct chain *chain;
	bool caused;
	const struct model_deadlock *deadlock;
	const struct model_order *order;
	const struct path_part *part;
};

struct reasons {
	VEC(struct reason) v;
};

/* Appends a reason without numbers; borrowed until the next call. */
struct reason *reasons_add(struct reasons *reasons, enum reason_code code);

enum verdict_quality { QUALITY_GOOD, QUALITY_FAIR, QUALITY_POOR };

/**
 * @headline: the problem; never empty
 * @context: what else is true of the whole program; @advice: how to learn more
 * @quality, @quality_why: how reliable the numbers are, and why
 */
struct verdict {
	enum verdict_kind kind;
	struct reasons headline, context, advice;
	enum verdict_quality quality;
	struct reasons quality_why;
};

/* The numbers that the rules use. */

/**
 * A short part of the recording in which threads waited for the GIL for most of the time that they
 * did in all of it.
 * @percent: share of the waiting; 0: there is no such part
 * @started, @ended: number of threads that started in it or right before, or ended in it or right
 * after
 */
struct evidence_burst {
	double percent;
	uint64_t from_ns, to_ns;
	uint32_t started, ended;
};

/**
 * The thread or group (index) that waited longest, of those whose share of life spent waiting
 * satisfies the strictest rule of the verdict that any satisfies. A group has GROUP_MIN_THREADS or
 * more threads, and counts as one thread with the sum of their lives. thread and group are MODEL_NONE
 * if no thread that lived long enough waited; otherwise one is.
 * @percent, @ns: that share, and how long it waited
 */
struct evidence_victim {
	uint32_t thread, group;
	double percent;
	uint64_t ns;
};

/**
 * @wall_ns: duration of the recording, without the time in which the program was stopped by a signal
 * @wait_ns: time that all threads waited for the GIL
 * @off_gil_running_ns: time on a CPU without the GIL; 0 until it is computed
 * @victim: of the waits for the GIL; @lock_victim: of those for locks; @lock_wait_ns: time that all
 * threads waited for locks
 * @wanted_ns: time that all threads held the GIL or waited for it; without GIL events: time on a CPU
 * or asleep for the GIL
 * @blocked_ns: time in which at least one thread waited for the GIL. Of several GILs, the one with
 * the most
 * @slow_percent: share of the waiting during starts of threads that tracing made slow
 * @unknown_ns: unknown part of the lives of threads that may have used a GIL; @unknown_of_ns: their
 * lives
 * @burst: when most of the waiting happened at once
 * @runnable_percent: the largest share of its life that a thread was runnable, of those that lived
 * long enough
 * @busiest: the thread with the most CPU time, @busiest_ns
 * @holders: number of threads that held a GIL; @processes: of processes in which one did
 */
struct evidence {
	const struct recording *recording;
	const struct recording_pass *pass;
	const struct model *model;
	struct facts_totals totals;
	uint64_t wall_ns, wait_ns, off_gil_running_ns, busiest_ns, lock_wait_ns;
	uint64_t wanted_ns, blocked_ns, unknown_ns, unknown_of_ns;
	uint32_t busiest;
	struct evidence_victim victim, lock_victim;
	double runnable_percent, slow_percent;
	unsigned holders, processes;
	struct evidence_burst burst;
};

/* Neither probes nor stacks were recorded, so it is not known which threads waited for the GIL. */
bool evidence_is_blind(const struct evidence *e);

/* The threads' use of the GIL is unknown for longer than it is known that they wanted it, and for a
 * share of their lives that may hide any amount of waiting. */
bool evidence_is_lost(const struct evidence *e);

/* The CPU limit of the program's control group kept it from running. */
bool evidence_is_throttled(const struct evidence *e);

/* Of all threads: time asleep, but not for the GIL; and the known part of the CPU states. */
uint64_t evidence_asleep(const struct evidence *e);
uint64_t evidence_cpu_known(const struct evidence *e);

struct analysis;

/* Gathers the evidence of an analysis whose other facts are complete, and finds its verdict. Free
 * with verdict_done. */
void verdict_find(struct verdict *ret, struct analysis *analysis);
void verdict_done(struct verdict *verdict);

#endif

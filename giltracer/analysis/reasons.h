/* SPDX-License-Identifier: MIT */
/* What a verdict can say, one code per sentence; report/verdict_text.c puts it into words. */
#ifndef GILTRACER_ANALYSIS_REASONS_H
#define GILTRACER_ANALYSIS_REASONS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/hogs.h"
#include "base/vec.h"

struct chain;
struct sampled_place;
struct task_delay;

/* What a verdict says, and which numbers of struct reason belong to it. */
enum reason_code {
	/* headlines, and further problems */
	REASON_NO_GIL,
	REASON_IDLE,   /* all threads were asleep for all ns that were recorded */
	REASON_HALTED, /* the program was stopped by a signal for all ns */
	REASON_NOTHING,
	REASON_TOO_SHORT,    /* only ns were recorded */
	REASON_CPUS,         /* threads were runnable without a CPU for percent of the time */
	REASON_CPUS_NOT_GIL, /* the same; the GIL is not to blame */
	REASON_CPUS_TOO,     /* the same, in addition to waiting for the GIL */
	REASON_CPUS_TOO_FEW, /* the same, in an interpreter without a GIL */
	/* thread, or group, waited for percent of its life, ns; or both are MODEL_NONE: all threads
	 * waited for ns, percent of this and held_ns, for which they held it */
	REASON_GIL_BOUND,
	REASON_GIL_SOME,
	REASON_GIL_BOUND_TOO,
	REASON_GIL_SOME_TOO,
	REASON_LOCK_BOUND,     /* the same for locks */
	REASON_LOCK_BOUND_TOO, /* the same, in addition to something else */
	REASON_NATIVE,         /* percent of the CPU time was without the GIL */
	REASON_ASLEEP,         /* threads were asleep for percent of their lives */
	REASON_ASLEEP_DISK,    /* the same, mostly uninterruptible */
	REASON_ASLEEP_TOO,
	REASON_SINGLE,
	REASON_SINGLE_HOLDER,
	REASON_SINGLE_TOO,
	REASON_GIL_NONE,       /* a thread waited during percent of the recording */
	REASON_GIL_UNKNOWN,    /* threads were on a CPU for percent of their lives */
	REASON_GIL_LOST,       /* percent of the threads' time is unknown */
	REASON_SAMPLED,        /* count samples; on average number threads waited for the GIL */
	REASON_SAMPLED_NO_GIL, /* count samples; which thread had the GIL could not be read */
	REASON_GIL_FORCED,     /* an option turned on the GIL of a free-threaded interpreter */
	REASON_GIL_ON,         /* an import turned it on, of module name if that is known */
	REASON_GIL_TURNED_ON,  /* the same, while the program was recorded */

	/* the causes of the waiting; shares are of all waiting */
	REASON_HANDOFF,     /* percent while the GIL, which is released often, was free */
	REASON_HANDOFF_TOO, /* percent likewise, in addition to another cause */
	REASON_NO_CPU,      /* percent while the GIL was free and the next thread had no CPU */
	REASON_NO_CPU_TOO,
	REASON_SLOW_START,      /* percent while threads were started */
	REASON_SLOW_START_REST, /* percent of the rest while hog kept the GIL after a request */
	/* percent, ns while hog kept the GIL after a request, longest_ns at a time, in count
	 * threads: if it is one, in thread */
	REASON_CALL,
	REASON_CALL_MOSTLY,
	/* percent, ns while thread held the GIL, longest_ns at a time; 0: not worth reporting */
	REASON_THREAD,
	REASON_THREAD_MOSTLY,
	REASON_GROUP,  /* the same for a thread of group, without longest_ns */
	REASON_GROUPS, /* percent while a thread of group held it, other_percent: of other_group */

	REASON_CHAIN, /* percent of the waits for locks belong to chain */

	REASON_SAMPLED_HOLDER, /* thread had the GIL in percent of the samples */
	REASON_SAMPLED_HELD,   /* place ran in percent of the samples in which the GIL was held */
	REASON_SAMPLED_PLACE,  /* percent of the threads' samples were in place */

	/* other reasons */
	REASON_CPU_USERS, /* which programs had the CPUs: the list is in the analysis */
	/* the control group may use number CPUs, and was stopped in count of other_count periods */
	REASON_QUOTA,
	REASON_STATES,  /* shares of the threads' time: the numbers are in the analysis */
	REASON_BUSIEST, /* thread ran for percent of the recording */
	/* thread was blocked by locks, stopped all others, or was stopped, for percent of its life,
	 * ns, in frame; other_percent of it until other released it */
	REASON_LOCKS,
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
	ADVICE_LOCK_ASLEEP, /* the thread that had the lock was without the GIL */
	ADVICE_EXACT,       /* record exactly, not by samples */
	ADVICE_GIL_TOO,     /* the advice that follows is about the GIL */
	ADVICE_LOOP,

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
 * A function that was at work.
 * @percent: share of the waiting that the reason is about; 0: no function stands out
 * @hog: the function according to the probes; NULL: it is from the Python trace
 * @ended: holds that made others wait ended in it, but it is not known to have kept the GIL
 * @name, @caller: from the Python trace, "function (/path/file.py:12)"; caller may be NULL
 */
struct reason_function {
	double percent;
	const struct hog *hog;
	bool ended;
	const char *name, *caller;
};

/**
 * One statement of a verdict. Members that its code does not use are 0, NULL or MODEL_NONE.
 * @thread, @other: indices in the model
 * @group, @other_group: indices in the analysis' groups
 * @preempted_ns: the part of longest_ns in which the holder was runnable without a CPU, 0 if it is
 * small
 * @name: name of a module; any bytes
 * @place: a place where threads were sampled
 * @delay: the delay of a task
 * @chain: waits for locks, and what was done meanwhile
 * @frame, @of: where a thread was blocked, as in struct locks_place
 */
struct reason {
	enum reason_code code;
	uint32_t thread, other, group, other_group;
	uint64_t count, other_count, ns, held_ns, longest_ns, preempted_ns;
	double percent, other_percent, number;
	const struct hog *hog;
	const char *name;
	struct reason_function function;
	uint32_t frame;
	const char *of;
	const struct sampled_place *place;
	const struct task_delay *delay;
	const struct chain *chain;
};

struct reasons {
	VEC(struct reason) v;
};

/* Appends a reason without numbers; borrowed until the next call. */
struct reason *reasons_add(struct reasons *reasons, enum reason_code code);

#endif

/* SPDX-License-Identifier: MIT */
/* What a verdict can say, one code a sentence; report/verdict_text.c puts it into words. */
#ifndef GILTRACER_ANALYSIS_REASONS_H
#define GILTRACER_ANALYSIS_REASONS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/hogs.h"
#include "base/vec.h"

struct sampled_place;
struct task_delay;

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
	REASON_GIL_NONE,       /* percent of the lives waited */
	REASON_GIL_UNKNOWN,    /* percent of the lives on a CPU */
	REASON_SAMPLED,        /* of count samples, on average number threads waited for the GIL */
	REASON_SAMPLED_NO_GIL, /* count samples; who had the GIL could not be read */
	REASON_GIL_FORCED,     /* of a free-threaded interpreter: an option turned it on */
	REASON_GIL_ON,         /* an import, of module name if that is known, turned it on */
	REASON_GIL_TURNED_ON,  /* the same, while the program was recorded */

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

	REASON_SAMPLED_HOLDER, /* thread had the GIL in percent of the samples */
	REASON_SAMPLED_HELD,   /* in percent of the samples in which it was held, place ran */
	REASON_SAMPLED_PLACE,  /* percent of the threads' samples were in place */

	/* other reasons */
	REASON_CPU_USERS, /* who had the CPUs: the list is in the analysis */
	REASON_STATES,    /* shares of the threads' time: likewise */
	REASON_BUSIEST,   /* thread ran for percent of the recording */
	REASON_LOCKS,     /* thread was blocked by locks for percent of its life, ns, in */
	REASON_STOPS,     /* place; other_percent until other released it. The same: it */
	REASON_STOPPED,   /* stopped all others; it was stopped */
	REASON_NO_LOCKS,
	REASON_TASK_LATE, /* task was ready for ns before it ran, as delay says */

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
	ADVICE_EXACT,   /* what would tell more than samples */
	ADVICE_GIL_TOO, /* what follows is against the GIL */
	ADVICE_LOOP,

	/* how good the recording is */
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
 * @place: where threads were sampled
 * @delay: of a task
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
	const struct sampled_place *place;
	const struct task_delay *delay;
};

struct reasons {
	VEC(struct reason) v;
};

/* A reason without numbers, at the end of the list; borrowed until the next one. */
struct reason *reasons_add(struct reasons *reasons, enum reason_code code);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What costs the program time, most first: one list, from which the terminal, the page, JSON and
 * Markdown take what they say. A finding is what can be changed in one place: a function that holds
 * the GIL, a line that waits for a lock, tasks that are late, a lack of CPUs.
 *
 * Findings about the GIL are parts of all waiting for it, and do not overlap: those of functions,
 * of threads of which no function is known, of hand-offs, and of hand-offs to threads without a
 * CPU. Neither do those about locks. The others may contain the same time once more: a pattern is
 * how a thread experiences that waiting, and a thread can wait for the GIL and for a CPU at once.
 *
 * A finding costs at least FINDING_LEAST % of the time in which threads wanted to run, as much of the
 * duration of the recording, and VERDICT_SHORT_NS; or tasks were late for FINDING_LATE_NS at once; or
 * a CPU limit stopped the program; or there are samples only. The first is
 * of the kind that the verdict's headline is about, if there is one; the rest are in the order of
 * their costs. What tracing caused comes last.
 */
#ifndef GILTRACER_ANALYSIS_FINDINGS_H
#define GILTRACER_ANALYSIS_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/functions.h"
#include "analysis/locks.h"
#include "analysis/patterns.h"
#include "analysis/tasks.h"
#include "analysis/verdict.h"
#include "base/vec.h"

#define FINDING_LEAST   1         /* percent */
#define FINDING_LATE_NS 100000000 /* from which asyncio's debug mode reports a callback as slow */
#define FINDINGS_MAX    16        /* those that cost most */
#define FINDING_PLACES  64        /* the places that cost most */
#define FINDING_CHAINS  3
#define FINDING_CHAIN   10 /* percent of the waits in a line: worth a clause */
#define FINDING_CPUS \
	10 /* percent of the time in which threads wanted a CPU: worth a finding, also of some thread's life */

enum finding_kind {
	FINDING_CALL,     /* a function kept the GIL after release requests */
	FINDING_FUNCTION, /* a function ran in holds, or holds ended in it, for which others waited */
	FINDING_THREAD,   /* threads held the GIL in unknown functions */
	FINDING_HANDOFF, /* the GIL was free, the next thread not yet running */
	FINDING_NO_CPU,  /* the GIL was free, the next thread had no CPU */
	FINDING_LOCK,    /* threads waited for a lock in one line */
	FINDING_SHARED, /* threads of a free-threaded interpreter waited for one lock, in any line */
	FINDING_STOPS,  /* threads were stopped, by another that stopped the world */
	FINDING_TASK,   /* tasks of event loops were late, or ran for long */
	FINDING_CPUS_FEW, /* threads were runnable without a CPU */
	FINDING_QUOTA,    /* the control group's limit stopped the program */
	FINDING_PATTERN,
	FINDING_SAMPLED, /* estimated from samples */
	FINDING_KINDS,
};

/* SAMPLED: estimated from samples. INFERRED: a part of it was not recorded, but follows from the
 * rest. */
enum finding_certainty { FINDING_EXACT, FINDING_INFERRED, FINDING_ESTIMATED };

/**
 * A time that a finding is about.
 * @thread: index in the model; MODEL_NONE: it is of tasks of @group
 * @cost_ns: its part of the costs
 */
struct finding_place {
	uint32_t thread, group;
	uint64_t from_ns, to_ns, cost_ns;
};

/**
 * @cost_ns: waiting, summed over the threads or tasks that waited; 0: not known as a time
 * @share: the costs in percent of the time in which threads wanted to run: held the GIL, or waited
 *	for it or for a lock; of lateness, of the time in which the tasks wanted to run; of a lack of
 *	CPUs, of the time in which threads wanted one
 * @tracing: tracing is the cause, not the program
 * @row: CALL, FUNCTION: its overdue holds, or those that ended in it; NULL: none
 * @ran, @caller: FUNCTION: according to its calls, "function (/path/file.py:12)"; caller may be NULL;
 * ran NULL: according to the holds that ended in it; @traced_name, @traced_file, @traced_line: where to
 * look then, its first line
 * @charged: for findings.c
 * @ended_ns: FUNCTION: the part of the costs that passed in holds that ended in it
 * @preempted_ns: CALL: the part of the longest hold in which its thread was runnable without a CPU; 0: a
 * small one
 * @group: THREAD
 * @frame: where to look, id in the source's frames, 0: unknown; @count, @threads, @longest_ns: LOCK:
 *	number of waits and of threads that waited, the longest wait
 * @chains, @chain_count: LOCK: what was done meanwhile, most first
 * @tasks: TASK, index in the analysis' groups
 * @pattern, @alike: PATTERN; alike: number of further ones of its kind
 * @what: the other kinds: its reasons
 * @remedy: advice; REASON_CODES: none, or that of the pattern
 * @no_gain, @gain_ns: what the remedy would save
 * @places: most costs first
 */
struct finding {
	enum finding_kind kind;
	enum finding_certainty certainty;
	bool tracing;
	uint64_t cost_ns;
	double share;
	const struct function_row *row;
	uint32_t group, frame, tasks, charged, threads;
	const char *ran, *caller;
	char *traced_name, *traced_file;
	uint32_t traced_line;
	uint64_t count, longest_ns, ended_ns, preempted_ns;
	const struct chain *chains[FINDING_CHAINS];
	unsigned chain_count;
	const struct pattern *pattern;
	uint64_t alike;
	struct reasons what;
	enum reason_code remedy;
	enum no_gain no_gain;
	uint64_t gain_ns;
	VEC(struct finding_place) places;
};

/* @left: number of findings beyond FINDINGS_MAX */
struct findings {
	VEC(struct finding) v;
	size_t left;
};

/* Needs all other facts of the analysis, which must stay where they are. Free with
 * findings_done. */
void findings_find(struct findings *ret, const struct analysis *analysis);
void findings_done(struct findings *findings);

#endif

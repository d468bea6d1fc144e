/* SPDX-License-Identifier: MIT */
/* The numbers that the rules of the verdict use; verdict.h has the rules. */
#ifndef GILTRACER_ANALYSIS_EVIDENCE_H
#define GILTRACER_ANALYSIS_EVIDENCE_H

#include "analysis/facts.h"
#include "analysis/thread_groups.h"
#include "analysis/verdict.h"

/**
 * @wall_ns: how long was recorded
 * @wait_ns: what all threads waited for the GIL, of @known_ns that are known of their lives
 * @off_gil_running_ns: on a CPU without the GIL, once it was looked at
 * @victim: the thread, or else @victim_group, by its index in the groups, that waited longest of
 * those whose share of their lives spent waiting satisfies the strictest rule of the verdict that
 * any satisfies; a group has GROUP_MIN_THREADS or more, and counts as one thread that lived as long
 * as all of them together. Both MODEL_NONE if nobody that lived long enough waited
 * @victim_percent, @victim_ns: that share, and how long it waited
 * @waiters_percent: how much of a thread waited for the GIL on average
 * @runnable_percent: the largest share of its life that a thread was runnable, of the same
 * @busiest: the thread that ran on the CPUs most, for @busiest_ns
 * @holders: threads that held a GIL
 */
struct evidence {
	const struct recording *recording;
	const struct recording_pass *pass;
	const struct model *model;
	struct facts_totals totals;
	uint64_t wall_ns, wait_ns, known_ns, off_gil_running_ns, busiest_ns, victim_ns;
	uint32_t busiest, victim, victim_group;
	double victim_percent, waiters_percent, runnable_percent;
	unsigned holders;
};

/* @groups: of the main pass, by name alone. */
struct evidence evidence_gather(const struct recording *recording,
                                const struct thread_groups *groups);

/* The first rule that holds. Computes off_gil_running_ns if the rule needs it. */
enum verdict_kind evidence_judge(struct evidence *e);

/* The rules that may hold in addition to another one. */
bool evidence_is_starved(const struct evidence *e);
bool evidence_is_single(const struct evidence *e);        /* one thread does all the work */
enum verdict_kind evidence_gil(const struct evidence *e); /* GIL_BOUND, GIL_SOME or GIL_NONE */

/* Neither probes nor stacks were recorded: nothing says which threads waited for the GIL. */
bool evidence_is_blind(const struct evidence *e);

/* How long a thread waited for the GIL: by its events or, where none were recorded, by its
 * sleeps. */
uint64_t evidence_gil_wait(const struct evidence *e, const struct model_thread *t);

/* Time asleep, but not for the GIL; and the known part of the CPU states; of all threads. */
uint64_t evidence_asleep(const struct evidence *e);
uint64_t evidence_cpu_known(const struct evidence *e);

#endif

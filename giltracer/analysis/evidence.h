/* SPDX-License-Identifier: MIT */
/* The numbers that the rules of the verdict use; verdict.h has the rules. */
#ifndef GILTRACER_ANALYSIS_EVIDENCE_H
#define GILTRACER_ANALYSIS_EVIDENCE_H

#include "analysis/facts.h"
#include "analysis/groups.h"
#include "analysis/verdict.h"

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

/* @groups: of the main pass, by name only. */
struct evidence evidence_gather(const struct recording *recording,
                                const struct thread_groups *groups);

/* The first rule that holds. Computes off_gil_running_ns if the rule needs it. */
enum verdict_kind evidence_judge(struct evidence *e);

/* The rules that may hold in addition to another one. */
bool evidence_is_starved(const struct evidence *e);
bool evidence_is_single(const struct evidence *e);        /* one thread does all the work */
enum verdict_kind evidence_gil(const struct evidence *e); /* GIL_BOUND, GIL_SOME or GIL_NONE */
bool evidence_is_lock_bound(const struct evidence *e);

/* Neither probes nor stacks were recorded, so it is not known which threads waited for the GIL. */
bool evidence_is_blind(const struct evidence *e);

/* The CPU limit of the program's control group kept it from running. */
bool evidence_is_throttled(const struct evidence *e);

/* The threads' use of the GIL is unknown for longer than it is known that they wanted it, and for a
 * share of their lives that may hide any amount of waiting. */
bool evidence_is_lost(const struct evidence *e);

/* The unknown share of the lives of threads that may have used the GIL. */
double evidence_unknown_percent(const struct evidence *e);

/* How long a thread waited for the GIL: according to its GIL events or, if none were recorded, its
 * sleeps. */
uint64_t evidence_gil_wait(const struct evidence *e, const struct model_thread *t);

/* Of all threads: time asleep, but not for the GIL; and the known part of the CPU states. */
uint64_t evidence_asleep(const struct evidence *e);
uint64_t evidence_cpu_known(const struct evidence *e);

#endif

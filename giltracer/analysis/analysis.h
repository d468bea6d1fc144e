/* SPDX-License-Identifier: MIT */
/* What a recording means, as typed facts: computed once and then read by all writers, so that they
 * agree. It contains no text for people. */
#ifndef GILTRACER_ANALYSIS_ANALYSIS_H
#define GILTRACER_ANALYSIS_ANALYSIS_H

#include "analysis/facts.h"
#include "analysis/findings.h"
#include "analysis/functions.h"
#include "analysis/groups.h"
#include "analysis/lines.h"
#include "analysis/locks.h"
#include "analysis/sampled.h"
#include "analysis/tasks.h"
#include "analysis/verdict.h"

/**
 * The facts are about the main pass unless noted otherwise.
 * @recording, @pass, @model: the analysed recording, its main pass and that pass's model; borrowed
 * @evidence: sums over its threads, and the extremes
 * @groups: threads by name; @rows: the groups that tables show
 * @gil_waits, @lock_waits, @cpu_waits: waiting between groups, of @rows
 * @overdue: functions whose holds were overdue; @holders: functions in which holds ended for which
 * others waited
 * @places: places in the program where threads waited for locks
 * @chains: what other threads did while threads waited for locks; @path: the critical path, without
 * parts if waits for locks were not recorded
 * @cpu_users: programs that had the CPUs while threads were runnable
 * @counters: what perf counted in addition
 * @sampled: results of sampling
 * @tasks: tasks of event loops
 * @thread_order, @blame_order, @lock_blame_order: indices in the model, most waiting first
 * @caveats: of all passes
 * @findings: what costs time; @lines: times of the program's lines
 * @locks: the GIL was off throughout, and lock waits were recorded
 */
struct analysis {
	const struct recording *recording;
	const struct recording_pass *pass;
	const struct model *model;
	struct evidence evidence;
	struct thread_groups groups, rows;
	struct group_blames gil_waits, lock_waits, cpu_waits;
	struct function_rows overdue, holders;
	struct locks_places places;
	struct chains chains;
	struct path path;
	struct cpu_users cpu_users;
	struct counter_rows counters;
	struct sampled sampled;
	struct task_groups tasks;
	uint32_t *thread_order, *blame_order, *lock_blame_order;
	struct facts_caveats caveats;
	struct verdict verdict;
	struct findings findings;
	struct code_lines lines;
	bool locks;
};

/* What a pass alone tells about the holds of its GIL: it is found in the thread that read the pass, while
 * others are being read. Empty if there are no GIL events. */
struct holds {
	struct hogs hogs;
	struct patterns patterns;
};

/* model: finished; cpus: number of the machine's CPUs. Free with holds_done. */
void holds_find(struct holds *ret, const struct model *model, struct source *source, unsigned cpus);
void holds_done(struct holds *holds);

/* The replay without the GIL, as the recording's options ask for, or else the default ones.
 * Returns false if no GIL was recorded, or not a whole run. Free with whatif_free_done. */
struct whatif_free;
bool analysis_without_gil(struct whatif_free *ret, const struct analysis *analysis);

/* The recording is borrowed until analysis_free. */
struct analysis *analysis_new(const struct recording *recording);
void analysis_free(struct analysis *analysis);

#endif

/* SPDX-License-Identifier: MIT */
/* The library, preloaded into a program that we start, records the GIL; perf knows when threads run. */
#include <errno.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/procfs.h"
#include "python/probes.h"
#include "record/engine.h"
#include "record/execution.h"
#include "record/job.h"
#include "record/library.h"
#include "record/notes.h"

/* In the stacks of a stripped interpreter, sleeps for the GIL are identified by the address of take_gil.
 * Without it, only frames with that name are. */
static int prepare(struct job *job, struct error *err)
{
	if (job->events.perf && job_wants_stacks(job))
		job_find_probes(job, err);
	return 0;
}

/* Another engine is better than a library that is not there; without one, the program runs. */
static int records(const struct engine_process *process, struct error *err)
{
	const struct execution_plan *plan = process->plan;

	if (!plan->may_change || preloading_works(plan->preloading, process->tid))
		return 0;
	return error_set(err, ESTALE,
	                 "the library was not loaded into the program, because something "
	                 "cleared its environment or it never has a GIL");
}

static bool is_due(const struct execution_plan *plan)
{
	return preloading_finds_slow(plan->preloading);
}

/* Uprobes may record a process that does not have the library, or not yet. */
static bool covers(const struct execution_plan *plan, pid_t pid)
{
	CLEANUP(free) char *maps = procfs_read(pid, 0, "maps", NULL);

	return !maps || preloading_works(plan->preloading, (uint32_t)pid) ||
	       !strstr(maps, plan->probes->path);
}

static void take_over(const struct execution_plan *plan)
{
	preloading_take_over(plan->preloading);
}

/* perf records only what the library does not. */
static void describe(struct session_pass *pass)
{
	static char preload[] = RECORD_PRELOAD, switches[] = RECORD_SWITCHES;

	pass->preload = preload;
	if (pass->handover_ns) {
		pass->switches = switches;
	} else {
		pass->switches = pass->perf_data;
		pass->perf_data = NULL;
	}
}

const struct engine engine_library = {
	.name = "the library",
	.instead = "GIL events by a preloaded library (--probes preload), because ",
	.failed = "",
	.no_states = NOTE_STATES_PRELOAD,
	.perf = ENGINE_WITH_PERF_IF_PERMITTED,
	.gil = true,
	.knows_releases = true,
	.library = true,
	.check = job_find_library,
	.prepare = prepare,
	.records = records,
	.is_due = is_due,
	.covers = covers,
	.take_over = take_over,
	.describe = describe,
};

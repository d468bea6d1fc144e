/* SPDX-License-Identifier: MIT */
/* perf records: the GIL by uprobes in the interpreter, and states and stacks, too or alone. */
#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/procfs.h"
#include "base/str.h"
#include "python/probes.h"
#include "record/engine.h"
#include "record/execution.h"
#include "record/job.h"
#include "record/library.h"
#include "record/perf.h"
#include "system/perf_access.h"
#include "system/host.h"
#include "system/uprobes.h"

/* Adds to the error how to get the permission, in the words of giltracer check, unless another engine can
 * be used. */
static int denied(const struct job *job, bool roots, const char *instead, struct error *err)
{
	CLEANUP(free) char *remedy = NULL;
	CLEANUP(free) char *text = NULL;

	if (engine_has_others(job))
		return -1;
	remedy = sandbox_remedy(roots);
	text = xasprintf("%s -> %s%s", err->text, remedy, instead);
	return error_set(err, err->code, "%s", text);
}

static int check(struct job *job, struct error *err)
{
	if (job->program.python->free_threaded && job->engines[0] != &engine_states)
		return error_set(err, ENOTSUP,
		                 "%s is a free-threaded build, which the library records",
		                 job->program.python->command);
	if (!job->host.version) {
		*err = job->no_perf;
		return -1;
	}
	return perf_try_self(err) < 0 ? denied(job, false, "", err) : 0;
}

static int check_both(struct job *job, struct error *err)
{
	return job_find_library(job, err) < 0 ? -1 : check(job, err);
}

/* The kernel is asked, not perf: perf may continue without a refused event and record nothing. */
static int place(struct job *job, struct error *err)
{
	const struct probe_set *set = job->events.probes;

	if (uprobes_prepare(set, &job->events.uprobes, err) == 0 &&
	    uprobes_try(job->events.uprobes, err) == 0)
		return 0;
	if (err->code != EPERM && err->code != EACCES && err->code != ENOENT && err->code != EROFS)
		return -1;
	return denied(job, true, " (--no-gil-detect works without probes)", err);
}

static int prepare(struct job *job, struct error *err)
{
	return job_find_probes(job, err) < 0 ? -1 : place(job, err);
}

/* In the stacks of a stripped interpreter, sleeps for the GIL are identified by the address of take_gil.
 * Without it, only frames with that name are. */
static int prepare_states(struct job *job, struct error *err)
{
	if (job_find_probes(job, err) < 0)
		log_debug("%s", err->text);
	return 0;
}

static int start(const struct engine_process *process, uint64_t *start_ns, struct error *err)
{
	(void)start_ns;
	return probe_verify_file(process->plan->probes, err);
}

/* A thread of a child cannot be the first. */
static bool is_of_process(const struct engine_process *process)
{
	CLEANUP(free) char *path = procfs_path(process->pid, (pid_t)process->tid, "");

	return access(path, F_OK) == 0;
}

static int records(const struct engine_process *process, struct error *err)
{
	return recorder_has_events(&process->recorders->v[0]) && is_of_process(process)
	               ? probe_verify_process(process->pid, process->plan->probes, err)
	               : 0;
}

/* The kernel removes uprobes at once if we hold them open. */
static void retire(const struct engine_process *process, struct afterwards *after)
{
	const struct probe_set *set = process->plan->probes;

	struct error ignored;

	for (size_t i = 0; i < set->probes.n; i++) {
		int fd = perf_hold_event(set->group, set->probes.v[i].event, &ignored);

		if (fd >= 0)
			*vec_push(&after->held) = fd;
	}
}

/* The library's records are there to be compared with. */
static void describe_both(struct session_pass *pass)
{
	static char preload[] = RECORD_PRELOAD;

	pass->preload = preload;
}

const struct engine engine_uprobes = {
	.name = "uprobes",
	.failed = "uprobes cannot be used: ",
	.perf = ENGINE_WITH_PERF,
	.gil = true,
	.then = &engine_library,
	.check = check,
	.prepare = prepare,
	.start = start,
	.records = records,
	.retire = retire,
};

const struct engine engine_both = {
	.name = "uprobes and the library",
	.perf = ENGINE_WITH_PERF,
	.gil = true,
	.library = true,
	.check = check_both,
	.prepare = prepare,
	.start = start,
	.records = records,
	.describe = describe_both,
};

const struct engine engine_states = {
	.name = "states",
	.perf = ENGINE_WITH_PERF,
	.check = check,
	.prepare = prepare_states,
};

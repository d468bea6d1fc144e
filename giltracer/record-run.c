/* SPDX-License-Identifier: MIT */
/* The executions of the program, and what is noted of each. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "launch/pass.h"
#include "launch/perfopen.h"
#include "launch/spool.h"
#include "launch/stolen.h"
#include "record-job.h"

/* Wake-ups are small beside stacks: this part of a ring buffer is enough for them. */
#define WAKEUPS_SHARE 8

static bool wants_wakeups(const struct job *job)
{
	return job->options->state_detect && job->host.everybody;
}

/* Enough for the calls from a Python function down to what keeps the GIL. */
#define NATIVE_STACK 4096
#define NATIVE_HZ    250

/* One sample in any hold that is longer than the switch interval, if the host permits so many. */
static unsigned native_hz(const struct job *job)
{
	return job->host.sample_hz < NATIVE_HZ ? job->host.sample_hz : NATIVE_HZ;
}

/* A recording of a pass: which of the two it is, and where it goes. */
static struct perf_plan plan_recording(const struct job *job, const struct perf_share *share,
                                       const char *output)
{
	unsigned pages = perf_host_pages(&job->host, share);
	uint64_t buffer = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
	struct perf_plan plan = {
		.perf = "perf",
		.output = output,
		.mmap_pages = pages,
		.aio = job->host.aio,
		.buildid_mmap = job->host.by_event,
		.waking = job->host.tracepoints && !wants_wakeups(job),
	};

	if (share->stacks) {
		plan.sched = job->host.tracepoints;
		plan.stack_size = plan.sched ? perf_host_stack_size(buffer) : 0;
	} else {
		plan.probes = uprobes_events(job->uprobes);
		/* The control command has events by name since then, and would be taken for all. */
		plan.early = job->host.by_event ? job->early : NULL;
		plan.counters = job->counters;
		plan.native_hz = native_hz(job);
		plan.native = plan.native_hz ? NATIVE_STACK : 0;
		plan.unswapped = perf_reads_inherited();
		plan.sched = job->host.tracepoints && job->options->state_detect;
	}
	return plan;
}

/* Beside the recordings of an execution: who woke whom, also from an interrupt, and who had the
 * CPUs. */
static struct perf_plan plan_wakeups(const struct job *job, const struct perf_share *share,
                                     const char *output)
{
	return (struct perf_plan){
		.perf = "perf",
		.output = output,
		.mmap_pages = perf_host_pages(&job->host, share),
		.everybody = true,
		.waking = true,
		.sched = true,
	};
}

/* One execution: names of its recordings, "gil", "stacks" or both. */
struct execution {
	const char *names[2];
	size_t count;
	bool again; /* the program has run before */
};

static int signal_of(int status)
{
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* As a shell has it in $?. */
static int exit_status_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void add_pass(struct job *job, const char *name, const char *trace,
                     const struct pass_result *result)
{
	CLEANUP(free) char *perf_data = xasprintf("%s.perf.data", name);
	CLEANUP(free) char *trace_file = xasprintf("%s.viztracer.json", trace);
	CLEANUP(free) char *path = xasprintf("%s/%s", job->dir, trace_file);
	CLEANUP(free) char *codes = xasprintf("%s.codes", trace);
	CLEANUP(free) char *wakeups = xasprintf("%s.wakeups.perf.data", trace);
	bool traced = result->trace && access(path, R_OK) == 0;
	struct session_pass pass = {
		.name = (char *)(uintptr_t)name,
		.perf_data = perf_data,
		.python_trace = traced ? trace_file : NULL,
		.python_trace_note = result->trace_note,
		.code_objects = result->codes ? codes : NULL,
		.wakeups = wants_wakeups(job) ? wakeups : NULL,
		.exit_status = exit_status_of(result->status),
		.signal = signal_of(result->status),
		.wall_ns = result->wall_ns,
		.start_ns = result->start_ns,
		.stop_ns = result->stop_ns,
		.pid = result->pid,
		.tid = result->start_tid,
		.gil = result->gil,
		.threads = result->named.v,
		.thread_count = result->named.n,
	};

	session_add_pass(job->session, &pass);
}

static void note(struct job *job, const char *code, const char *text)
{
	log_warn("%s", text);
	session_add_note(job->session, code, 1, text);
}

static void note_stacks(struct job *job, const struct pass_plan *plan,
                        const struct pass_result *result, size_t i)
{
	CLEANUP(free) char *text = NULL;

	if (!plan->perf[i].stack_size || plan->perf[i].stack_size >= 4096)
		return;
	text = xasprintf("the host allows ring buffers of %u pages per CPU: stacks are cut at %u "
	                 "bytes, so that less is lost (giltracer setup allows more)",
	                 result->mmap_pages[i], plan->perf[i].stack_size);
	note(job, "stack-size", text);
}

static void note_result(struct job *job, const struct pass_plan *plan, struct pass_result *result)
{
	CLEANUP(free)
	char *stolen = stolen_note(result->stolen_ns, result->wall_ns,
	                           (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));

	for (size_t i = 0; i < plan->perf_count; i++)
		note_stacks(job, plan, result, i);
	if (result->perf_note) {
		note(job, "perf", result->perf_note);
		job->outcome->failed = true;
	}
	if (result->stopped)
		note(job, "stopped",
		     "the program was stopped for a while (Ctrl-Z, SIGSTOP): that counts as "
		     "sleep, and as holding the GIL for the thread that held it");
	if (stolen)
		session_add_note(job->session, "stolen", 1, stolen);
	if (result->limit_note)
		session_add_note(job->session, "limit", 1, result->limit_note);
	if (result->entry_note)
		note(job, "entry", result->entry_note);
	else if (!result->start_ns)
		note(job, "not-started",
		     "the program ended before tracing started, so nothing was recorded "
		     "(--trace-imports traces from the first line)");
	else if (!result->stop_ns)
		note(job, "not-stopped",
		     "the program ended without finishing (by a signal, os._exit or exec): its "
		     "last moments may be missing");
	if (job->python_traced && !result->trace && !result->trace_note && result->start_ns)
		result->trace_note = xstrdup("the program ended without finishing, so VizTracer "
		                             "could not save its trace");
	if (result->trace_note)
		log_warn("%s", result->trace_note);
}

static void set_status(struct job *job, const struct execution *execution,
                       const struct pass_result *result)
{
	struct record_outcome *outcome = job->outcome;
	int exit_status = exit_status_of(result->status);
	CLEANUP(free) char *text = NULL;

	if (execution->again && result->interrupted) {
		note(job, "interrupted", "interrupted: the second run, for the stacks, is cut");
	} else if (execution->again && exit_status != outcome->exit_status) {
		text = xasprintf("the two runs ended differently, with status %d and then %d: the "
		                 "program does not do the same twice",
		                 outcome->exit_status, exit_status);
		note(job, "exit-status", text);
		return;
	}
	outcome->exit_status = exit_status;
	outcome->signal = signal_of(result->status);
}

/* What would differ in a first run, the first run has had: its output is thrown away. */
static int open_null(const struct execution *execution, struct error *err)
{
	int fd;

	if (!execution->again)
		return -1;
	fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	return fd < 0 ? error_errno(err, "/dev/null") : fd;
}

/* A server waits to be ended now. */
static void say_limit(const char *why)
{
	log_info("%s", why);
}

/* What is recorded at the same time; outputs are filled in, the caller's to free. */
static void plan_recordings(const struct job *job, const struct execution *execution,
                            struct pass_plan *plan, char **outputs)
{
	struct perf_share share = { .count = (unsigned)execution->count + wants_wakeups(job) };

	for (size_t i = 0; i < execution->count; i++) {
		share.index = (unsigned)i;
		share.share = (unsigned)execution->count;
		share.stacks = !strcmp(execution->names[i], "stacks");
		outputs[i] = xasprintf("%s/%s.perf.data", job->dir, execution->names[i]);
		plan->perf[plan->perf_count++] = plan_recording(job, &share, outputs[i]);
	}
	if (!wants_wakeups(job))
		return;
	share = (struct perf_share){ share.count, (unsigned)execution->count, WAKEUPS_SHARE,
		                     false };
	outputs[share.index] = xasprintf("%s/%s.wakeups.perf.data", job->dir, execution->names[0]);
	plan->perf[plan->perf_count++] = plan_wakeups(job, &share, outputs[share.index]);
}

static int run_execution(struct job *job, const struct execution *execution, int in,
                         struct error *err)
{
	CLEANUP(close) int null = open_null(execution, err);
	CLEANUP(free)
	char *trace = xasprintf("%s/%s.viztracer.json", job->dir, execution->names[0]);
	CLEANUP(free) char *codes = xasprintf("%s/%s.codes", job->dir, execution->names[0]);
	CLEANUP(free)
	char *children = xasprintf("%s/%s.children", job->dir, execution->names[0]);
	char *outputs[PASS_RECORDERS] = { NULL };
	struct pass_result result;
	struct pass_plan plan = {
		.python = job->python->command,
		.python_options = job->python_options,
		.bootstrap = job->bootstrap,
		.kind = job->options->module ? "module" : "script",
		.target = job->target,
		.args = job->argv,
		.entry = job->entry,
		.imports = job->options->imports,
		.python_trace = job->python_traced ? trace : NULL,
		.python_trace_entries = job->options->python_trace_entries,
		.codes = strcmp(execution->names[0], "gil") == 0 ? codes : NULL,
		.children = children,
		.probes = strcmp(execution->names[0], "gil") == 0 ? job->probes : NULL,
		.in = in,
		.out = null,
		.err = null,
		.limit = { .duration_s = job->options->duration_s,
		           .max_mib = job->options->max_mib },
		.on_limit = say_limit,
	};
	int ret;

	if (execution->again && null < 0)
		return -1;
	plan_recordings(job, execution, &plan, outputs);
	limit_begin(&plan.limit, job->dir);
	ret = pass_run(&plan, job->signals, &result, err);
	if (ret == 0) {
		set_status(job, execution, &result);
		note_result(job, &plan, &result);
		for (size_t i = 0; i < execution->count; i++)
			add_pass(job, execution->names[i], execution->names[0], &result);
		job->outcome->interrupted |= result.interrupted;
		pass_result_done(&result);
	}
	for (size_t i = 0; i < PASS_RECORDERS; i++)
		free(outputs[i]);
	return ret;
}

static int run_once(struct job *job, const struct execution *execution, struct error *err)
{
	return run_execution(job, execution, -1, err);
}

#define NO_SECOND_RUN "interrupted: there was no second run, for the stacks"

/* Interrupted when the program had run once: that is worth a report. */
static int do_without(struct job *job)
{
	struct record_outcome *outcome = job->outcome;

	outcome->signal = signals_take(job->signals);
	outcome->exit_status = 128 + outcome->signal;
	outcome->interrupted = true;
	note(job, "interrupted", NO_SECOND_RUN);
	return 0;
}

static int run_twice(struct job *job, struct error *err)
{
	const struct execution first = { .names = { "gil" }, .count = 1 };
	const struct execution second = { .names = { "stacks" }, .count = 1, .again = true };
	struct spool spool = SPOOL_NONE;
	CLEANUP(close) int in = -1;
	int ret = spool_first(&spool, job->dir, &in, err);

	if (ret == 0) {
		log_info("run 1 of 2: %s",
		         job->python->free_threaded ? "what blocks threads" : "the GIL");
		ret = run_execution(job, &first, in, err);
	}
	if (in >= 0)
		close(take_fd(&in));
	if (ret == 0 && job->outcome->interrupted) {
		note(job, "interrupted", NO_SECOND_RUN);
	} else if (ret == 0 && job->outcome->failed) {
		log_warn("there is no second run, since recording the first one failed");
	} else if (ret == 0 && (ret = spool_again(&spool, &in, err)) == 0) {
		log_info("run 2 of 2: the stacks (its output is not shown)");
		ret = run_execution(job, &second, in, err);
		if (ret < 0 && err->code == EINTR)
			ret = do_without(job);
	}
	spool_done(&spool);
	return ret;
}

int job_run(struct job *job, struct error *err)
{
	const struct execution gil = { .names = { "gil" }, .count = 1 };
	const struct execution stacks = { .names = { "stacks" }, .count = 1 };
	const struct execution both = { .names = { "gil", "stacks" }, .count = 2 };

	if (job_wants_gil(job) && job_wants_stacks(job) && !job->host.tracepoints) {
		note(job, "tracepoints",
		     "tracepoints are not permitted, so there are no stacks and no reasons of "
		     "sleeps (giltracer check says who can permit them)");
		return run_once(job, &gil, err);
	}
	if (!job_wants_gil(job) && !job->host.tracepoints)
		note(job, "tracepoints",
		     "tracepoints are not permitted: only when threads ran and when they did not "
		     "is "
		     "known, not why (giltracer check says who can permit them)");
	if (job_wants_gil(job) && job_wants_stacks(job) && job->options->one_run)
		log_info("one run: stacks are recorded too, so the program is slower than with "
		         "the GIL alone");
	if (job_wants_gil(job) && job_wants_stacks(job))
		return job->options->one_run ? run_once(job, &both, err) : run_twice(job, err);
	return run_once(job, job_wants_gil(job) ? &gil : &stacks, err);
}

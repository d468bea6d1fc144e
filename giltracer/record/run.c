/* SPDX-License-Identifier: MIT */
/* Executes the program, once or twice, and notes the results in the session. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "preload/format.h"
#include "record/execution.h"
#include "record/flight.h"
#include "record/notes.h"
#include "system/perf_access.h"
#include "record/stdin_tee.h"
#include "system/host.h"
#include "record/job.h"

/* Wake-ups are few compared with stacks: this part of a ring buffer suffices. */
#define WAKEUPS_SHARE 8

static bool wants_wakeups(const struct job *job)
{
	return job->options->state_detect && job->host.everybody;
}

/* Bytes of stack: enough for the C calls from a Python function to the one that keeps the GIL. */
#define NATIVE_STACK 4096
#define NATIVE_HZ    250

/* What uprobes cost with each turn of the GIL, unless the library measures it: at least. */
#define TURN_NS 3000

/* Enough samples to have one in any hold longer than the switch interval, if the host permits so
 * many. */
static unsigned native_hz(const struct job *job)
{
	return job->host.sample_hz < NATIVE_HZ ? job->host.sample_hz : NATIVE_HZ;
}

/* perf reads /proc/kallsyms several times, which takes 0.1 s of CPU time. Only stacks of the
 * kernel need it, and perhaps the user's own events. */
static bool needs_kernel_symbols(const struct perf_plan *plan)
{
	return plan->stack_size || (plan->counters && *plan->counters);
}

/* 16 MiB for each CPU are enough for samples and the switches of threads that are stopped: the kernel takes
 * 7 ms to make 64 MiB. */
static unsigned few_pages(unsigned pages)
{
	const unsigned few = (16u << 20) / (unsigned)sysconf(_SC_PAGESIZE);

	return pages < few ? pages : few;
}

/* The plan of one recording of a pass; output is its file. */
static struct perf_plan plan_recording(const struct job *job, const struct perf_share *share,
                                       const char *output)
{
	unsigned pages = perf_limits_pages(&job->host, share);
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
		plan.stack_size = plan.sched ? perf_limits_stack_size(buffer) : 0;
	} else {
		plan.probes = job->events.uprobes ? uprobes_events(job->events.uprobes) : NULL;
		plan.counters = job->events.counters;
		plan.native_hz = native_hz(job);
		plan.native = plan.native_hz ? NATIVE_STACK : 0;
		plan.unswapped = perf_reads_inherited();
		plan.sched = job->host.tracepoints && job->options->state_detect;
		plan.stops = job->host.tracepoints;
	}
	if (!plan.probes && !plan.stack_size && !plan.sched)
		plan.mmap_pages = few_pages(pages);
	plan.without_syslog = job->host.without_syslog && !needs_kernel_symbols(&plan);
	return plan;
}

/*
 * The recording of the whole machine: wake-ups, from interrupts too, and which thread had each CPU.
 */
static struct perf_plan plan_wakeups(const struct job *job, const struct perf_share *share,
                                     const char *output)
{
	return (struct perf_plan){
		.perf = "perf",
		.without_syslog = job->host.without_syslog,
		.output = output,
		.mmap_pages = perf_limits_pages(&job->host, share),
		.everybody = true,
		.waking = true,
		.sched = true,
	};
}

/* What takes over with the library: all that the first recording has but uprobes. */
static struct perf_plan plan_standby(const struct job *job, const struct perf_share *share,
                                     const char *output)
{
	struct perf_plan plan = plan_recording(job, share, output);

	plan.probes = NULL;
	if (!plan.sched)
		plan.mmap_pages = few_pages(plan.mmap_pages);
	plan.standby = true;
	return plan;
}

/* One execution: the passes that it is recorded for, one or both. The first names its files. */
struct passes {
	enum pass_kind kinds[2];
	size_t count;
	bool again; /* the program has run before */
};

static int signal_of(int status)
{
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* As in a shell's $?. */
static int exit_status_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static const char *first_name(const struct passes *passes)
{
	return pass_kind_name(passes->kinds[0]);
}

static bool is_native(const struct job *job)
{
	return job->program.python_trace == PYTHON_TRACE_NATIVE;
}

/* A name in the session's folder; the caller frees it. */
static char *trace_name(const struct job *job, const struct passes *passes)
{
	if (is_native(job))
		return xstrdup(passes->kinds[0] == PASS_GIL ? RECORD_PRELOAD
		                                            : RECORD_STACKS_PRELOAD);
	return xasprintf("%s.viztracer.json", first_name(passes));
}

/* The argument for struct execution_plan; the caller frees it. */
static char *trace_argument(const struct job *job, const struct passes *passes)
{
	CLEANUP(free) char *name = trace_name(job, passes);

	switch (job->program.python_trace) {
	case PYTHON_TRACE_NATIVE:
		return xstrdup("=");
	case PYTHON_TRACE_VIZTRACER:
		return xasprintf("%s/%s", job->dir, name);
	default:
		return NULL;
	}
}

static void add_pass(struct job *job, const struct passes *passes, enum pass_kind kind,
                     const struct execution_result *result, const struct sampling *sampling)
{
	const char *trace = first_name(passes);
	CLEANUP(free) char *perf_data = xasprintf("%s.perf.data", pass_kind_name(kind));
	CLEANUP(free) char *trace_file = trace_name(job, passes);
	CLEANUP(free) char *path = xasprintf("%s/%s", job->dir, trace_file);
	CLEANUP(free) char *codes = xasprintf("%s.codes", trace);
	CLEANUP(free) char *wakeups = xasprintf("%s.wakeups.perf.data", trace);
	CLEANUP(free) char *samples = xasprintf("%s.samples", trace);
	/* The library's calls exist even if the program failed. */
	bool traced = (is_native(job) ? result->start_ns != 0 : result->trace != NULL) &&
	              access(path, R_OK) == 0;
	const struct engine *engine = job->engines[0];
	bool handed_over = result->handover_ns && kind == PASS_GIL;
	struct session_pass pass = {
		.kind = kind,
		.perf_data = job->events.perf ? perf_data : NULL,
		.python_trace = traced ? trace_file : NULL,
		.python_trace_note = result->trace_note,
		.code_objects = result->codes ? codes : NULL,
		.wakeups = wants_wakeups(job) ? wakeups : NULL,
		.samples = sampling->taken && kind == passes->kinds[0] ? samples : NULL,
		.exit_status = exit_status_of(result->status),
		.signal = signal_of(result->status),
		.wall_ns = result->wall_ns,
		.start_ns = result->start_ns,
		.stop_ns = result->stop_ns,
		.handover_ns = handed_over ? result->handover_ns : 0,
		.uprobes_end_ns = handed_over ? result->uprobes_end_ns : 0,
		.turn_ns = kind == PASS_GIL ? result->turn_ns : 0,
		.stolen_ns = steal_time_most(result->stolen_ns),
		.quota = result->quota,
		.suspended = result->suspended,
		.pid = result->pid,
		.tid = result->start_tid,
		.holder_tid = result->holder_tid,
		.gil = result->gil,
		.threads = result->named.v,
		.thread_count = result->named.n,
		.slept = result->slept.v,
		.slept_count = result->slept.n,
	};

	if (engine->describe && kind == PASS_GIL)
		engine->describe(&pass);
	if (handed_over)
		job->then->describe(&pass);
	session_add_pass(job->session, &pass);
}

static void note(struct job *job, const char *code, const char *text)
{
	log_warn("%s", text);
	session_add_note(job->session, code, 1, text);
}

static void note_stacks(struct job *job, const struct execution_plan *plan,
                        const struct execution_result *result, size_t i)
{
	CLEANUP(free) char *text = NULL;

	if (!plan->perf[i].stack_size || plan->perf[i].stack_size >= 4096)
		return;
	text = xasprintf(NOTE_STACK_SIZE, result->mmap_pages[i], plan->perf[i].stack_size);
	note(job, "stack-size", text);
}

/* How a pause of the program's threads counts for threads that waited. */
static const char *pause_counts_as(const struct job *job)
{
	return job->program.python->free_threaded ? NOTE_AS_WAIT : NOTE_AS_HOLD;
}

static void note_stopped(struct job *job, const struct execution_result *result)
{
	CLEANUP(free) char *text = NULL;
	uint64_t ns = 0;

	for (size_t i = 0; i < result->suspended.n; i++)
		ns += result->suspended.v[i].to_ns - result->suspended.v[i].from_ns;
	text = ns ? xasprintf(NOTE_SUSPENDED, (double)ns / 1e9)
	          : xasprintf(NOTE_STOPPED "%s", pause_counts_as(job));

	note(job, "stopped", text);
}

static void note_handover(struct job *job, const struct execution_result *result)
{
	CLEANUP(free)
	char *text = xasprintf(NOTE_HANDOVER,
	                       (double)(result->handover_ns - result->start_ns) / 1e9,
	                       PRELOAD_SLOW_PERCENT);

	session_add_note(job->session, "handover", 1, text);
}

static void note_stolen(struct job *job, const struct execution_result *result)
{
	double percent = steal_time_percent(result->stolen_ns, result->wall_ns,
	                                    (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	CLEANUP(free) char *text = NULL;

	if (percent < 1)
		return;
	text = xasprintf(NOTE_STOLEN "%s", percent, pause_counts_as(job));
	session_add_note(job->session, "stolen", 1, text);
}

static void note_unwritten(struct job *job, const struct preloading *preloading)
{
	static const char *const texts[] = {
		[PRELOAD_WHY_ROOM] = NOTE_UNWRITTEN_ROOM,
		[PRELOAD_WHY_FILES] = NOTE_UNWRITTEN_FILES,
		[PRELOAD_WHY_FILTER] = NOTE_UNWRITTEN_FILTER,
		[PRELOAD_WHY_REACH] = NOTE_UNWRITTEN_REACH,
	};
	unsigned why = preloading_unwritten(preloading);

	for (unsigned i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (why & 1u << i)
			note(job, "unwritten", texts[i]);
}

static void note_channel(struct job *job, const struct execution_result *result)
{
	bool early = !result->start_tid;
	CLEANUP(free) char *text = NULL;

	if (result->channel == CHANNEL_EXECUTED) {
		note(job, "executed", early ? NOTE_EXECUTED_EARLY : NOTE_EXECUTED);
		return;
	}
	text = xasprintf(early ? NOTE_CLOSED_EARLY : NOTE_CLOSED, execution_channel_number());
	note(job, "closed", text);
}

static void note_result(struct job *job, const struct execution_plan *plan,
                        struct execution_result *result)
{
	for (size_t i = 0; i < plan->perf_count; i++)
		note_stacks(job, plan, result, i);
	if (plan->engine && plan->engine->library && result->start_ns &&
	    !preloading_works(&job->events.library, result->pid))
		note(job, "preload", NOTE_PRELOAD_UNUSED);
	if (plan->preloading)
		note_unwritten(job, plan->preloading);
	if (job->options->pid && plan->preloading)
		session_add_note(job->session, "joined", 1, NOTE_JOINED);
	if (result->left_out_note)
		session_add_note(job->session, "left-out", 1, result->left_out_note);
	if (result->perf_note) {
		/* Logged as an error, which -q shows, because giltracer fails with it. */
		log_error("%s", result->perf_note);
		session_add_note(job->session, "perf", 1, result->perf_note);
		job->outcome->failed = true;
	}
	if (result->handover_ns)
		note_handover(job, result);
	if (result->stopped)
		note_stopped(job, result);
	if (result->late_tasks)
		session_add_note(job->session, "late-tasks", 1, NOTE_LATE_TASKS);
	note_stolen(job, result);
	if (result->limit_note)
		session_add_note(job->session, "limit", 1, result->limit_note);
	if (result->entry_note)
		note(job, "entry", result->entry_note);
	else if (result->unloaded)
		session_add_note(job->session, "not-loaded", 1, NOTE_NOT_LOADED);
	else if (result->channel != CHANNEL_OPEN && !result->stop_ns)
		note_channel(job, result);
	else if (!result->start_ns)
		note(job, "not-started", NOTE_NOT_STARTED);
	else if (!result->stop_ns)
		note(job, "not-stopped", NOTE_NOT_FINISHED);
	if (job->program.python_trace == PYTHON_TRACE_VIZTRACER && !result->trace &&
	    !result->trace_note && result->start_ns)
		result->trace_note = xstrdup(NOTE_TRACE_NOT_SAVED);
	if (result->trace_note)
		log_warn("%s", result->trace_note);
}

static void set_status(struct job *job, const struct passes *passes,
                       const struct execution_result *result)
{
	struct record_outcome *outcome = job->outcome;
	int exit_status = exit_status_of(result->status);
	CLEANUP(free) char *text = NULL;

	outcome->idle = result->idle;
	if (passes->again && result->interrupted) {
		note(job, "interrupted", NOTE_SECOND_RUN_CUT);
	} else if (passes->again && exit_status != outcome->exit_status) {
		text = xasprintf(NOTE_RUNS_DIFFER, outcome->exit_status, exit_status);
		note(job, "exit-status", text);
		return;
	}
	outcome->exit_status = exit_status;
	outcome->signal = signal_of(result->status);
}

/* The output of the second run is discarded: the first run has printed it. */
static int open_null(const struct passes *passes, struct error *err)
{
	int fd;

	if (!passes->again)
		return -1;
	fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	return fd < 0 ? error_errno(err, "/dev/null") : fd;
}

/* Logged at once, because a server goes on until somebody ends it. */
static void say_limit(const char *why)
{
	log_info("%s", why);
}

/* The engine of these passes; NULL: they do not record the GIL. */
static const struct engine *engine_of(const struct job *job, const struct passes *passes)
{
	return passes->kinds[0] == PASS_GIL ? job->engines[0] : NULL;
}

/* The one that may take over from it. */
static const struct engine *successor_of(const struct job *job, const struct passes *passes)
{
	return passes->kinds[0] == PASS_GIL ? job->then : NULL;
}

/* The library, whether it records the GIL or calls; NULL: not used. */
static const struct preloading *library_of(const struct job *job, const struct passes *passes,
                                           enum preload_use *use)
{
	const struct engine *engine = engine_of(job, passes);

	*use = engine && engine->library   ? PRELOAD_USE_RECORD
	       : successor_of(job, passes) ? PRELOAD_USE_COUNT
	                                   : PRELOAD_USE_HELD;
	return *use != PRELOAD_USE_HELD || is_native(job) ? &job->events.library : NULL;
}

static void say_handover(uint64_t elapsed_ns)
{
	log_info(NOTE_HANDOVER " (--probes uprobes keeps uprobes)", (double)elapsed_ns / 1e9,
	         PRELOAD_SLOW_PERCENT);
}

/* Plans the simultaneous recordings; the caller frees the outputs, which are filled in. */
static void plan_recordings(const struct job *job, const struct passes *passes,
                            struct execution_plan *plan, char **outputs)
{
	const bool standby = successor_of(job, passes);
	struct perf_share share = {
		.count = (unsigned)passes->count + standby + wants_wakeups(job),
	};

	if (!job->events.perf)
		return;
	for (size_t i = 0; i < passes->count; i++) {
		share.index = (unsigned)i;
		share.share = (unsigned)passes->count;
		share.stacks = passes->kinds[i] == PASS_STACKS;
		outputs[i] = xasprintf("%s/%s.perf.data", job->dir,
		                       pass_kind_name(passes->kinds[i]));
		plan->perf[plan->perf_count++] = plan_recording(job, &share, outputs[i]);
	}
	if (standby) {
		share.index = (unsigned)plan->perf_count;
		share.stacks = false;
		outputs[share.index] = xasprintf("%s/" RECORD_SWITCHES, job->dir);
		plan->perf[plan->perf_count++] = plan_standby(job, &share, outputs[share.index]);
	}
	if (!wants_wakeups(job))
		return;
	share = (struct perf_share){ share.count, (unsigned)plan->perf_count, WAKEUPS_SHARE,
		                     false };
	outputs[share.index] = xasprintf("%s/%s.wakeups.perf.data", job->dir, first_name(passes));
	plan->perf[plan->perf_count++] = plan_wakeups(job, &share, outputs[share.index]);
}

/* Written before the program runs, so that a report is possible even if giltracer is killed. */
static int write_before(struct job *job, struct error *err)
{
	static char preload[] = RECORD_PRELOAD;
	const struct session_pass pass = { .kind = PASS_GIL,
		                           .preload = preload,
		                           .python_trace = is_native(job) ? preload : NULL };
	int ret;

	session_add_pass(job->session, &pass);
	ret = session_write(job->session, preloading_session(&job->events.library, job->dir), err);
	session_drop_pass(job->session);
	return ret;
}

/* The library has its own folder in each run. */
static int prepare_library(struct job *job, const struct passes *passes, enum preload_use use,
                           struct error *err)
{
	const bool gil = passes->kinds[0] == PASS_GIL;
	const struct preloading_plan plan = {
		.dir = job->dir,
		.pid = job->pid,
		.name = gil ? RECORD_PRELOAD : RECORD_STACKS_PRELOAD,
		.max_mib = job->options->max_mib,
		.kept_ns = job->options->flight_ns,
		.longest_ns = job->watch.longest_ns,
		.bootstrap = job->program.bootstrap,
		.entries = job->options->python_trace_entries,
		.shortest_us = job->options->trace_min_us,
		.modules = job->options->trace_only,
		.calls = is_native(job),
		.c_calls = job->options->trace_c_calls,
		.mutexes = job->options->locks == LOCKS_ALL,
		.frames = gil ? job->options->frames : 0,
		.use = use,
		.turn_ns = use == PRELOAD_USE_COUNT && !is_native(job) ? TURN_NS : 0,
	};

	if (preloading_prepare(&job->events.library, &plan, err) < 0)
		return -1;
	return use == PRELOAD_USE_RECORD ? write_before(job, err) : 0;
}

/* A program that runs twice is sampled the first time. */
static struct sampling plan_sampling(const struct job *job, const struct passes *passes,
                                     const char *path)
{
	const struct record_options *options = job->options;
	bool wanted = (options->sample_hz || job->engines[0]->samples) && !passes->again;

	return (struct sampling){
		.must = job->engines[0]->samples,
		.plan = { .path = wanted ? path : NULL,
		          .hz = options->sample_hz ? options->sample_hz : SAMPLE_HZ,
		          .gil_only = options->gil_only,
		          .children = !options->no_children,
		          .max_bytes = ((uint64_t)options->max_mib << 20) / SAMPLING_SHARE },
	};
}

/* Removes what was ready to take over from uprobes, but did not have to. */
static void drop_standby(const struct job *job)
{
	CLEANUP(free) char *switches = xasprintf("%s/" RECORD_SWITCHES, job->dir);
	struct error err;

	unlink(switches);
	if (!is_native(job) && file_remove_tree(job->events.library.folder, &err) < 0)
		log_debug("%s", err.text);
}

static void take_result(struct job *job, const struct passes *passes,
                        const struct execution_plan *plan, struct execution_result *result)
{
	set_status(job, passes, result);
	note_result(job, plan, result);
	if (plan->then && !result->handover_ns)
		drop_standby(job);
	if (plan->sampling->note)
		note(job, "samples", plan->sampling->note);
	for (size_t i = 0; i < passes->count; i++)
		add_pass(job, passes, passes->kinds[i], result, plan->sampling);
	job->outcome->interrupted |= result->interrupted;
	job->outcome->unloaded |= result->unloaded;
	afterwards_move(&job->after, &result->after);
}

static int execute(struct job *job, const struct passes *passes, int in, struct error *err)
{
	CLEANUP(close) int null = open_null(passes, err);
	CLEANUP(free) char *trace = trace_argument(job, passes);
	CLEANUP(free) char *codes = xasprintf("%s/%s.codes", job->dir, first_name(passes));
	CLEANUP(free) char *children = NULL;
	char *outputs[RECORDERS_MAX] = { NULL };
	CLEANUP(free) char *samples = xasprintf("%s/%s.samples", job->dir, first_name(passes));
	CLEANUP(sampling_done)
	struct sampling sampling = plan_sampling(job, passes, samples);
	const struct engine *engine = engine_of(job, passes);
	enum preload_use use;
	const struct preloading *library = library_of(job, passes, &use);
	struct execution_result result;
	struct execution_plan plan = {
		.pid = job->pid,
		.python = job->program.python->command,
		.python_options = job->program.python_options,
		.bootstrap = job->program.bootstrap,
		.kind = job->program.kind,
		.target = job->program.target,
		.args = job->program.argv,
		.entry = job->program.entry,
		.imports = job->options->imports,
		.python_trace = trace,
		.python_trace_entries = job->options->python_trace_entries,
		.codes = passes->kinds[0] == PASS_GIL ? codes : NULL,
		.stack = job->program.stack,
		.flight_ns = job->options->flight_ns,
		.watch = &job->watch,
		.probes = engine && job->events.uprobes ? job->events.probes : NULL,
		.preloading = library,
		.in = in,
		.out = null,
		.err = null,
		.sampling = &sampling,
		.no_children = job->options->no_children,
		.may_change = engine && engine_has_others(job) && !job->options->events.n,
		.limit = { .duration_s = job->options->duration_s,
		           .max_mib = job->options->max_mib },
		.on_limit = say_limit,
		.host = &job->host,
		.engine = engine,
		.then = successor_of(job, passes),
		.on_handover = say_handover,
	};
	int ret;

	if ((passes->again && null < 0) || (library && prepare_library(job, passes, use, err) < 0))
		return -1;
	children = xasprintf("%s/%s.children", preloading_session(&job->events.library, job->dir),
	                     first_name(passes));
	plan.children = children;
	plan_recordings(job, passes, &plan, outputs);
	/* A perf of an earlier pass takes CPU time, and may still have its buffers. */
	afterwards_wait(&job->after);
	limit_begin(&plan.limit, job->dir);
	ret = execution_run(&plan, job->signals, &result, err);
	if (ret == 0 && library && flight_bring(&job->events.library, job->dir, err) < 0) {
		execution_result_done(&result);
		ret = -1;
	}
	if (ret == 0) {
		take_result(job, passes, &plan, &result);
		execution_result_done(&result);
	}
	for (size_t i = 0; i < RECORDERS_MAX; i++)
		free(outputs[i]);
	return ret;
}

/* Interrupted after the first run, whose recording still makes a report. */
static int skip_second_run(struct job *job)
{
	struct record_outcome *outcome = job->outcome;

	outcome->signal = signals_take(job->signals);
	outcome->exit_status = 128 + outcome->signal;
	outcome->interrupted = true;
	note(job, "interrupted", NOTE_NO_SECOND_RUN);
	return 0;
}

static int run_twice(struct job *job, struct error *err)
{
	const struct passes first = { .kinds = { PASS_GIL }, .count = 1 };
	const struct passes second = { .kinds = { PASS_STACKS }, .count = 1, .again = true };
	struct stdin_tee tee = STDIN_TEE_NONE;
	CLEANUP(close) int in = -1;
	int ret = stdin_tee_first(&tee, job->dir, &in, err);

	if (ret == 0) {
		log_info("run 1 of 2: %s",
		         job->program.python->free_threaded ? "what blocks threads" : "the GIL");
		ret = execute(job, &first, in, err);
	}
	if (in >= 0)
		close(take_fd(&in));
	if (ret == 0 && job->outcome->interrupted) {
		note(job, "interrupted", NOTE_NO_SECOND_RUN);
	} else if (ret == 0 && job->outcome->failed) {
		log_warn("no second run, because recording the first one failed");
	} else if (ret == 0 && !job->outcome->unloaded && stdin_tee_again(&tee, &in, err) < 0) {
		note(job, "no-input", NOTE_NO_INPUT);
		log_debug("%s", err->text);
	} else if (ret == 0 && !job->outcome->unloaded) {
		log_info("run 2 of 2: stacks (its output is discarded)");
		ret = execute(job, &second, in, err);
		if (ret < 0 && err->code == EINTR)
			ret = skip_second_run(job);
	}
	stdin_tee_done(&tee);
	return ret;
}

/* What one execution records, unless there are two: then the first records the GIL. */
static struct passes choose_passes(struct job *job, bool *twice)
{
	const struct record_options *options = job->options;
	const bool gil = job_wants_gil(job), perf = job->events.perf;
	bool stacks = perf ? job_wants_stacks(job) : !gil;

	if (!perf && options->state_detect)
		note(job, "states", job->engines[0]->no_states);
	if (perf && stacks && !job->host.tracepoints) {
		note(job, "tracepoints", gil ? NOTE_NO_REASONS : NOTE_NO_STATES);
		stacks = !gil;
	}
	*twice = gil && stacks && !options->pid && !options->one_run;
	if (gil && stacks && !options->pid && options->one_run)
		log_info("one run: stacks are recorded too, so the program is slower than "
		         "when only the GIL is recorded");
	if (gil && stacks)
		return (struct passes){ .kinds = { PASS_GIL, PASS_STACKS }, .count = 2 };
	return (struct passes){ .kinds = { gil ? PASS_GIL : PASS_STACKS }, .count = 1 };
}

static int run_with_engine(struct job *job, struct error *err)
{
	bool twice;
	const struct passes passes = choose_passes(job, &twice);

	return twice ? run_twice(job, err) : execute(job, &passes, -1, err);
}

/* Removes what an engine that cannot record the program has left in the folder. */
static void clear_folder(const struct job *job)
{
	CLEANUP(free) char *library = xasprintf("%s/" RECORD_PRELOAD, job->dir);
	CLEANUP(free) char *perf_data = xasprintf("%s/gil.perf.data", job->dir);
	struct error ignored;

	/* A program that runs already may still be loading it. */
	if (!job->options->pid)
		file_remove_tree(library, &ignored);
	unlink(perf_data);
}

int job_run(struct job *job, struct error *err)
{
	int ret;

	while ((ret = run_with_engine(job, err)) < 0 &&
	       (err->code == ESTALE || err->code == ECHILD) && !job->session->pass_count &&
	       job_change_engine(job, err) == 0) {
		clear_folder(job);
		if (job_prepare_engine(job, err) < 0)
			return -1;
		job_describe_engine(job, job->session);
	}
	return ret;
}

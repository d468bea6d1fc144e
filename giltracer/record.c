/* SPDX-License-Identifier: MIT */
/* Record a program into a session folder. */
#include "record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/datadir.h"
#include "base/log.h"
#include "base/str.h"
#include "cmd.h"
#include "launch/child.h"
#include "launch/pass.h"
#include "launch/perfhost.h"
#include "launch/perfopen.h"
#include "launch/framefetch.h"
#include "launch/probes.h"
#include "launch/python.h"
#include "launch/session.h"
#include "launch/spool.h"
#include "launch/uprobes.h"

const char *const python_trace_names[] = { "auto", "viztracer", "none", NULL };

/* Wake-ups are small beside stacks: this part of a ring buffer is enough for them. */
#define WAKEUPS_SHARE 8

/* Everything that one recording needs, in the order in which it is had. */
struct job {
	const struct record_options *options;
	char *const *argv; /* of the program, without the script's name */
	const char *target;
	const char *dir;
	const char **counters; /* NULL-terminated */
	char *bootstrap;
	char *entry;
	struct python *python;
	struct perf_host host;
	struct probe_set *probes;
	struct uprobes *uprobes;
	struct session *session;
	const struct signals *signals;
	struct record_outcome *outcome;
	bool python_traced;
};

/* Everything that a session ever consists of: perf renames a file that it finds to .old. */
static const char *const SESSION_FILES[] = {
	"session.json",
	"gil.perf.data",
	"gil.perf.data.old",
	"gil.viztracer.json",
	"gil.codes",
	"stacks.perf.data",
	"stacks.perf.data.old",
	"stacks.viztracer.json",
	"gil.wakeups.perf.data",
	"gil.wakeups.perf.data.old",
	"stacks.wakeups.perf.data",
	"stacks.wakeups.perf.data.old",
};

void record_remove_folder(const char *dir)
{
	for (size_t i = 0; i < sizeof(SESSION_FILES) / sizeof(*SESSION_FILES); i++) {
		CLEANUP(free) char *path = xasprintf("%s/%s", dir, SESSION_FILES[i]);

		unlink(path);
	}
	rmdir(dir);
}

static bool is_session_file(const char *name)
{
	for (size_t i = 0; i < sizeof(SESSION_FILES) / sizeof(*SESSION_FILES); i++)
		if (!strcmp(name, SESSION_FILES[i]))
			return true;
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* A folder of somebody's is not ours to fill, nor to clear. */
static bool is_ours(const char *dir)
{
	CLEANUP(closedir) DIR *entries = opendir(dir);
	struct dirent *entry;

	while (entries && (entry = readdir(entries)))
		if (!is_session_file(entry->d_name))
			return false;
	return entries;
}

static int make_folder(const char *dir, struct error *err)
{
	if (mkdir(dir, 0777) == 0)
		return 0;
	if (errno != EEXIST)
		return error_errno(err, "%s", dir);
	if (!is_ours(dir))
		return error_set(err, EEXIST, "%s: is there, and more than a session is in it",
		                 dir);
	record_remove_folder(dir);
	return mkdir(dir, 0777) < 0 ? error_errno(err, "%s", dir) : 0;
}

int record_make_folder(char **ret, const char *dir, struct error *err)
{
	if (make_folder(dir, err) < 0)
		return -1;
	*ret = realpath(dir, NULL);
	return *ret ? 0 : error_errno(err, "%s", dir);
}

void record_set_log_level(const struct record_options *options)
{
	if (options->quiet)
		log_set_level(LOG_ERROR);
	else if (options->verbose)
		log_set_level(LOG_DEBUG);
}

/* ---- what to run, and with what */

static int check_script(const char *script, struct error *err)
{
	if (!strcmp(script, "-")) {
		error_set(err, EINVAL, "a program on standard input cannot be traced");
		return -1;
	}
	if (access(script, R_OK) == 0)
		return 0;
	error_errno(err, "%s", script);
	return err->code == ENOENT || err->code == ENOTDIR ? -EXIT_NOT_FOUND : -EXIT_CANNOT_RUN;
}

static int find_target(struct job *job, char *const *argv, struct error *err)
{
	const struct record_options *options = job->options;

	if (options->entry && options->trace_imports)
		return error_set(err, EINVAL, "--entry and --trace-imports exclude each other");
	job->entry = options->entry ? xasprintf("=%s", options->entry)
	                            : xstrdup(options->trace_imports ? "first" : "main");
	if (options->module) {
		job->target = options->module;
		job->argv = argv;
		return 0;
	}
	if (!argv[0])
		return error_set(err, EINVAL, "which program? (see --help)");
	job->target = argv[0];
	job->argv = argv + 1;
	return check_script(argv[0], err);
}

static int find_python(struct job *job, struct error *err)
{
	if (python_find(&job->python, job->options->python, err) == 0)
		return 0;
	if (err->code == ENOENT)
		return -EXIT_NOT_FOUND;
	return err->code == EACCES ? -EXIT_CANNOT_RUN : -1;
}

static int choose_python_trace(struct job *job, struct error *err)
{
	const struct python *python = job->python;

	job->python_traced = job->options->python_trace != PYTHON_TRACE_NONE && python->viztracer;
	if (python->viztracer || job->options->python_trace == PYTHON_TRACE_NONE)
		return 0;
	if (job->options->python_trace == PYTHON_TRACE_VIZTRACER)
		return error_set(err, ENOENT, "%s has no VizTracer: %s -m pip install viztracer",
		                 python->command, python->command);
	log_info("no Python calls in the report: VizTracer is not there (%s -m pip install "
	         "viztracer)",
	         python->command);
	return 0;
}

static bool wants_gil(const struct job *job)
{
	return !job->options->no_gil_detect && !job->python->free_threaded;
}

static bool wants_stacks(const struct job *job)
{
	return job->options->state_detect || !wants_gil(job);
}

static int prepare_probes(struct job *job, struct error *err)
{
	/* Where take_gil is tells sleeps for the GIL from others in the stacks of a stripped
	 * interpreter. Where that cannot be found out, they are told by its name alone. */
	if (!wants_gil(job)) {
		if (probe_set_resolve(&job->probes, job->python, job->options->frames, err) < 0)
			log_debug("%s", err->text);
		return 0;
	}
	if (probe_set_resolve(&job->probes, job->python, job->options->frames, err) < 0)
		return -1;
	return uprobes_prepare(job->probes, &job->uprobes, err);
}

/* Everything that can be refused before anything is started. */
static int prepare(struct job *job, char *const *argv, struct error *err)
{
	const struct opt_list *events = &job->options->events;
	int ret = find_target(job, argv, err);

	job->counters = xcalloc(events->n + 1, sizeof(*job->counters));
	for (unsigned i = 0; i < events->n; i++)
		job->counters[i] = events->v[i];
	if (ret < 0 || (ret = find_python(job, err)) < 0)
		return ret;
	if (datadir_find(&job->bootstrap, "share/python/bootstrap.py", err) < 0 ||
	    perf_host_find(&job->host, err) < 0 || choose_python_trace(job, err) < 0)
		return -1;
	if (job->python->free_threaded && !job->options->no_gil_detect)
		log_info("%s is free-threaded: it has no GIL, so what its threads do and why they "
		         "sleep is recorded instead",
		         job->python->command);
	if (!wants_gil(job) && !job->host.tracepoints)
		return error_set(err, EPERM,
		                 "without uprobes there must be tracepoints, which this user may "
		                 "not record (giltracer check says how to get them)");
	return 0;
}

/* ---- the session */

static char *timestamp(void)
{
	time_t now = time(NULL);
	struct tm tm;
	char buf[32];

	gmtime_r(&now, &tm);
	strftime(buf, sizeof(buf), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return xstrdup(buf);
}

static char **command_copy(const struct job *job)
{
	struct {
		char **v;
		size_t n, alloc;
	} args = { 0 };

	if (job->options->module)
		*vec_push(&args) = xstrdup("-m");
	*vec_push(&args) = xstrdup(job->target);
	for (char *const *arg = job->argv; *arg; arg++)
		*vec_push(&args) = xstrdup(*arg);
	*vec_push(&args) = NULL;
	return args.v;
}

/* Those that the program may run on. */
static unsigned usable_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		return (unsigned)CPU_COUNT(&set);
	return (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

static void describe_host(struct session *session, const struct job *job)
{
	struct utsname host;
	char cwd[PATH_MAX];

	if (uname(&host) == 0) {
		session->kernel = xstrdup(host.release);
		session->arch = xstrdup(host.machine);
	}
	session->cwd = getcwd(cwd, sizeof(cwd)) ? xstrdup(cwd) : NULL;
	session->cpus = usable_cpus();
	session->perf_version = xstrdup(job->host.version);
}

static void describe_probes(struct session *session, const struct probe_set *set)
{
	if (!set)
		return;
	session->build_id = xstrdup(set->build_id);
	session->functions = xcalloc(set->probes.n, sizeof(*session->functions));
	for (size_t i = 0; i < set->probes.n; i++) {
		const struct probe *probe = &set->probes.v[i];

		if (probe->ret)
			continue;
		session->functions[session->function_count++] = (struct session_function){
			.name = xstrdup(probe->function),
			.kind = xstrdup(symbol_kind_name(probe->kind)),
			.offset = probe->offset,
		};
	}
	if (set->note && session->gil_detect)
		session_add_note(session, "probes", 1, set->note);
}

static struct session *describe(const struct job *job)
{
	struct session *session = session_new();

	session->created = timestamp();
	session->command = command_copy(job);
	session->state_detect = job->options->state_detect;
	session->gil_detect = wants_gil(job);
	session->one_run = job->options->one_run;
	session->python_trace = xstrdup(job->python_traced ? "viztracer" : "none");
	session->executable = xstrdup(job->python->executable);
	session->python_version = xstrdup(job->python->version);
	session->implementation = xstrdup(job->python->implementation);
	session->free_threaded = job->python->free_threaded;
	describe_host(session, job);
	describe_probes(session, job->probes);
	return session;
}

/* ---- passes */

static bool wants_wakeups(const struct job *job)
{
	return job->options->state_detect && job->host.everybody;
}

/* Enough for the calls from a Python function down to what keeps the GIL. */
#define NATIVE_STACK 4096

/* A recording of a pass: which of the two it is, and where it goes. */
static struct perf_plan plan_recording(const struct job *job, bool stacks, const char *output,
                                       unsigned recordings)
{
	unsigned pages = perf_host_pages(&job->host, recordings, stacks);
	uint64_t buffer = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
	struct perf_plan plan = {
		.perf = "perf",
		.output = output,
		.mmap_pages = pages,
		.buildid_mmap = job->host.major > 5 || job->host.minor >= 12,
		.waking = job->host.tracepoints && !wants_wakeups(job),
	};

	if (stacks) {
		plan.sched = job->host.tracepoints;
		plan.stack_size = perf_host_stack_size(buffer);
	} else {
		plan.probes = uprobes_events(job->uprobes);
		plan.counters = job->counters;
		plan.native = NATIVE_STACK;
		plan.unswapped = perf_reads_inherited();
		plan.sched = job->host.tracepoints && job->options->state_detect;
	}
	return plan;
}

/* Beside the recordings of an execution: who woke whom, also from an interrupt, and who had the
 * CPUs. */
static struct perf_plan plan_wakeups(const struct job *job, const char *output)
{
	return (struct perf_plan){
		.perf = "perf",
		.output = output,
		.mmap_pages = perf_host_pages(&job->host, WAKEUPS_SHARE, false),
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
		.threads = result->threads,
		.thread_count = result->thread_count,
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
	                 "bytes, so that no records are lost (giltracer setup allows more)",
	                 result->mmap_pages[i], plan->perf[i].stack_size);
	note(job, "stack-size", text);
}

static void note_result(struct job *job, const struct pass_plan *plan, struct pass_result *result)
{
	for (size_t i = 0; i < plan->perf_count; i++)
		note_stacks(job, plan, result, i);
	if (result->perf_note) {
		note(job, "perf", result->perf_note);
		job->outcome->failed = true;
	}
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

static void set_status(struct job *job, const struct execution *execution, int status)
{
	struct record_outcome *outcome = job->outcome;
	int exit_status = exit_status_of(status);
	CLEANUP(free) char *text = NULL;

	if (execution->again && exit_status != outcome->exit_status) {
		text = xasprintf("the two runs ended differently, with status %d and then %d: the "
		                 "program does not do the same twice",
		                 outcome->exit_status, exit_status);
		note(job, "exit-status", text);
		return;
	}
	outcome->exit_status = exit_status;
	outcome->signal = signal_of(status);
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

static int run_execution(struct job *job, const struct execution *execution, int in,
                         struct error *err)
{
	CLEANUP(close) int null = open_null(execution, err);
	CLEANUP(free)
	char *trace = xasprintf("%s/%s.viztracer.json", job->dir, execution->names[0]);
	CLEANUP(free) char *codes = xasprintf("%s/%s.codes", job->dir, execution->names[0]);
	char *outputs[PASS_RECORDERS] = { NULL };
	struct pass_result result;
	struct pass_plan plan = {
		.python = job->python->command,
		.bootstrap = job->bootstrap,
		.kind = job->options->module ? "module" : "script",
		.target = job->target,
		.args = job->argv,
		.entry = job->entry,
		.imports = job->options->imports,
		.python_trace = job->python_traced ? trace : NULL,
		.python_trace_entries = job->options->python_trace_entries,
		.codes = strcmp(execution->names[0], "gil") == 0 ? codes : NULL,
		.in = in,
		.out = null,
		.err = null,
		.perf_count = execution->count,
	};
	int ret;

	if (execution->again && null < 0)
		return -1;
	for (size_t i = 0; i < execution->count; i++) {
		outputs[i] = xasprintf("%s/%s.perf.data", job->dir, execution->names[i]);
		plan.perf[i] = plan_recording(job, !strcmp(execution->names[i], "stacks"),
		                              outputs[i], (unsigned)execution->count);
	}
	if (wants_wakeups(job)) {
		outputs[execution->count] = xasprintf("%s/%s.wakeups.perf.data", job->dir,
		                                      execution->names[0]);
		plan.perf[plan.perf_count++] = plan_wakeups(job, outputs[execution->count]);
	}
	ret = pass_run(&plan, job->signals, &result, err);
	if (ret == 0) {
		set_status(job, execution, result.status);
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

static int run_twice(struct job *job, struct error *err)
{
	const struct execution first = { .names = { "gil" }, .count = 1 };
	const struct execution second = { .names = { "stacks" }, .count = 1, .again = true };
	struct spool spool = SPOOL_NONE;
	CLEANUP(close) int in = -1;
	int ret = spool_first(&spool, job->dir, &in, err);

	if (ret == 0) {
		log_info("run 1 of 2: the GIL");
		ret = run_execution(job, &first, in, err);
	}
	if (in >= 0)
		close(take_fd(&in));
	if (ret == 0 && job->outcome->interrupted) {
		note(job, "interrupted", "interrupted: there was no second run, for the stacks");
	} else if (ret == 0 && (ret = spool_again(&spool, &in, err)) == 0) {
		log_info("run 2 of 2: the stacks (its output is not shown)");
		ret = run_execution(job, &second, in, err);
	}
	spool_done(&spool);
	return ret;
}

static int run_passes(struct job *job, struct error *err)
{
	const struct execution gil = { .names = { "gil" }, .count = 1 };
	const struct execution stacks = { .names = { "stacks" }, .count = 1 };
	const struct execution both = { .names = { "gil", "stacks" }, .count = 2 };

	if (wants_gil(job) && wants_stacks(job) && !job->host.tracepoints) {
		note(job, "tracepoints",
		     "tracepoints are not permitted, so there are no stacks and no reasons of "
		     "sleeps (giltracer setup permits them)");
		return run_once(job, &gil, err);
	}
	if (wants_gil(job) && wants_stacks(job) && job->options->one_run)
		log_info("one run: stacks are recorded too, so the program is slower than with "
		         "the GIL alone");
	if (wants_gil(job) && wants_stacks(job))
		return job->options->one_run ? run_once(job, &both, err) : run_twice(job, err);
	return run_once(job, wants_gil(job) ? &gil : &stacks, err);
}

/* ---- the whole */

static int record_guarded(struct job *job, struct error *err)
{
	int ret = prepare_probes(job, err);

	if (ret == 0) {
		job->session = describe(job);
		ret = run_passes(job, err);
	}
	uprobes_release(take(job->uprobes));
	if (ret == 0)
		ret = session_write(job->session, job->dir, err);
	return ret;
}

static void job_done(struct job *job)
{
	free(job->counters);
	free(job->bootstrap);
	free(job->entry);
	python_free(job->python);
	perf_host_done(&job->host);
	probe_set_free(job->probes);
	session_free(job->session);
}

int record_session(const struct record_options *options, char *const *argv, const char *dir,
                   const struct signals *signals, struct record_outcome *ret, struct error *err)
{
	struct job job = { .options = options, .dir = dir, .signals = signals, .outcome = ret };
	int failed;

	*ret = (struct record_outcome){ 0 };
	failed = prepare(&job, argv, err);
	if (failed == 0)
		failed = record_guarded(&job, err);
	job_done(&job);
	return failed;
}

int record_exit(const struct record_outcome *outcome)
{
	const struct rlimit no_core = { 0, 0 };
	sigset_t set;

	if (outcome->failed)
		return EXIT_GILTRACER;
	if (!outcome->signal)
		return outcome->exit_status;
	fflush(stdout);
	setrlimit(RLIMIT_CORE, &no_core);
	signal(outcome->signal, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, outcome->signal);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(outcome->signal);
	return outcome->exit_status;
}

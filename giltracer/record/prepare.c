/* SPDX-License-Identifier: MIT */
/* Finds what to run and how to record it. Whatever can be refused is refused here, before
 * anything starts. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/datadir.h"
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "live/family.h"
#include "python/target.h"
#include "python/process.h"
#include "record/execution.h"
#include "record/job.h"
#include "record/library.h"
#include "record/record.h"
#include "system/perf_access.h"
#include "system/host.h"

/* python, python3.11, /usr/bin/python3 */
static bool names_python(const char *script)
{
	const char *name = str_base(script);

	return !strncmp(name, "python", 6) && name[6 + strspn(name + 6, "0123456789.")] == '\0';
}

static bool is_binary(const char *path)
{
	CLEANUP(close) int fd = -1;
	char magic[SELFMAG];
	struct stat st;

	/* A FIFO is not opened: its writer expects one reader, the interpreter. */
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && pread(fd, magic, sizeof(magic), 0) == SELFMAG &&
	       !memcmp(magic, ELFMAG, SELFMAG);
}

/* Errors for command lines as users of similar tools write them. */
static int explain(const struct record_options *options, const char *script, int status,
                   struct error *err)
{
	if (options->is_command(script))
		error_set(err, ENOENT,
		          "%s: there is no such script; put the command before the options: "
		          "giltracer %s [OPTION]...",
		          script, script);
	else if (names_python(script))
		error_set(err, ENOENT,
		          "%s: name a script; giltracer starts Python itself (--python %s "
		          "chooses the interpreter)",
		          script, script);
	else if (status == EXIT_CANNOT_RUN)
		error_set(err, ENOEXEC,
		          "%s: is not a Python script; if it contains Python, as programs of "
		          "PyInstaller and Nuitka do, start it and use -p PID",
		          script);
	else if (!strpbrk(script, "./"))
		error_set(err, ENOENT, "%s: there is no such script or command (see --help)",
		          script);
	return -status;
}

static bool is_pipe(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
}

static int check_script(const struct record_options *options, const char *script, bool twice,
                        struct error *err)
{
	if (twice && is_pipe(script))
		return error_set(err, EINVAL,
		                 "%s: a pipe can be read once, and --state-detect runs the program "
		                 "twice (--one-run runs it once)",
		                 script);
	if (access(script, R_OK) == 0)
		return is_binary(script) || (names_python(script) && access(script, X_OK) == 0)
		               ? explain(options, script, EXIT_CANNOT_RUN, err)
		               : 0;
	error_errno(err, "%s", script);
	return err->code == ENOENT || err->code == ENOTDIR
	               ? explain(options, script, EXIT_NOT_FOUND, err)
	               : -EXIT_CANNOT_RUN;
}

/* The first given option that only applies to starting a program. */
static const char *start_option(const struct record_options *options)
{
	const struct {
		const char *name;
		bool given;
	} table[] = {
		{ "-m", options->module },
		{ "-c", options->code },
		{ "--entry", options->entry },
		{ "--import", options->imports },
		{ "--trace-imports", options->trace_imports },
		{ "--python", options->python },
		{ "--python-trace native", options->python_trace == PYTHON_TRACE_NATIVE },
		{ "--python-trace viztracer", options->python_trace == PYTHON_TRACE_VIZTRACER },
		{ "--trace-only", options->trace_only },
		{ "--trace-min-us", options->trace_min_us },
		{ "--trace-c-calls", options->trace_c_calls },
		{ "--probes both", options->probes == PROBES_BOTH },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].given)
			return table[i].name;
	return NULL;
}

static int find_running(struct job *job, char *const *argv, struct error *err)
{
	const char *option = start_option(job->options);

	if (argv[0])
		return error_set(err, EINVAL, "'%s': -p records a program that is already running",
		                 argv[0]);
	if (option)
		return error_set(err, EINVAL,
		                 "option %s: needs a program that giltracer starts, not -p",
		                 option);
	if (family_python(&job->pid, (pid_t)job->options->pid, err) < 0)
		return -1;
	if (job->pid != (pid_t)job->options->pid)
		log_info(FAMILY_TAKEN, job->options->pid, (int)job->pid);
	job->program.command = execution_command(job->pid);
	job->program.target = job->program.command[0];
	job->program.argv = job->program.command + 1;
	return 0;
}

static int find_target(struct job *job, char *const *argv, struct error *err)
{
	const struct record_options *options = job->options;

	if (options->pid)
		return find_running(job, argv, err);

	if (options->no_children)
		return error_set(err, EINVAL, "option --no-children: needs -p");
	if (options->entry && options->trace_imports)
		return error_set(err, EINVAL, "--entry and --trace-imports exclude each other");
	job->program.entry = options->entry ? xasprintf("=%s", options->entry)
	                                    : xstrdup(options->trace_imports ? "first" : "main");
	if (options->module || options->code) {
		job->program.kind = options->module ? "module" : "command";
		job->program.option = options->module ? "-m" : "-c";
		job->program.target = options->module ? options->module : options->code;
		job->program.argv = argv;
		return 0;
	}
	if (!argv[0])
		return error_set(err, EINVAL,
		                 "a script, -m MODULE or -c CODE is expected (see --help)");
	job->program.target = argv[0];
	job->program.argv = argv + 1;
	job->program.kind = "script";
	if (!strcmp(argv[0], "-")) {
		job->program.kind = "stdin";
		return isatty(STDIN_FILENO)
		               ? error_set(err, EINVAL,
		                           "-: a program is expected on standard input, which is a "
		                           "terminal")
		               : 0;
	}
	return check_script(options, argv[0],
	                    options->state_detect && !options->no_gil_detect && !options->one_run,
	                    err);
}

/* Whether the interpreter of the script's first line runs it: the script names one and is
 * executable, and neither --python nor a virtual environment chooses another. */
static bool uses_shebang(const struct job *job)
{
	const char *venv = getenv("VIRTUAL_ENV");

	return job->program.shebang.python && !job->options->python && !(venv && *venv) &&
	       access(job->program.target, X_OK) == 0;
}

/* The file behind all links, and the folder, which identifies a virtual environment. */
static char *identity(const char *wanted)
{
	CLEANUP(free) char *command = NULL;
	CLEANUP(free) char *file = NULL;
	CLEANUP(free) char *folder = NULL;
	struct error ignored;

	if (python_command(&command, wanted, &ignored) < 0)
		return NULL;
	file = realpath(command, NULL);
	*strrchr(command, '/') = '\0';
	folder = realpath(command, NULL);
	return file && folder ? xasprintf("%s %s", folder, file) : NULL;
}

/* Whether two commands are different interpreters, or one of them cannot be found. */
static bool differ(const char *a, const char *b)
{
	CLEANUP(free) char *identity_a = identity(a);
	CLEANUP(free) char *identity_b = identity(b);

	return !identity_a || !identity_b || strcmp(identity_a, identity_b) != 0;
}

/* Reports which interpreter runs the script if that may be unexpected. */
static void tell_shebang(const struct job *job, bool used)
{
	const struct shebang *shebang = &job->program.shebang;
	const char *other = used ? NULL : job->options->python;

	if (!shebang->line || (shebang->python && !differ(shebang->python, other)))
		return;
	if (used)
		log_info("%s runs %s, as named in its first line (--python chooses another)",
		         shebang->python, job->program.target);
	else
		log_info("the first line of %s, #!%s, is ignored: %s runs it", job->program.target,
		         shebang->line, job->program.python->command);
}

static void take_options(struct job *job)
{
	const struct shebang *shebang = &job->program.shebang;

	job->program.python_options = xcalloc(shebang->options.n + 1,
	                                      sizeof(*job->program.python_options));
	for (size_t i = 0; i < shebang->options.n; i++)
		job->program.python_options[i] = shebang->options.v[i];
	if (shebang->left_out)
		log_warn("%s: some options of #!%s are ignored: only one-letter options are "
		         "used",
		         job->program.target, shebang->line);
}

static int find_running_python(struct job *job, struct error *err)
{
	struct process_python process;

	if (process_python_find(&process, job->pid, err) < 0)
		return -1;
	job->program.python = process.python;
	return 0;
}

static int find_python(struct job *job, struct error *err)
{
	bool used;

	if (job->options->pid)
		return find_running_python(job, err);

	if (!strcmp(job->program.kind, "script"))
		shebang_read(&job->program.shebang, job->program.target);
	used = uses_shebang(job);
	if (used)
		take_options(job);
	if (python_find(&job->program.python,
	                used ? job->program.shebang.python : job->options->python, true,
	                err) == 0) {
		tell_shebang(job, used);
		return 0;
	}
	if (err->code == ENOENT)
		return -EXIT_NOT_FOUND;
	return err->code == EACCES ? -EXIT_CANNOT_RUN : -1;
}

bool job_wants_gil(const struct job *job)
{
	return job->engines[0]->gil;
}

bool job_wants_stacks(const struct job *job)
{
	return job->options->state_detect || !job_wants_gil(job);
}

int job_find_library(struct job *job, struct error *err)
{
	struct preloading *library = &job->events.library;

	return library->library ? 0 : preloading_check(library, job->program.python, err);
}

/* ---- engines */

const char *const probes_kind_names[] = { "auto", "uprobes", "preload", "both", "none", NULL };

/* In the order in which they are tried. */
static const struct engine *const *preferences(const struct record_options *options)
{
	static const struct engine *const started[][4] = {
		[PROBES_AUTO] = { &engine_uprobes, &engine_library, &engine_samples },
		[PROBES_UPROBES] = { &engine_uprobes },
		[PROBES_PRELOAD] = { &engine_library },
		[PROBES_BOTH] = { &engine_both },
		[PROBES_NONE] = { &engine_samples },
	};
	static const struct engine *const running[][4] = {
		[PROBES_AUTO] = { &engine_uprobes, &engine_join, &engine_samples },
		[PROBES_UPROBES] = { &engine_uprobes },
		[PROBES_PRELOAD] = { &engine_join },
		[PROBES_BOTH] = { NULL }, /* refused */
		[PROBES_NONE] = { &engine_samples },
	};
	static const struct engine *const without_gil[] = { &engine_states, NULL };

	if (options->no_gil_detect && options->probes != PROBES_NONE)
		return without_gil;
	return options->pid ? running[options->probes] : started[options->probes];
}

bool engine_has_others(const struct job *job)
{
	return job->engines[1];
}

/* The flight recorder has no use for perf, whose data has no end. */
static bool uses_perf(const struct job *job, bool perf_works)
{
	struct error ignored;

	switch (job->engines[0]->perf) {
	case ENGINE_WITH_PERF:
		return true;
	case ENGINE_WITH_PERF_IF_PERMITTED:
		return perf_works && !job->options->flight_ns && job->host.version &&
		       perf_try_self(&ignored) == 0;
	default:
		return false;
	}
}

/* Tries the first engine of the list. */
static int use_engine(struct job *job, bool perf_works, struct error *err)
{
	if (job->engines[0]->check(job, err) < 0)
		return -1;
	job->events.perf = uses_perf(job, perf_works);
	return 0;
}

int job_change_engine(struct job *job, struct error *err)
{
	const struct engine *now = job->engines[0];
	const bool perf_works = err->code != ECHILD;
	CLEANUP(str_done) struct str reasons = { 0 };
	struct error why;

	if (!engine_has_others(job))
		return -1;
	uprobes_release(take(job->events.uprobes));
	job->then = NULL;
	if (now->perf == ENGINE_WITH_PERF_IF_PERMITTED && job->events.perf && !perf_works) {
		log_info("the report does not say when threads ran: %s", err->text);
		job->events.perf = false;
		return 0;
	}
	str_addf(&reasons, "%s%s", now->failed, err->text);
	for (job->engines++; use_engine(job, perf_works, &why) < 0; job->engines++) {
		if (!engine_has_others(job))
			return -1;
		str_addf(&reasons, "; nor can %s: %s", job->engines[0]->name, why.text);
	}
	/* For a free-threaded build, the library takes no other's place. */
	if (job->program.python->free_threaded && now->perf == ENGINE_WITH_PERF)
		log_debug("%s", str_get(&reasons));
	else
		log_info("%s%s", job->engines[0]->instead, str_get(&reasons));
	return 0;
}

/* Finds the limits of perf and the host while the interpreter is asked. */
struct host_search {
	struct perf_limits *host;
	struct error err;
	int status;
	pthread_t thread;
	bool threaded;
};

static void *find_host(void *data)
{
	struct host_search *search = data;

	search->status = perf_limits_find(search->host, &search->err);
	return NULL;
}

static int find_python_and_host(struct job *job, struct error *err)
{
	struct host_search search = { .host = &job->host };
	int ret;

	if (!job->engines[0]->gil && job->engines[0]->perf == ENGINE_WITHOUT_PERF)
		return find_python(job, err);
	search.threaded = thread_start(&search.thread, find_host, &search) == 0;
	ret = find_python(job, err);
	if (search.threaded)
		pthread_join(search.thread, NULL);
	else if (ret == 0)
		find_host(&search);
	if (search.status < 0)
		job->no_perf = search.err;
	return ret;
}

/* Refuses options that need the library to record calls. */
static int check_filters(const struct job *job, struct error *err)
{
	const struct record_options *options = job->options;

	if ((!options->trace_only && !options->trace_min_us && !options->trace_c_calls) ||
	    job->program.python_trace == PYTHON_TRACE_NATIVE)
		return 0;
	return error_set(err, EINVAL, "option --trace-%s: needs --python-trace native",
	                 options->trace_only     ? "only"
	                 : options->trace_min_us ? "min-us"
	                                         : "c-calls");
}

static int choose_viztracer(struct job *job, struct error *err)
{
	struct python *python = job->program.python;
	CLEANUP(free) char *advice = NULL;

	job->program.python_trace = PYTHON_TRACE_VIZTRACER;
	python_find_viztracer(python, true);
	if (python->viztracer)
		return 0;
	advice = python_viztracer_advice(python);
	return error_set(err, ENOENT, "%s has no VizTracer: %s", python->command, advice);
}

/* Prefers the library; VizTracer may work in programs that cannot load it. */
static int choose_python_trace(struct job *job, struct error *err)
{
	const unsigned wanted = job->options->python_trace;

	job->program.python_trace = PYTHON_TRACE_NONE;
	/* Samples alone must not slow the program. */
	if (wanted == PYTHON_TRACE_NONE ||
	    (wanted == PYTHON_TRACE_AUTO && (job->engines[0]->samples || job->options->flight_ns)))
		return 0;
	if (wanted == PYTHON_TRACE_VIZTRACER)
		return choose_viztracer(job, err);
	if (job_find_library(job, err) == 0) {
		job->program.python_trace = PYTHON_TRACE_NATIVE;
		return 0;
	}
	if (wanted == PYTHON_TRACE_NATIVE)
		return error_prefix(err, "--python-trace native");
	python_find_viztracer(job->program.python, true);
	if (job->program.python->viztracer)
		return choose_viztracer(job, err);
	log_info("no Python calls in the report: %s", err->text);
	return 0;
}

int job_find_probes(struct job *job, struct error *err)
{
	if (job->events.sought)
		return job->events.probes ? 0 : -1;
	job->events.sought = true;
	return resolve_probes_again(&job->events.probes, job->program.python, job->options->frames,
	                            err);
}

/* The one that may take over while the program runs. */
static const struct engine *find_successor(struct job *job)
{
	const struct engine *then = job->engines[0]->then;
	struct error ignored;

	return then && engine_has_others(job) && !job->options->pid &&
	                       then->check(job, &ignored) == 0
	               ? then
	               : NULL;
}

int job_prepare_engine(struct job *job, struct error *err)
{
	while (job->engines[0]->prepare && job->engines[0]->prepare(job, err) < 0)
		if (err->code == EINTR || job_change_engine(job, err) < 0)
			return -1;
	job->then = find_successor(job);
	return 0;
}

int job_find_program(struct job *job, char *const *argv, struct error *err)
{
	int ret = find_target(job, argv, err);

	return ret < 0 ? ret : find_python(job, err);
}

/* Our part of the program runs below it. The library hides its frames, if it can be loaded and knows where
 * they are. */
static char *plan_stack(const struct python *python)
{
	CLEANUP(probedef_free) struct probedef *def = NULL;
	struct preloading library = { 0 };
	struct error ignored;
	char *ret;

	if (probedef_find(&def, python, &ignored) < 0 || !def->has_frame ||
	    preloading_check(&library, python, &ignored) < 0)
		return NULL;
	ret = xasprintf("%u.%u %u %d %s", def->layout.major, def->layout.minor,
	                def->layout.frame[FRAME_CURRENT],
	                def->layout.frame[FRAME_CURRENT2] == PYTHON_NO_OFFSET
	                        ? -1
	                        : (int)def->layout.frame[FRAME_CURRENT2],
	                library.library);
	preloading_done(&library);
	return ret;
}

int job_prepare(struct job *job, char *const *argv, struct error *err)
{
	const struct opt_list *events = &job->options->events;
	int ret = find_target(job, argv, err);

	job->engines = preferences(job->options);
	job->events.counters = xcalloc(events->n + 1, sizeof(*job->events.counters));
	for (unsigned i = 0; i < events->n; i++)
		job->events.counters[i] = events->v[i];
	if (ret < 0 || (ret = find_python_and_host(job, err)) < 0)
		return ret;
	if (use_engine(job, true, err) < 0 && job_change_engine(job, err) < 0)
		return -1;
	if (!job->options->pid &&
	    (datadir_find(&job->program.bootstrap, "share/python/bootstrap.py", err) < 0 ||
	     choose_python_trace(job, err) < 0 || check_filters(job, err) < 0))
		return -1;
	if (!job->options->pid)
		job->program.stack = plan_stack(job->program.python);
	return 0;
}

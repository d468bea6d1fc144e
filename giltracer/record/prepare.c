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
#include "system/sandbox.h"

/* python, python3.11, /usr/bin/python3 */
static bool names_python(const char *script)
{
	const char *slash = strrchr(script, '/');
	const char *name = slash ? slash + 1 : script;

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
	return !job->options->no_gil_detect && !job->events.unknown_build &&
	       !job->events.samples_only;
}

bool job_wants_stacks(const struct job *job)
{
	return job->options->state_detect || !job_wants_gil(job);
}

/* The library works without perf, but only perf knows when threads run. */
static void find_beside(struct job *job)
{
	struct error ignored;

	job->events.beside = job->host.version && perf_try_self(&ignored) == 0;
}

/* Prepares for a running program to load the library. */
static int prepare_joining(struct job *job, struct error *err)
{
	CLEANUP(target_close) struct target *target = NULL;
	struct preloading preloading = { 0 };

	if (target_open(&target, job->pid, err) < 0 || joining_check(target, err) < 0 ||
	    preloading_check(&preloading, job->program.python, err) < 0)
		return -1;
	job->events.preloading = preloading;
	return 0;
}

/* Without uprobes, the library records the GIL. */
static int by_library(struct job *job, bool perf_works, struct error *err)
{
	if (job->options->pid)
		return prepare_joining(job, err);
	if (preloading_check(&job->events.preloading, job->program.python, err) < 0)
		return -1;
	if (perf_works)
		find_beside(job);
	return 0;
}

int job_change_engine(struct job *job, struct error *err)
{
	const bool perf_works = err->code != ECHILD;
	struct error why;

	if (job->options->probes != PROBES_AUTO || !job_wants_gil(job))
		return -1;
	uprobes_release(take(job->events.uprobes));
	if (job->events.beside && !perf_works) {
		log_info("the report does not say when threads ran: %s", err->text);
		job->events.beside = false;
		return 0;
	}
	if (!job_uses_uprobes(job)) {
		log_info("samples of the stacks instead of GIL events: %s", err->text);
	} else if (by_library(job, perf_works, &why) == 0) {
		log_info("GIL events by a %s (--probes preload), because uprobes cannot be used: "
		         "%s",
		         job->options->pid ? "library that the program loads" : "preloaded library",
		         err->text);
		return 0;
	} else {
		log_info("samples of the stacks instead of GIL events: uprobes cannot be used: "
		         "%s; nor can the library: %s",
		         err->text, why.text);
	}
	preloading_done(&job->events.preloading);
	job->events.beside = false;
	job->events.samples_only = true;
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

	if (job->events.samples_only)
		return find_python(job, err);
	search.threaded = thread_start(&search.thread, find_host, &search) == 0;
	ret = find_python(job, err);
	if (search.threaded)
		pthread_join(search.thread, NULL);
	else if (ret == 0)
		find_host(&search);
	if (ret == 0 && search.status < 0 && job->options->probes != PROBES_PRELOAD) {
		*err = search.err;
		ret = job_change_engine(job, err);
	}
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
	const struct python *python = job->program.python;
	CLEANUP(free) char *advice = NULL;

	job->program.python_trace = PYTHON_TRACE_VIZTRACER;
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
	    (wanted == PYTHON_TRACE_AUTO && (job->events.samples_only || job->options->flight_ns)))
		return 0;
	if (wanted == PYTHON_TRACE_VIZTRACER)
		return choose_viztracer(job, err);
	if (preloading_check_gil(&job->events.calls, job->program.python, err) == 0) {
		job->program.python_trace = PYTHON_TRACE_NATIVE;
		return 0;
	}
	if (wanted == PYTHON_TRACE_NATIVE)
		return error_prefix(err, "--python-trace native");
	if (job->program.python->viztracer)
		return choose_viztracer(job, err);
	log_info("no Python calls in the report: %s", err->text);
	return 0;
}

/* Adds to the error how to get the permission, in the words of giltracer check. */
static int denied(bool roots, const char *instead, struct error *err)
{
	CLEANUP(free) char *remedy = sandbox_remedy(roots);
	CLEANUP(free) char *text = xasprintf("%s -> %s%s", err->text, remedy, instead);

	return error_set(err, err->code, "%s", text);
}

/* The kernel is asked, not perf: perf may continue without a refused event and record nothing. */
static int place_probes(struct job *job, struct error *err)
{
	if (uprobes_prepare(job->events.probes, &job->events.uprobes, err) == 0 &&
	    perf_try_event(job->events.probes->group, job->events.probes->probes.v[0].event, err) ==
	            0)
		return 0;
	if (err->code != EINTR && job_change_engine(job, err) == 0)
		return 0;
	if (err->code != EPERM && err->code != EACCES && err->code != ENOENT && err->code != EROFS)
		return -1;
	return denied(true, " (--no-gil-detect works without probes)", err);
}

/* Whether the library may take over if uprobes cost the program too much. */
static bool may_hand_over(struct job *job)
{
	struct error ignored;

	return job->options->probes == PROBES_AUTO && !job->options->pid && job_uses_uprobes(job) &&
	       !job->program.python->free_threaded &&
	       (job->events.calls.library ||
	        preloading_check_gil(&job->events.calls, job->program.python, &ignored) == 0);
}

/* To be called if no probes were found, for the reason in err. Returns 0 for a build whose
 * probes are unknown, which is recorded without them, and -1 with err unchanged for any other. */
static int freethreaded_without_probes(struct job *job, struct error *err)
{
	if (!job->program.python->free_threaded || err->code != ENOTSUP)
		return -1;
	job->events.unknown_build = true;
	log_warn("%s: thread states and the reasons for sleeps are recorded, but not the locks "
	         "that threads wait for",
	         err->text);
	return 0;
}

/*
 * Those of the events, NULL-terminated, that show which import turns the GIL on. They are recorded
 * also before tracing starts, because most imports precede it. The caller frees the array.
 */
static const char **freethreaded_early_events(const char *const *events)
{
	const char **early;
	size_t n = 0;

	while (events[n])
		n++;
	early = xcalloc(n + 1, sizeof(*early));
	n = 0;
	for (; *events; events++)
		if (str_has_suffix(*events, ":gil_module") ||
		    str_has_suffix(*events, ":enable_gil"))
			early[n++] = *events;
	return early;
}

int job_prepare_probes(struct job *job, struct error *err)
{
	int failed;

	if (!job_uses_uprobes(job) && !(job->events.beside && job_wants_stacks(job)))
		return 0;
	failed = resolve_probes(&job->events.probes, job->program.python, job->options->frames,
	                        err);

	/* In the stacks of a stripped interpreter, sleeps for the GIL are identified by the
	 * address of take_gil. Without it, only frames with that name are. */
	if (!job_wants_gil(job) || !job_uses_uprobes(job)) {
		if (failed < 0)
			log_debug("%s", err->text);
		return 0;
	}
	if (failed < 0)
		return freethreaded_without_probes(job, err) == 0 ? 0 : job_change_engine(job, err);
	if (place_probes(job, err) < 0)
		return -1;
	if (job_uses_uprobes(job))
		job->events.early = freethreaded_early_events(uprobes_events(job->events.uprobes));
	job->events.may_hand_over = may_hand_over(job);
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
	ret = xasprintf("%u.%u %u %d %s", def->major, def->minor, def->frame[FRAME_CURRENT],
	                def->frame[FRAME_CURRENT2] == PROBEDEF_NO_OFFSET
	                        ? -1
	                        : (int)def->frame[FRAME_CURRENT2],
	                library.library);
	preloading_done(&library);
	return ret;
}

int job_prepare(struct job *job, char *const *argv, struct error *err)
{
	const struct opt_list *events = &job->options->events;
	int ret = find_target(job, argv, err);

	job->events.samples_only = job->options->probes == PROBES_NONE;
	job->events.counters = xcalloc(events->n + 1, sizeof(*job->events.counters));
	for (unsigned i = 0; i < events->n; i++)
		job->events.counters[i] = events->v[i];
	if (ret < 0 || (ret = find_python_and_host(job, err)) < 0)
		return ret;
	if (!job->options->pid &&
	    (datadir_find(&job->program.bootstrap, "share/python/bootstrap.py", err) < 0 ||
	     choose_python_trace(job, err) < 0 || check_filters(job, err) < 0))
		return -1;
	if (!job->options->pid)
		job->program.stack = plan_stack(job->program.python);
	if (job->options->probes == PROBES_PRELOAD) {
		if (job->options->pid)
			return prepare_joining(job, err);
		if (!job->options->flight_ns)
			find_beside(job);
		return preloading_check(&job->events.preloading, job->program.python, err);
	}
	if (job->options->probes == PROBES_BOTH &&
	    preloading_check(&job->events.preloading, job->program.python, err) < 0)
		return -1;
	if (!job_uses_perf(job) || perf_try_self(err) == 0 || job_change_engine(job, err) == 0)
		return 0;
	return denied(false, "", err);
}

/* SPDX-License-Identifier: MIT */
/* What to run and with what: all that can be refused before anything is started. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/datadir.h"
#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "cmd.h"
#include "launch/around.h"
#include "launch/perfopen.h"
#include "record-job.h"
#include "resolve.h"

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

	/* A FIFO's writer waits for one reader, not for two. */
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && pread(fd, magic, sizeof(magic), 0) == SELFMAG &&
	       !memcmp(magic, ELFMAG, SELFMAG);
}

/* What people write who are used to other tools. */
static int explain(const char *script, int status, struct error *err)
{
	if (cmd_find(script))
		error_set(err, ENOENT,
		          "%s: there is no such script, and a command stands before its options: "
		          "giltracer %s [OPTION]...",
		          script, script);
	else if (names_python(script))
		error_set(err, ENOENT,
		          "%s: which script? giltracer starts Python itself (--python %s, if it "
		          "has to be that one)",
		          script, script);
	else if (status == EXIT_CANNOT_RUN)
		error_set(err, ENOEXEC, "%s: is no Python script", script);
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

static int check_script(const char *script, bool twice, struct error *err)
{
	if (twice && is_pipe(script))
		return error_set(err, EINVAL,
		                 "%s: a pipe can be read once, and --state-detect runs the program "
		                 "twice (--one-run runs it once)",
		                 script);
	if (!strcmp(script, "-")) {
		error_set(err, EINVAL, "a program on standard input cannot be traced");
		return -1;
	}
	if (access(script, R_OK) == 0)
		return is_binary(script) || (names_python(script) && access(script, X_OK) == 0)
		               ? explain(script, EXIT_CANNOT_RUN, err)
		               : 0;
	error_errno(err, "%s", script);
	return err->code == ENOENT || err->code == ENOTDIR ? explain(script, EXIT_NOT_FOUND, err)
	                                                   : -EXIT_CANNOT_RUN;
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
	return check_script(argv[0],
	                    options->state_detect && !options->no_gil_detect && !options->one_run,
	                    err);
}

/* Whether a script would be run by the interpreter of its first line: it says one, the script is a
 * program, and nobody said otherwise. */
static bool uses_shebang(const struct job *job)
{
	const char *venv = getenv("VIRTUAL_ENV");

	return job->shebang.python && !job->options->python && !(venv && *venv) &&
	       access(job->target, X_OK) == 0;
}

/* The file behind all links, and the folder, which is what makes a virtual environment. */
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

/* Two interpreters, or one of them cannot be found. */
static bool differ(const char *a, const char *b)
{
	CLEANUP(free) char *identity_a = identity(a);
	CLEANUP(free) char *identity_b = identity(b);

	return !identity_a || !identity_b || strcmp(identity_a, identity_b) != 0;
}

/* An interpreter that is not the one to be expected is told. */
static void tell_shebang(const struct job *job, bool used)
{
	const struct shebang *shebang = &job->shebang;
	const char *other = used ? NULL : job->options->python;

	if (!shebang->line || (shebang->python && !differ(shebang->python, other)))
		return;
	if (used)
		log_info("%s runs %s, as its first line says (--python for another one)",
		         shebang->python, job->target);
	else
		log_info("the first line of %s, #!%s, does not count: %s runs it", job->target,
		         shebang->line, job->python->command);
}

static void take_options(struct job *job)
{
	const struct shebang *shebang = &job->shebang;

	job->python_options = xcalloc(shebang->options.n + 1, sizeof(*job->python_options));
	for (size_t i = 0; i < shebang->options.n; i++)
		job->python_options[i] = shebang->options.v[i];
	if (shebang->left_out)
		log_warn("%s: some options of #!%s are not used: only those of one letter are",
		         job->target, shebang->line);
}

static int find_python(struct job *job, struct error *err)
{
	bool used;

	if (!job->options->module)
		shebang_read(&job->shebang, job->target);
	used = uses_shebang(job);
	if (used)
		take_options(job);
	if (python_find(&job->python, used ? job->shebang.python : job->options->python, err) ==
	    0) {
		tell_shebang(job, used);
		return 0;
	}
	if (err->code == ENOENT)
		return -EXIT_NOT_FOUND;
	return err->code == EACCES ? -EXIT_CANNOT_RUN : -1;
}

/* What perf and the host can do is found out while the interpreter is asked. */
struct host_search {
	struct perf_host *host;
	struct error err;
	int status;
	pthread_t thread;
	bool threaded;
};

static void *find_host(void *data)
{
	struct host_search *search = data;

	search->status = perf_host_find(search->host, &search->err);
	return NULL;
}

static int find_python_and_host(struct job *job, struct error *err)
{
	struct host_search search = { .host = &job->host };
	int ret;

	search.threaded = thread_start(&search.thread, find_host, &search) == 0;
	ret = find_python(job, err);
	if (search.threaded)
		pthread_join(search.thread, NULL);
	else if (ret == 0)
		find_host(&search);
	if (ret == 0 && search.status < 0) {
		*err = search.err;
		ret = -1;
	}
	return ret;
}

static int choose_python_trace(struct job *job, struct error *err)
{
	const struct python *python = job->python;
	CLEANUP(free) char *advice = NULL;

	job->python_traced = job->options->python_trace != PYTHON_TRACE_NONE && python->viztracer;
	if (python->viztracer || job->options->python_trace == PYTHON_TRACE_NONE)
		return 0;
	advice = python_viztracer_advice(python);
	if (job->options->python_trace == PYTHON_TRACE_VIZTRACER)
		return error_set(err, ENOENT, "%s has no VizTracer: %s", python->command, advice);
	log_info("no Python calls in the report: VizTracer is not there (%s)", advice);
	return 0;
}

bool job_wants_gil(const struct job *job)
{
	return !job->options->no_gil_detect && !job->unknown_build;
}

bool job_wants_stacks(const struct job *job)
{
	return job->options->state_detect || !job_wants_gil(job);
}

/* What is barred, by which guard, and how to get it: what giltracer check says, too. */
static int denied(const struct job *job, const char *instead, struct error *err)
{
	CLEANUP(free) char *remedy = around_remedy(job->python->command, job->options->frames);
	CLEANUP(free) char *text = xasprintf("%s -> %s%s", err->text, remedy, instead);

	return error_set(err, err->code, "%s", text);
}

/* perf would find a way around the refusal, and then record nothing: so the kernel is asked. */
static int place_probes(struct job *job, struct error *err)
{
	if (uprobes_prepare(job->probes, &job->uprobes, err) == 0 &&
	    perf_try_event(job->probes->group, job->probes->probes.v[0].event, err) == 0)
		return 0;
	if (err->code != EPERM && err->code != EACCES && err->code != ENOENT && err->code != EROFS)
		return -1;
	return denied(job, " (--no-gil-detect does without probes)", err);
}

/* Only what a free-threaded build has instead of a GIL can be done without: states remain. */
static int without_probes(struct job *job, struct error *err)
{
	if (!job->python->free_threaded || err->code != ENOTSUP)
		return -1;
	job->unknown_build = true;
	log_warn("%s: what its threads do and why they sleep is recorded, not for which locks",
	         err->text);
	return 0;
}

/* Which import turns the GIL on: most are done before tracing starts. */
static void find_early(struct job *job)
{
	const char *const *events = uprobes_events(job->uprobes);
	size_t n = 0;

	while (events[n])
		n++;
	job->early = xcalloc(n + 1, sizeof(*job->early));
	n = 0;
	for (; *events; events++)
		if (str_has_suffix(*events, ":gil_module") ||
		    str_has_suffix(*events, ":enable_gil"))
			job->early[n++] = *events;
}

int job_prepare_probes(struct job *job, struct error *err)
{
	int failed = resolve_probes(&job->probes, job->python, job->options->frames, err);

	/* Where take_gil is tells sleeps for the GIL from others in the stacks of a stripped
	 * interpreter. Where that cannot be found out, they are told by its name alone. */
	if (!job_wants_gil(job)) {
		if (failed < 0)
			log_debug("%s", err->text);
		return 0;
	}
	if (failed < 0)
		return without_probes(job, err);
	if (place_probes(job, err) < 0)
		return -1;
	find_early(job);
	return 0;
}

int job_prepare(struct job *job, char *const *argv, struct error *err)
{
	const struct opt_list *events = &job->options->events;
	int ret = find_target(job, argv, err);

	job->counters = xcalloc(events->n + 1, sizeof(*job->counters));
	for (unsigned i = 0; i < events->n; i++)
		job->counters[i] = events->v[i];
	if (ret < 0 || (ret = find_python_and_host(job, err)) < 0)
		return ret;
	if (datadir_find(&job->bootstrap, "share/python/bootstrap.py", err) < 0 ||
	    choose_python_trace(job, err) < 0)
		return -1;
	return perf_try_self(err) < 0 ? denied(job, "", err) : 0;
}

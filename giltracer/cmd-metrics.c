/* SPDX-License-Identifier: MIT */
/* giltracer metrics, and --metrics: serve the metrics of running programs, or of one that is
 * started. */
#include "cmd-metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/opts.h"
#include "base/vec.h"
#include "cmd.h"
#include "live/totals.h"
#include "metrics/autorecord.h"
#include "metrics/exposition.h"
#include "metrics/serve.h"
#include "metrics/watch.h"
#include "preload/totals.h"
#include "record/group_signals.h"
#include "record/job.h"
#include "record/library.h"
#include "record/observer.h"
#include "record/record.h"
#include "session/temp_session.h"

/* ---- a program with the library counting (preload/totals.h), without a recording */

/* A program to be counted. { 0 } is empty. */
struct counted_program {
	struct job *job;
	uint64_t stamp, ns; /* both clocks when the program was prepared */
};

/* Find the program, the interpreter and the library. Returns 0, or as the run_counted function of a
 * command. */
static int counting_prepare(struct counted_program *ret, const struct record_options *options,
                            char *const *argv, struct error *err)
{
	int failed;

	ret->job = xcalloc(1, sizeof(*ret->job));
	ret->job->options = options;
	ticks_look(&ret->stamp, &ret->ns);
	failed = job_find_program(ret->job, argv, err);
	if (failed < 0)
		return failed;
	return job_find_library(ret->job, err);
}

/* ---- the program */

/* The caller frees the array, but not its strings. */
static const char **argv_of(const struct job *job)
{
	VEC(const char *) args = { 0 };

	*vec_push(&args) = job->program.python->command;
	for (const char *const *option = job->program.python_options; option && *option; option++)
		*vec_push(&args) = *option;
	if (job->program.option)
		*vec_push(&args) = job->program.option;
	*vec_push(&args) = job->program.target;
	for (char *const *arg = job->program.argv; *arg; arg++)
		*vec_push(&args) = *arg;
	*vec_push(&args) = NULL;
	return args.v;
}

/* A signal to the whole group has reached the program already; one to giltracer alone is passed
 * on. */
static void pass_on(struct child *program, struct group_signals *group,
                    const struct signals *signals)
{
	struct signalfd_siginfo info;

	while (read(signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int signal = (int)info.ssi_signo;

		if (signal != SIGCHLD && !group_signals_saw(group, signal) && !child_ended(program))
			kill(program->pid, signal);
	}
}

static void watch_counted(struct child *program, struct group_signals *group,
                          const struct signals *signals)
{
	while (!child_ended(program)) {
		struct pollfd fd = { .fd = signals->fd, .events = POLLIN };

		if (poll(&fd, 1, -1) < 0 && errno != EINTR)
			break;
		pass_on(program, group, signals);
	}
	child_wait(program);
}

static int run_counted(const struct counted_program *counting, const char *folder,
                       const struct signals *signals, struct child *program,
                       struct group_signals *group, struct error *err)
{
	const struct job *job = counting->job;
	CLEANUP(free) char *preload = preloading_variable(job->events.library.library);
	CLEANUP(free) char *totals = xasprintf(TOTALS_ENV "=%s", folder);
	CLEANUP(free) const char **argv = argv_of(job);
	char *env[] = { preload, totals, NULL };
	const struct child_spec spec = {
		.file = job->program.python->command,
		.argv = (char *const *)(uintptr_t)argv,
		.env = env,
		.mask = &signals->old,
	};

	if (preloading_write_rate(folder, counting->stamp, counting->ns, err) < 0 ||
	    preloading_write_offsets(folder, err) < 0 || group_signals_start(group, err) < 0)
		return -1;
	if (child_spawn(program, &spec, err) < 0) {
		error_prefix(err, "%s", spec.file);
		return err->code == ENOENT   ? -EXIT_NOT_FOUND
		       : err->code == EACCES ? -EXIT_CANNOT_RUN
		                             : -1;
	}
	watch_counted(program, group, signals);
	return 0;
}

/*
 * Run the program to its end, with pages of totals in folder, an absolute path. The caller has
 * blocked signals; those sent to giltracer alone are passed on to the program. Returns 0, or as the
 * run_counted function of a command.
 */
static int counting_run(const struct counted_program *counting, const char *folder,
                        const struct signals *signals, struct record_outcome *ret,
                        struct error *err)
{
	struct child program = CHILD_NONE;
	struct group_signals group = GROUP_SIGNALS_NONE;
	int failed = run_counted(counting, folder, signals, &program, &group, err);

	*ret = (struct record_outcome){ 0 };
	if (failed == 0 && WIFSIGNALED(program.status))
		ret->signal = WTERMSIG(program.status);
	else if (failed == 0)
		ret->exit_status = WEXITSTATUS(program.status);
	child_done(&program);
	group_signals_done(&group);
	return failed;
}

static void counting_done(struct counted_program *counting)
{
	if (counting->job)
		job_free(counting->job);
	counting->job = NULL;
}

/* ---- reports */

static void say(bool failed, const char *text)
{
	if (failed)
		log_warn("%s", text);
	else
		log_info("%s", text);
}

/* *ret NULL: no reports were requested. */
static int start_reports(struct autorecord **ret, const struct metrics_options *options,
                         struct watch *watch, struct error *err)
{
	*ret = NULL;
	return options->reports.condition
	               ? autorecord_start(ret, &options->reports, watch, say, err)
	               : 0;
}

/* ---- a program that is started here */

/* A folder in memory if there is one: the contents of mapped files on a disk would be written to
 * it. */
static const char *runtime_folder(void)
{
	const char *own = getenv("XDG_RUNTIME_DIR");

	if (own && *own == '/' && access(own, W_OK | X_OK) == 0)
		return own;
	return access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : NULL;
}

/* A program that is counted and served. */
struct served {
	const struct metrics_options *options;
	struct counted_program counting;
	struct listener listener;
	struct signals signals;
};

static int run_served(struct served *served, const char *folder, struct record_outcome *outcome,
                      struct error *err)
{
	struct watch watch = { .label_arguments = served->options->arguments }, watched = { 0 };
	struct server *server = NULL;
	struct autorecord *reports = NULL;
	CLEANUP(free) char *url = xstrdup(served->listener.url);
	int ret = -1;

	watch_add_folder(&watch, folder);
	watch_add_folder(&watched, folder);
	if (server_start(&server, &served->listener, &watch, err) == 0 &&
	    start_reports(&reports, served->options, &watched, err) == 0) {
		log_info("metrics: %s", url);
		ret = counting_run(&served->counting, folder, &served->signals, outcome, err);
	}
	autorecord_stop(reports);
	server_stop(server);
	watch_done(&watch);
	watch_done(&watched);
	return ret;
}

static int run_in_folder(struct served *served, struct error *err)
{
	struct temp_session folder = SCRATCH_NONE;
	const char *base = runtime_folder();
	struct record_outcome outcome;
	struct error ignored;
	int ret;

	if (signals_block(&served->signals, err) < 0)
		return -1;
	ret = base ? temp_session_make_in(&folder, base, err) : temp_session_make(&folder, err);
	if (ret == 0)
		ret = run_served(served, folder.path, &outcome, err);
	if (folder.path && temp_session_remove(&folder, &ignored) < 0)
		log_warn("%s", ignored.text);
	signals_restore(&served->signals);
	return ret < 0 ? ret : record_exit(&outcome);
}

int metrics_run_program(const struct record_options *options, char *const *argv,
                        const struct metrics_options *metrics, struct error *err)
{
	struct served served = { .options = metrics, .listener = LISTENER_NONE };
	int ret = autorecord_check(&metrics->reports, err);

	if (ret == 0)
		ret = listener_open(&served.listener, metrics->address, metrics->anywhere, err);
	if (ret == 0)
		ret = counting_prepare(&served.counting, options, argv, err);
	if (ret == 0)
		ret = run_in_folder(&served, err);
	counting_done(&served.counting);
	listener_done(&served.listener);
	return ret;
}

/* ---- running programs */

/**
 * @pids: of which each one that does not count by itself has an observer, which the watches share
 */
struct served_pids {
	VEC(struct observer *) observers;
	VEC(pid_t) pids;
};

static struct observer *find_observer(const struct served_pids *served, pid_t pid)
{
	for (size_t i = 0; i < served->pids.n; i++)
		if (served->pids.v[i] == pid)
			return served->observers.v[i];
	return NULL;
}

/* A program that does not count by itself loads the library. */
static int add_observed(struct served_pids *served, struct watch *watch, pid_t pid,
                        const struct metrics_options *options, struct error *err)
{
	struct observer *observer = find_observer(served, pid);

	if (!options->address)
		return error_set(err, ENODATA,
		                 "process %d does not count its GIL's time: start it with "
		                 "giltracer --metrics, or give --listen, so that it loads the "
		                 "library",
		                 (int)pid);
	if (!observer) {
		if (observer_open(&observer, pid, err) < 0)
			return -1;
		*vec_push(&served->observers) = observer;
		*vec_push(&served->pids) = pid;
	}
	watch_add_observed(watch, pid, observer_folder(observer), observer_number(observer));
	return 0;
}

static int add_process(struct served_pids *served, struct watch *watch, unsigned pid,
                       const struct metrics_options *options, struct error *err)
{
	int ret;

	if (cmd_python(&pid, err) < 0)
		return -1;
	ret = find_observer(served, (pid_t)pid) ? 1 : watch_add_process(watch, (pid_t)pid, err);
	if (ret == 0 || (ret < 0 && err->code != ENODATA))
		return ret;
	/* To be printed once, the page of another observer is good enough. */
	return ret > 0 && !options->address ? 0
	                                    : add_observed(served, watch, (pid_t)pid, options, err);
}

static int add_processes(struct served_pids *served, struct watch *watch,
                         const struct opt_list *pids, const struct metrics_options *options,
                         struct error *err)
{
	for (unsigned i = 0; i < pids->n; i++) {
		char *end;
		long pid = strtol(pids->v[i], &end, 10);

		if (pid <= 0 || pid > INT32_MAX || *end)
			return error_set(err, EINVAL, "option -p: '%s' is not a process number",
			                 pids->v[i]);
		if (add_process(served, watch, (unsigned)pid, options, err) < 0)
			return -1;
	}
	return 0;
}

static void wait_for_end(const struct served_pids *served)
{
	const struct timespec second = { .tv_sec = 1 };
	sigset_t ending;

	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGHUP);
	sigaddset(&ending, SIGQUIT);
	while (sigtimedwait(&ending, NULL, &second) < 0)
		for (size_t i = 0; i < served->observers.n; i++)
			observer_look(served->observers.v[i]);
}

/* @watched: the same processes, for reports */
static int serve(const struct served_pids *served, struct watch *watch, struct watch *watched,
                 const struct metrics_options *options, struct error *err)
{
	CLEANUP(listener_done) struct listener listener = LISTENER_NONE;
	CLEANUP(server_stop) struct server *server = NULL;
	struct autorecord *reports = NULL;
	int ret;

	if (listener_open(&listener, options->address, options->anywhere, err) < 0)
		return -1;
	ret = server_start(&server, &listener, watch, err);
	if (ret == 0)
		ret = start_reports(&reports, options, watched, err);
	if (ret == 0) {
		log_info("metrics: %s (Ctrl-C ends)", listener.url);
		wait_for_end(served);
	}
	autorecord_stop(reports);
	return ret;
}

static void print_once(struct watch *watch)
{
	CLEANUP(str_done) struct str text = { 0 };

	watch_update(watch);
	exposition_write(&text, watch, EXPOSITION_OPENMETRICS);
	fwrite(str_get(&text), 1, text.len, stdout);
}

/* Handles signals from the start, because the programs stop counting at the end. */
static int run_watch(const struct opt_list *pids, const struct metrics_options *options,
                     struct error *err)
{
	struct watch watch = { .label_arguments = options->arguments }, watched = { 0 };
	struct served_pids served = { 0 };
	struct signals signals;
	int ret;

	if (options->address && signals_block(&signals, err) < 0)
		return -1;
	ret = add_processes(&served, &watch, pids, options, err);
	if (ret == 0 && options->reports.condition)
		ret = add_processes(&served, &watched, pids, options, err);
	if (ret == 0 && options->address)
		ret = serve(&served, &watch, &watched, options, err);
	else if (ret == 0)
		print_once(&watch);
	watch_done(&watch);
	watch_done(&watched);
	for (size_t i = 0; i < served.observers.n; i++)
		observer_close(served.observers.v[i]);
	vec_done(&served.observers);
	vec_done(&served.pids);
	if (options->address)
		signals_restore(&signals);
	return ret;
}

static int run_options(const struct opt_list *pids, const struct metrics_options *options,
                       struct error *err)
{
	if (!pids->n)
		return error_set(err, EINVAL, "option -p PID is missing: the process to watch");
	if (options->reports.condition && !options->address)
		return error_set(err, EINVAL, "option --record-when: needs --listen");
	return autorecord_check(&options->reports, err) < 0 ? -1 : run_watch(pids, options, err);
}

static int metrics_run(int argc, char **argv, struct error *err)
{
	struct opt_list pids = { 0 };
	struct metrics_options options = { .reports = AUTORECORD_OPTIONS_DEFAULT };
	bool help = false;
	const struct opt opts[] = {
		OPT_LIST('p', "pid", "PID", &pids,
		         "a process started with --metrics, and its descendants; with --listen, "
		         "also "
		         "another one, which loads the library; may be repeated"),
		OPT_STR(0, "listen", "ADDR:PORT", &options.address,
		        "serve the metrics there until Ctrl-C; without it, print them once"),
		OPT_FLAG(0, "listen-anywhere", &options.anywhere,
		         "permit listening on all addresses of this host"),
		OPT_FLAG(0, "label-arguments", &options.arguments,
		         "add a label with the arguments of each process"),
		AUTORECORD_OPTS(&options.reports),
		OPT_UINT(0, "duration", "SECONDS", &options.reports.duration_s, 1, 3600,
		         "record for SECONDS for such a report (10)"),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};
	int ret = cmd_options(&cmd_metrics, opts, &help, argc, argv, err);

	if (ret > 0)
		ret = run_options(&pids, &options, err);
	opt_list_done(&pids);
	return ret;
}

const struct cmd cmd_metrics = {
	.name = "metrics",
	.usage = "-p PID... [OPTION]...",
	.summary = "serve metrics of running programs",
	.run = metrics_run,
};

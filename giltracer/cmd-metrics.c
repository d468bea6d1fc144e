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
#include "python/probes.h"
#include "python/process.h"
#include "metrics/autorecord.h"
#include "metrics/exposition.h"
#include "metrics/serve.h"
#include "metrics/uprobe_totals.h"
#include "metrics/watch.h"
#include "preload/totals.h"
#include "record/group_signals.h"
#include "record/job.h"
#include "record/library.h"
#include "record/record.h"
#include "session/temp_session.h"

/* ---- a program with the library counting (preload/totals.h), without a recording */

/* A program to be counted. { 0 } is empty. */
struct counted_program {
	struct job *job;
	uint64_t stamp, ns; /* both clocks when the program was prepared */
};

/* The least time between the two readings of the clocks: the rate is then right to some
 * millionths. */
#define APART_NS (20 * NS_PER_MS)

/* Writes the rate of the processor's counter, which all processes of the program use. */
static int write_rate(const struct counted_program *counting, const char *folder, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/" TOTALS_RATE, folder);
	CLEANUP(close) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	uint64_t stamp, ns, mult;

	ticks_look(&stamp, &ns);
	if (ns - counting->ns < APART_NS) {
		const struct timespec rest = {
			.tv_nsec = (long)(APART_NS - (ns - counting->ns)),
		};

		nanosleep(&rest, NULL);
		ticks_look(&stamp, &ns);
	}
	mult = (uint64_t)(((unsigned __int128)(ns - counting->ns) << 32) /
	                  (stamp - counting->stamp));
	if (fd < 0 || write(fd, &mult, sizeof(mult)) != (ssize_t)sizeof(mult))
		return error_errno(err, "%s", path);
	return 0;
}

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
	return job_find_gil_library(ret->job, err);
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

	if (write_rate(counting, folder, err) < 0 || group_signals_start(group, err) < 0)
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

/* Finds where the GIL is taken and released; fails unless all places are known. */
static int find_probes(struct probe_set **ret, pid_t pid, struct error *err)
{
	CLEANUP(probe_set_free) struct probe_set *set = NULL;
	struct process_python process;

	if (process_python_find(&process, pid, err) < 0)
		return -1;
	if (process.python->free_threaded)
		error_set(err, ENOTSUP,
		          "process %d runs a free-threaded Python, whose GIL has no metrics",
		          (int)pid);
	else
		resolve_probes(&set, process.python, 0, err);
	process_python_done(&process);
	if (!set)
		return -1;
	if (!set->releases_known)
		return error_set(err, ENOTSUP,
		                 "process %d: some of the places where its Python releases the GIL "
		                 "are unknown: start it with giltracer --metrics",
		                 (int)pid);
	*ret = take(set);
	return 0;
}

/* Adds a program that does not count itself: by uprobes, if permitted, as long as it is served. */
static int add_uncounted(struct watch *watch, pid_t pid, const struct metrics_options *options,
                         struct error *err)
{
	struct trigger trigger;
	struct probe_set *set = NULL;
	struct totals *totals;
	struct error ignored;

	if (geteuid() != 0 || !options->address)
		return error_set(err, ENODATA,
		                 "process %d does not count its GIL's time: start it with "
		                 "giltracer --metrics, or %s, to watch it by uprobes",
		                 (int)pid, geteuid() != 0 ? "run this as root" : "give --listen");
	if (options->reports.condition &&
	    trigger_parse(&trigger, options->reports.condition, &ignored) == 0 &&
	    trigger.measure == TRIGGER_KEPT)
		return error_set(
			err, EINVAL,
			"process %d: gil_kept is known only for programs that were started "
			"with giltracer --metrics",
			(int)pid);
	return find_probes(&set, pid, err) < 0 || uprobe_totals_open(&totals, pid, set, err) < 0
	               ? -1
	               : watch_add_totals(watch, totals, pid, err);
}

static int add_process(struct watch *watch, unsigned pid, const struct metrics_options *options,
                       struct error *err)
{
	if (cmd_python(&pid, err) < 0)
		return -1;
	if (watch_add_process(watch, (pid_t)pid, err) == 0)
		return 0;
	return err->code == ENODATA ? add_uncounted(watch, (pid_t)pid, options, err) : -1;
}

static int add_processes(struct watch *watch, const struct opt_list *pids,
                         const struct metrics_options *options, struct error *err)
{
	for (unsigned i = 0; i < pids->n; i++) {
		char *end;
		long pid = strtol(pids->v[i], &end, 10);

		if (pid <= 0 || pid > INT32_MAX || *end)
			return error_set(err, EINVAL, "option -p: '%s' is not a process number",
			                 pids->v[i]);
		if (add_process(watch, (unsigned)pid, options, err) < 0)
			return -1;
	}
	return 0;
}

static void wait_for_end(void)
{
	sigset_t ending;
	int signal;

	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGHUP);
	sigaddset(&ending, SIGQUIT);
	sigwait(&ending, &signal);
}

/* @watched: the same processes, for reports */
static int serve(struct watch *watch, struct watch *watched, const struct metrics_options *options,
                 struct error *err)
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
		wait_for_end();
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

/* Handles signals from the start, because probes must be removed at the end. */
static int run_watch(const struct opt_list *pids, const struct metrics_options *options,
                     struct error *err)
{
	struct watch watch = { .label_arguments = options->arguments }, watched = { 0 };
	struct signals signals;
	int ret;

	if (options->address && signals_block(&signals, err) < 0)
		return -1;
	ret = add_processes(&watch, pids, options, err);
	if (ret == 0 && options->reports.condition)
		ret = add_processes(&watched, pids, options, err);
	if (ret == 0 && options->address)
		ret = serve(&watch, &watched, options, err);
	else if (ret == 0)
		print_once(&watch);
	watch_done(&watch);
	watch_done(&watched);
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
		         "a process started with --metrics, and its descendants; as root with "
		         "--listen, also any other process; may be repeated"),
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
	.summary = "serve metrics of programs that were started with --metrics",
	.run = metrics_run,
};

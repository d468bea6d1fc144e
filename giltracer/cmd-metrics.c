/* SPDX-License-Identifier: MIT */
/* giltracer metrics, and --metrics: serve the metrics of running programs, or of one that is
 * started. */
#include "cmd-metrics.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/opts.h"
#include "cmd.h"
#include "live/totals.h"
#include "metrics/exposition.h"
#include "metrics/serve.h"
#include "metrics/autorecord.h"
#include "metrics/watch.h"
#include "record/counting.h"
#include "record/uprobe_totals.h"
#include "session/temp_session.h"

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
	return access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : temp_session_base();
}

/* A program that is counted and served. */
struct served {
	const struct metrics_options *options;
	struct counting counting;
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
	struct record_outcome outcome;
	struct error ignored;
	int ret;

	if (signals_block(&served->signals, err) < 0)
		return -1;
	ret = temp_session_make_in(&folder, runtime_folder(), err);
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

/* Adds a program that does not count itself: by uprobes, if permitted, as long as it is served. */
static int add_uncounted(struct watch *watch, pid_t pid, const struct metrics_options *options,
                         struct error *err)
{
	struct trigger trigger;
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
	return uprobe_totals_open(&totals, pid, err) < 0
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

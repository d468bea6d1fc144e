/* SPDX-License-Identifier: MIT */
/* Serve the metrics of running programs; and of one that is started for it. */
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
#include "metrics/watch.h"
#include "record/counting.h"
#include "session/temp_session.h"

/* ---- a program that is started */

/* Memory, if there is a place for it: what is written to a disk's file is written to the disk, too.
 */
static const char *runtime_folder(void)
{
	const char *own = getenv("XDG_RUNTIME_DIR");

	if (own && *own == '/' && access(own, W_OK | X_OK) == 0)
		return own;
	return access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : temp_session_base();
}

static int run_served(const struct counting *counting, struct listener *listener,
                      const char *folder, const struct signals *signals,
                      struct record_outcome *outcome, struct error *err)
{
	struct watch watch = { 0 };
	struct server *server = NULL;
	CLEANUP(free) char *url = xstrdup(listener->url);
	int ret = -1;

	watch_add_folder(&watch, folder);
	if (server_start(&server, listener, &watch, err) == 0) {
		log_info("metrics: %s", url);
		ret = counting_run(counting, folder, signals, outcome, err);
	}
	server_stop(server);
	watch_done(&watch);
	return ret;
}

static int run_in_folder(const struct counting *counting, struct listener *listener,
                         struct error *err)
{
	struct temp_session folder = SCRATCH_NONE;
	struct record_outcome outcome;
	struct signals signals;
	struct error ignored;
	int ret;

	if (signals_block(&signals, err) < 0)
		return -1;
	ret = temp_session_make_in(&folder, runtime_folder(), err);
	if (ret == 0)
		ret = run_served(counting, listener, folder.path, &signals, &outcome, err);
	if (folder.path && temp_session_remove(&folder, &ignored) < 0)
		log_warn("%s", ignored.text);
	signals_restore(&signals);
	return ret < 0 ? ret : record_exit(&outcome);
}

int metrics_run_program(const struct record_options *options, char *const *argv,
                        const char *address, bool anywhere, struct error *err)
{
	CLEANUP(listener_done) struct listener listener = LISTENER_NONE;
	struct counting counting = { 0 };
	int ret = listener_open(&listener, address, anywhere, err);

	if (ret == 0)
		ret = counting_prepare(&counting, options, argv, err);
	if (ret == 0)
		ret = run_in_folder(&counting, &listener, err);
	counting_done(&counting);
	return ret;
}

/* ---- programs that run */

static int add_processes(struct watch *watch, const struct opt_list *pids, struct error *err)
{
	for (unsigned i = 0; i < pids->n; i++) {
		char *end;
		long pid = strtol(pids->v[i], &end, 10);

		if (pid <= 0 || pid > INT32_MAX || *end)
			return error_set(err, EINVAL, "option -p: '%s' is no process number",
			                 pids->v[i]);
		if (watch_add_process(watch, (pid_t)pid, err) < 0)
			return -1;
	}
	return 0;
}

static int serve(struct watch *watch, const char *address, bool anywhere, struct error *err)
{
	CLEANUP(listener_done) struct listener listener = LISTENER_NONE;
	CLEANUP(server_stop) struct server *server = NULL;
	struct signals signals;
	sigset_t ending;
	int signal;

	if (listener_open(&listener, address, anywhere, err) < 0 ||
	    signals_block(&signals, err) < 0)
		return -1;
	if (server_start(&server, &listener, watch, err) < 0)
		return -1;
	log_info("metrics: %s (Ctrl-C ends)", listener.url);
	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGHUP);
	sigaddset(&ending, SIGQUIT);
	sigwait(&ending, &signal);
	signals_restore(&signals);
	return 0;
}

static void print_once(struct watch *watch)
{
	CLEANUP(str_done) struct str text = { 0 };

	watch_update(watch);
	exposition_write(&text, watch, EXPOSITION_OPENMETRICS);
	fwrite(str_get(&text), 1, text.len, stdout);
}

static int metrics_run(int argc, char **argv, struct error *err)
{
	struct opt_list pids = { 0 };
	struct watch watch = { 0 };
	const char *address = NULL;
	bool anywhere = false, help = false;
	const struct opt opts[] = {
		OPT_LIST('p', "pid", "PID", &pids,
		         "a process that was started with --metrics, and its descendants; may be "
		         "repeated"),
		OPT_STR(0, "listen", "ADDR:PORT", &address,
		        "serve them there, until Ctrl-C; without it they are printed once"),
		OPT_FLAG(0, "listen-anywhere", &anywhere,
		         "permit an address that stands for all of this host's"),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};
	int ret = cmd_options(&cmd_metrics, opts, &help, argc, argv, err);

	if (ret > 0) {
		ret = pids.n ? add_processes(&watch, &pids, err)
		             : error_set(err, EINVAL,
		                         "option -p PID is missing: the process to look at");
		if (ret == 0 && address)
			ret = serve(&watch, address, anywhere, err);
		else if (ret == 0)
			print_once(&watch);
	}
	watch_done(&watch);
	opt_list_done(&pids);
	return ret;
}

const struct cmd cmd_metrics = {
	.name = "metrics",
	.usage = "-p PID... [OPTION]...",
	.summary = "serve metrics of programs that were started with --metrics",
	.run = metrics_run,
};

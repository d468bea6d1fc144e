/* SPDX-License-Identifier: MIT */
/* The default command: records a program, then makes the report. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd-metrics.h"
#include "cmd.h"
#include "export/export.h"
#include "report/source_lines.h"
#include "report/annotate.h"
#include "report/fail_on.h"
#include "record/record.h"
#include "report/session_report.h"
#include "session/temp_session.h"

/* @metrics: serve these instead of recording; without an address, record */
struct run_options {
	struct record_options record;
	const char *html, *json, *markdown, *keep;
	struct metrics_options metrics;
	const struct report_document *documents;
	size_t document_count;
	unsigned annotate;
	bool confidential;
	struct fail_on fail_on;
	struct without_gil replay;
	const struct whatif_options *without_gil;
};

/* Makes the folder of the session: the one to keep, or a temporary one. */
static int make_folder(char **ret, struct temp_session *scratch, const struct run_options *options,
                       struct error *err)
{
	if (options->keep)
		return record_make_folder(ret, options->keep, err);
	if (temp_session_make(scratch, err) < 0)
		return -1;
	*ret = xstrdup(scratch->path);
	return 0;
}

static void remove_folder(const char *dir, struct temp_session *scratch, bool failed)
{
	struct error err;

	if (scratch->path) {
		if (temp_session_remove(scratch, &err) < 0)
			log_warn("%s", err.text);
	} else if (failed) {
		record_remove_folder(dir);
	}
}

static void report_in_child(const struct run_options *options, const char *dir)
	__attribute__((noreturn));

static void report_in_child(const struct run_options *options, const char *dir)
{
	const struct report_outputs outputs = {
		.confidential = options->confidential,
		.html = options->html,
		.json = options->json,
		.markdown = options->markdown,
		.text = options->record.quiet ? NULL : stderr,
		.documents = options->documents,
		.document_count = options->document_count,
		.annotations = options->annotate == ANNOTATE_GITHUB ? stderr : NULL,
		.without_gil = options->without_gil,
	};
	struct error err;
	int status;

	/* If a reader has closed stdout, that is an error like any other of standard output. */
	signal(SIGPIPE, SIG_IGN);
	status = fail_on_report(&options->fail_on, dir, &outputs, &err);
	if (status < 0) {
		log_error("%s", err.text);
		status = EXIT_GILTRACER;
	}
	if (fflush(stdout) != 0 && status != EXIT_GILTRACER) {
		log_error("standard output: cannot write: %s", strerror(errno));
		status = EXIT_GILTRACER;
	}
	exit(status);
}

/* Waits for the report. A signal that asks us to end stays pending until everything is removed. */
static void wait_report(struct child *child, const struct signals *signals)
{
	struct pollfd ready = { .fd = signals->fd, .events = POLLIN };

	while (!child_ended(child)) {
		int signal = poll(&ready, 1, -1) > 0 ? signals_take(signals) : 0;

		if (!signal)
			continue;
		if (!child_ended(child))
			kill(child->pid, SIGTERM);
		child_wait(child);
		raise(signal);
	}
}

/* Makes the report in a child process with unblocked signals, so that a person can interrupt a
 * long report and the temporary session is removed nevertheless. */
static int report(const struct run_options *options, const char *dir, struct signals *signals,
                  struct error *err)
{
	struct child child = CHILD_NONE;

	/* Signals so far were meant for the program, possibly twice, as was the end of its
	 * terminal. */
	if (signals_take(signals))
		log_info("writing the report (Ctrl-C to skip)");
	fflush(NULL);
	child.pid = fork();
	if (child.pid < 0)
		return error_errno(err, "fork");
	if (child.pid == 0) {
		signals_restore(signals);
		report_in_child(options, dir);
	}
	wait_report(&child, signals);
	if (WIFEXITED(child.status))
		return WEXITSTATUS(child.status);
	if (!signals_ending())
		log_error("the report failed: signal %d", WTERMSIG(child.status));
	else
		log_warn("interrupted: no report was written%s",
		         options->keep ? " (giltracer report writes it from the session)"
		                       : ", and the recording was removed (--keep DIR keeps it)");
	return EXIT_GILTRACER;
}

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

/* Of a program that is idle or hung, where its threads wait tells more than what they did. */
static void print_stacks(const struct run_options *options)
{
	CLEANUP(free) char *pid = xasprintf("%u", options->record.pid);
	char name[] = "stacks", option[] = "-p", *argv[] = { name, option, pid, NULL };
	struct error err;

	if (options->record.quiet || is_stdout(options->html) || is_stdout(options->json) ||
	    is_stdout(options->markdown))
		return;
	for (size_t i = 0; i < options->document_count; i++)
		if (is_stdout(options->documents[i].path))
			return;
	if (cmd_stacks.run(3, argv, &err) < 0)
		log_warn("no stacks: %s", err.text);
}

static int record_and_report(const struct run_options *options, char *const *argv, const char *dir,
                             struct temp_session *scratch, struct signals *signals,
                             struct error *err)
{
	struct record_outcome outcome;
	struct error warning;
	int reported = 0;
	struct record_options record = options->record;
	int ret;

	record.flight_when = options->metrics.reports.condition;
	record.reports = options->metrics.reports.folder;
	record.reports_mib = options->metrics.reports.limit_mib;
	ret = record_session(&record, argv, dir, signals, &outcome, err);

	if (ret == 0 && !options->record.no_source && source_lines_save(dir, &warning) < 0)
		log_warn("%s: the report shows no lines of the program", warning.text);
	if (ret == 0)
		ret = reported = report(options, dir, signals, err);
	if (ret >= 0 && outcome.idle)
		print_stacks(options);
	remove_folder(dir, scratch, ret < 0);
	signals_restore(signals);
	if (ret >= 0 && !reported)
		return record_exit(&outcome);
	record_wait_closing(&outcome);
	return ret;
}

/* Refuses options that have no meaning without a recording. */
static int run_counted(const struct run_options *options, char *const *argv, struct error *err)
{
	struct metrics_options metrics = options->metrics;
	const char *other = options->json                   ? "--json"
	                    : options->markdown             ? "--markdown"
	                    : options->keep                 ? "--keep"
	                    : options->record.pid           ? "-p"
	                    : options->record.state_detect  ? "--state-detect"
	                    : options->record.no_gil_detect ? "--no-gil-detect"
	                    : options->record.entry         ? "--entry"
	                    : options->record.events.n      ? "--event"
	                    : options->fail_on.conditions.n ? "--fail-on"
	                    : options->without_gil          ? "--without-gil"
	                                                    : NULL;

	if (!other && options->record.duration_s && !metrics.reports.condition)
		other = "--duration";
	if (other)
		return error_set(err, EINVAL, "option %s: --metrics records nothing", other);
	metrics.reports.duration_s = options->record.duration_s;
	return metrics_run_program(&options->record, argv, &metrics, err);
}

static int run(const struct run_options *options, char *const *argv, struct error *err)
{
	const struct report_outputs outputs = {
		.html = options->html,
		.json = options->json,
		.markdown = options->markdown,
		.documents = options->documents,
		.document_count = options->document_count,
	};
	CLEANUP(free) char *dir = NULL;
	struct temp_session scratch = SCRATCH_NONE;
	struct signals signals;
	int ret;

	if (options->metrics.address)
		return run_counted(options, argv, err);
	if (options->metrics.reports.condition && !options->record.flight)
		return error_set(err, EINVAL, "option --record-when: needs --metrics or --flight");
	if (report_check_outputs(&outputs, err) < 0 || cmd_check_output(options->html, err) < 0 ||
	    cmd_check_output(options->json, err) < 0 ||
	    cmd_check_output(options->markdown, err) < 0)
		return -1;
	for (size_t i = 0; i < options->document_count; i++)
		if (cmd_check_output(options->documents[i].path, err) < 0)
			return -1;
	if (signals_block(&signals, err) < 0)
		return -1;
	if (make_folder(&dir, &scratch, options, err) == 0)
		return record_and_report(options, argv, dir, &scratch, &signals, err);
	ret = -1;
	signals_restore(&signals);
	return ret;
}

static int run_run(int argc, char **argv, struct error *err)
{
	struct run_options options = {
		.record = RECORD_OPTIONS_DEFAULT(cmd_exists),
		.html = "giltracer.html",
		.metrics.reports = AUTORECORD_OPTIONS_DEFAULT,
	};
	CLEANUP(free) struct report_document *documents = NULL;
	struct opt_list conditions = { 0 }, exports = { 0 };
	bool help = false;
	const struct opt opts[] = {
		OPT_STR('o', "output", "FILE", &options.html,
		        "the report (giltracer.html); - is stdout"),
		OPT_STR(0, "json", "FILE", &options.json,
		        "write the same facts as JSON; - is stdout"),
		OPT_STR(0, "markdown", "FILE", &options.markdown,
		        "write the findings as Markdown; - is stdout"),
		EXPORT_OPT(&exports),
		ANNOTATE_OPT(&options.annotate),
		CONFIDENTIAL_OPT(&options.confidential),
		RECORD_OPTS(&options.record),
		FAIL_ON_OPT(&conditions),
		WITHOUT_GIL_OPTS(&options.replay),
		OPT_STR(0, "keep", "DIR", &options.keep,
		        "keep the session folder, for giltracer report"),
		OPT_STR(0, "metrics", "ADDR:PORT", &options.metrics.address,
		        "record nothing: count, and serve metrics while the program runs"),
		OPT_FLAG(0, "listen-anywhere", &options.metrics.anywhere,
		         "permit listening on all addresses of this host"),
		OPT_FLAG(0, "label-arguments", &options.metrics.arguments,
		         "with metrics: add a label with the arguments of each process"),
		AUTORECORD_OPTS(&options.metrics.reports),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};
	int next = opts_parse(opts, argc, argv, err);
	int ret = -1;

	if (next >= 0 && fail_on_parse(&options.fail_on, &conditions, false, err) == 0 &&
	    export_parse(&documents, &exports, err) == 0 &&
	    without_gil_parse(&options.without_gil, &options.replay, err) == 0) {
		options.documents = documents;
		options.document_count = exports.n;
		record_set_log_level(&options.record);
		ret = help ? cmd_help(&cmd_run, opts) : run(&options, argv + next, err);
	}
	fail_on_done(&options.fail_on);
	opt_list_done(&conditions);
	opt_list_done(&exports);
	opt_list_done(&options.record.events);
	return ret;
}

const struct cmd cmd_run = {
	.name = "",
	.usage = "[OPTION]... SCRIPT|-m MODULE|-c CODE|- [ARG]...",
	.summary = "record a Python program and report which threads held the GIL "
		   "while others waited",
	.run = run_run,
};

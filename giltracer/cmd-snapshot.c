/* SPDX-License-Identifier: MIT */
/* giltracer snapshot: the report of what the flight recorder of a program has now. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/opts.h"
#include "cmd.h"
#include "record/flight.h"
#include "report/session_report.h"
#include "report/source_lines.h"
#include "session/temp_session.h"

static int report(pid_t pid, const char *dir, const struct report_outputs *outputs,
                  struct error *err)
{
	struct error warning;

	if (flight_copy(pid, dir, err) < 0)
		return -1;
	if (source_lines_save(dir, &warning) < 0)
		log_warn("%s: the report shows no lines of the program", warning.text);
	return report_session(dir, outputs, err);
}

static int report_kept(pid_t pid, const char *keep, const struct report_outputs *outputs,
                       struct error *err)
{
	CLEANUP(free) char *dir = NULL;

	return record_make_folder(&dir, keep, err) < 0 ? -1 : report(pid, dir, outputs, err);
}

static int report_scratch(pid_t pid, const struct report_outputs *outputs, struct error *err)
{
	struct temp_session scratch = SCRATCH_NONE;
	struct error ignored;
	int ret;

	if (temp_session_make(&scratch, err) < 0)
		return -1;
	ret = report(pid, scratch.path, outputs, err);
	temp_session_remove(&scratch, &ignored);
	return ret;
}

static int snapshot_run(int argc, char **argv, struct error *err)
{
	struct report_outputs outputs = { .html = "giltracer.html" };
	bool help = false, quiet = false;
	const char *keep = NULL;
	unsigned pid = 0;
	const struct opt opts[] = {
		OPT_UINT('p', "pid", "PID", &pid, 1, INT32_MAX,
		         "the program, or the giltracer that runs it"),
		OPT_STR('o', "output", "FILE", &outputs.html,
		        "the report (giltracer.html); - is stdout"),
		OPT_STR(0, "json", "FILE", &outputs.json,
		        "write the same facts as JSON; - is stdout"),
		CONFIDENTIAL_OPT(&outputs.confidential),
		OPT_STR(0, "keep", "DIR", &keep, "keep the session folder, for giltracer report"),
		OPT_FLAG('q', "quiet", &quiet, "print errors only; no table"),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};
	int go_on = cmd_options(&cmd_snapshot, opts, &help, argc, argv, err);

	if (go_on <= 0)
		return go_on;
	if (!pid)
		return error_set(err, EINVAL, "option -p PID is missing: a program with --flight");
	if (quiet)
		log_set_level(LOG_ERROR);
	else
		outputs.text = !strcmp(outputs.html, "-") ||
		                               (outputs.json && !strcmp(outputs.json, "-"))
		                       ? stderr
		                       : stdout;
	if (report_check_outputs(&outputs, err) < 0 || cmd_check_output(outputs.html, err) < 0 ||
	    cmd_check_output(outputs.json, err) < 0)
		return -1;
	return keep ? report_kept((pid_t)pid, keep, &outputs, err)
	            : report_scratch((pid_t)pid, &outputs, err);
}

const struct cmd cmd_snapshot = {
	.name = "snapshot",
	.usage = "-p PID [OPTION]...",
	.summary = "write the report of the last seconds of a program with --flight, which goes on",
	.run = snapshot_run,
};

/* SPDX-License-Identifier: MIT */
/* giltracer record: runs a Python program and leaves a session folder. */
#include <errno.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd.h"
#include "record/record.h"
#include "report/source_lines.h"

/* The session's path is absolute, because the program may change its folder before VizTracer
 * saves. */
static int record_into(const struct record_options *options, char *const *argv, const char *dir,
                       struct error *err)
{
	CLEANUP(free) char *absolute = NULL;
	struct record_outcome outcome;
	struct error warning;
	struct signals signals;
	int ret;

	if (record_make_folder(&absolute, dir, err) < 0 || signals_block(&signals, err) < 0)
		return -1;
	ret = record_session(options, argv, absolute, &signals, &outcome, err);
	if (ret == 0 && !options->no_source && source_lines_save(absolute, &warning) < 0)
		log_warn("%s: the report will show no lines of the program", warning.text);
	if (ret < 0)
		record_remove_folder(absolute);
	signals_restore(&signals);
	if (ret < 0)
		return ret;
	log_info("session in %s (giltracer report %s)", dir, dir);
	return record_exit(&outcome);
}

static int record_run(int argc, char **argv, struct error *err)
{
	struct record_options options = RECORD_OPTIONS_DEFAULT(cmd_exists);
	const char *dir = NULL;
	bool help = false;
	const struct opt opts[] = {
		OPT_STR('o', "output", "DIR", &dir, "the session folder to create"),
		RECORD_OPTS(&options),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};
	int next = opts_parse(opts, argc, argv, err);
	int ret = -1;

	if (next >= 0) {
		record_set_log_level(&options);
		if (help)
			ret = cmd_help(&cmd_record, opts);
		else if (!dir)
			ret = error_set(err, EINVAL,
			                "option -o DIR is missing: the session folder to create");
		else
			ret = record_into(&options, argv + next, dir, err);
	}
	opt_list_done(&options.events);
	return ret;
}

const struct cmd cmd_record = {
	.name = "record",
	.usage = "-o DIR [OPTION]... SCRIPT|-m MODULE|-c CODE|- [ARG]...",
	.summary = "run a Python program and leave a session folder",
	.run = record_run,
};

/* SPDX-License-Identifier: MIT */
/* giltracer report: session folder -> html, text, json, formats of other tools. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/opts.h"
#include "cmd.h"
#include "export/export.h"
#include "report/annotate.h"
#include "report/fail_on.h"
#include "report/session_report.h"

/* Whether a document goes to stdout, so that the table cannot. */
static bool takes_stdout(const struct report_outputs *outputs)
{
	bool taken = !strcmp(outputs->html, "-") || (outputs->json && !strcmp(outputs->json, "-"));

	for (size_t i = 0; i < outputs->document_count; i++)
		taken |= !strcmp(outputs->documents[i].path, "-");
	return taken;
}

static int make(struct report_outputs *outputs, const char *dir, const struct opt_list *exports,
                bool quiet, unsigned annotate, const struct fail_on *fail_on, struct error *err)
{
	CLEANUP(free) struct report_document *documents = NULL;

	if (export_parse(&documents, exports, err) < 0)
		return -1;
	outputs->documents = documents;
	outputs->document_count = exports->n;
	if (!quiet)
		outputs->text = takes_stdout(outputs) ? stderr : stdout;
	if (annotate == ANNOTATE_GITHUB)
		outputs->annotations = takes_stdout(outputs) ? stderr : stdout;
	if (!dir)
		return error_set(err, EINVAL,
		                 "a session folder is expected (see giltracer report --help)");
	if (report_check_outputs(outputs, err) < 0)
		return -1;
	return fail_on_report(fail_on, dir, outputs, err);
}

static int report_run(int argc, char **argv, struct error *err)
{
	struct report_outputs outputs = { .html = "giltracer.html" };
	bool help = false, verbose = false, quiet = false;
	unsigned annotate = ANNOTATE_NONE;
	struct opt_list exports = { 0 }, conditions = { 0 };
	const struct opt opts[] = {
		OPT_STR('o', "output", "FILE", &outputs.html,
		        "the HTML report (giltracer.html); - is stdout"),
		OPT_STR(0, "json", "FILE", &outputs.json,
		        "write the same facts as JSON; - is stdout"),
		EXPORT_OPT(&exports),
		ANNOTATE_OPT(&annotate),
		FAIL_ON_OPT(&conditions),
		OPT_FLAG('v', "verbose", &verbose, "say more"),
		OPT_FLAG('q', "quiet", &quiet, "print errors only; no table"),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};
	struct fail_on fail_on = { 0 };
	const char *dir = NULL;
	int status = cmd_options_and_folder(opts, argc, argv, &dir, err);

	if (verbose || quiet)
		log_set_level(quiet ? LOG_ERROR : LOG_DEBUG);
	if (status == 0)
		status = fail_on_parse(&fail_on, &conditions, false, err);
	if (status == 0)
		status = help ? cmd_help(&cmd_report, opts)
		              : make(&outputs, dir, &exports, quiet, annotate, &fail_on, err);
	fail_on_done(&fail_on);
	opt_list_done(&conditions);
	opt_list_done(&exports);
	return status;
}

const struct cmd cmd_report = {
	.name = "report",
	.usage = "[OPTION]... DIR",
	.summary = "write the report of a session folder",
	.run = report_run,
};

/* SPDX-License-Identifier: MIT */
/* giltracer report: makes reports of a session: html, text, json, formats of other tools. */
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

/* Whether a document goes to stdout, so that the tables cannot. */
static bool takes_stdout(const struct report_outputs *outputs)
{
	bool taken = !strcmp(outputs->html, "-") ||
	             (outputs->json && !strcmp(outputs->json, "-")) ||
	             (outputs->markdown && !strcmp(outputs->markdown, "-"));

	for (size_t i = 0; i < outputs->document_count; i++)
		taken |= !strcmp(outputs->documents[i].path, "-");
	return taken;
}

/* Values of the options. */
struct request {
	struct report_outputs outputs;
	struct opt_list exports, conditions;
	struct without_gil without_gil;
	unsigned annotate;
	bool verbose, quiet;
};

static int make(struct request *request, const char *dir, const struct fail_on *fail_on,
                struct error *err)
{
	struct report_outputs *outputs = &request->outputs;
	CLEANUP(free) struct report_document *documents = NULL;

	if (export_parse(&documents, &request->exports, err) < 0 ||
	    without_gil_parse(&outputs->without_gil, &request->without_gil, err) < 0)
		return -1;
	outputs->documents = documents;
	outputs->document_count = request->exports.n;
	if (!request->quiet)
		outputs->text = takes_stdout(outputs) ? stderr : stdout;
	if (request->annotate == ANNOTATE_GITHUB)
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
	struct request request = { .outputs = { .html = "giltracer.html" },
		                   .annotate = ANNOTATE_NONE };
	bool help = false;
	const struct opt opts[] = {
		OPT_STR('o', "output", "FILE", &request.outputs.html,
		        "the HTML report (giltracer.html); - is stdout"),
		OPT_STR(0, "json", "FILE", &request.outputs.json,
		        "write the same facts as JSON; - is stdout"),
		OPT_STR(0, "markdown", "FILE", &request.outputs.markdown,
		        "write the findings as Markdown; - is stdout"),
		EXPORT_OPT(&request.exports),
		CONFIDENTIAL_OPT(&request.outputs.confidential),
		ANNOTATE_OPT(&request.annotate),
		FAIL_ON_OPT(&request.conditions),
		WITHOUT_GIL_OPTS(&request.without_gil),
		OPT_FLAG('v', "verbose", &request.verbose, "print more messages"),
		OPT_FLAG('q', "quiet", &request.quiet, "print errors only; no table"),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};
	struct fail_on fail_on = { 0 };
	const char *dir = NULL;
	int status = cmd_options_and_folder(opts, argc, argv, &dir, err);

	if (request.verbose || request.quiet)
		log_set_level(request.quiet ? LOG_ERROR : LOG_DEBUG);
	if (status == 0)
		status = fail_on_parse(&fail_on, &request.conditions, false, err);
	if (status == 0)
		status = help ? cmd_help(&cmd_report, opts) : make(&request, dir, &fail_on, err);
	fail_on_done(&fail_on);
	opt_list_done(&request.conditions);
	opt_list_done(&request.exports);
	return status;
}

const struct cmd cmd_report = {
	.name = "report",
	.usage = "[OPTION]... DIR",
	.summary = "write the report of a session folder",
	.run = report_run,
};

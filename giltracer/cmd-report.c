/* SPDX-License-Identifier: MIT */
/* giltracer report: session folder -> html, text, json, folded stacks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/opts.h"
#include "cmd.h"
#include "report/fail_on.h"
#include "report/session_report.h"

/* The words behind the options: the session's folder, and the FILE of each --folded KIND FILE. */
struct words {
	const char *dir;
	struct opt_list files;
};

static int take_word(struct words *words, const struct opt_list *kinds, const char *word,
                     struct error *err)
{
	if (words->files.n < kinds->n) {
		words->files.v = xreallocarray(words->files.v, kinds->n, sizeof(*words->files.v));
		words->files.v[words->files.n++] = word;
		return 0;
	}
	if (words->dir)
		return error_set(err, EINVAL, "'%s': only one session folder is expected", word);
	words->dir = word;
	return 0;
}

/* Options may stand before and behind the folder. */
static int parse(const struct opt *opts, const struct opt_list *kinds, int argc, char **argv,
                 struct words *words, struct error *err)
{
	for (int at = 0; at < argc;) {
		int next = opts_parse(opts, argc - at, argv + at, err);

		if (next < 0)
			return -1;
		at += next;
		if (at < argc && take_word(words, kinds, argv[at], err) < 0)
			return -1;
	}
	if (words->files.n < kinds->n)
		return error_set(err, EINVAL, "option --folded: %s needs a file",
		                 kinds->v[words->files.n]);
	return 0;
}

static int folded_kind(enum folded_kind *ret, const char *name, struct error *err)
{
	static const char *const names[] = {
		[FOLDED_ON_GIL] = "on-gil",
		[FOLDED_OFF_GIL] = "off-gil",
		[FOLDED_OFF_CPU] = "off-cpu",
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(names[i], name)) {
			*ret = i;
			return 0;
		}
	}
	return error_set(err, EINVAL,
	                 "option --folded: '%s' is not one of on-gil, off-gil, off-cpu", name);
}

static int make(struct report_outputs *outputs, const struct words *words,
                const struct opt_list *kinds, const struct fail_on *fail_on, struct error *err)
{
	CLEANUP(free) struct report_folded_output *folded = xcalloc(kinds->n + 1, sizeof(*folded));

	for (unsigned i = 0; i < kinds->n; i++) {
		if (folded_kind(&folded[i].kind, kinds->v[i], err) < 0)
			return -1;
		folded[i].path = words->files.v[i];
	}
	outputs->folded = folded;
	outputs->folded_count = kinds->n;
	if (!words->dir)
		return error_set(err, EINVAL,
		                 "a session folder is expected (see giltracer report --help)");
	if (report_check_outputs(outputs, err) < 0)
		return -1;
	return fail_on_report(fail_on, words->dir, outputs, err);
}

/* Whether a document goes to stdout, so that the table cannot. */
static bool takes_stdout(const char *html, const char *json, const struct words *words)
{
	bool taken = !strcmp(html, "-") || (json && !strcmp(json, "-"));

	for (unsigned i = 0; i < words->files.n; i++)
		taken |= !strcmp(words->files.v[i], "-");
	return taken;
}

static int report_run(int argc, char **argv, struct error *err)
{
	const char *html = "giltracer.html", *json = NULL;
	bool help = false, verbose = false, quiet = false;
	struct opt_list kinds = { 0 }, conditions = { 0 };
	const struct opt opts[] = {
		OPT_STR('o', "output", "FILE", &html,
		        "the HTML report (giltracer.html); - is stdout"),
		OPT_STR(0, "json", "FILE", &json, "write the same facts as JSON; - is stdout"),
		OPT_LIST(0, "folded", "KIND FILE", &kinds,
		         "write stacks for a flame graph: on-gil, off-gil or off-cpu"),
		FAIL_ON_OPT(&conditions),
		OPT_FLAG('v', "verbose", &verbose, "say more"),
		OPT_FLAG('q', "quiet", &quiet, "print errors only; no table"),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};
	struct report_outputs outputs = { 0 };
	struct words words = { 0 };
	struct fail_on fail_on = { 0 };
	int status = parse(opts, &kinds, argc, argv, &words, err);

	if (verbose || quiet)
		log_set_level(quiet ? LOG_ERROR : LOG_DEBUG);
	outputs.html = html;
	outputs.json = json;
	outputs.text = quiet ? NULL : takes_stdout(html, json, &words) ? stderr : stdout;
	if (status == 0)
		status = fail_on_parse(&fail_on, &conditions, false, err);
	if (status == 0)
		status = help ? cmd_help(&cmd_report, opts)
		              : make(&outputs, &words, &kinds, &fail_on, err);
	fail_on_done(&fail_on);
	opt_list_done(&conditions);
	opt_list_done(&kinds);
	opt_list_done(&words.files);
	return status;
}

const struct cmd cmd_report = {
	.name = "report",
	.usage = "[OPTION]... DIR",
	.summary = "write the report of a session folder",
	.run = report_run,
};

/* SPDX-License-Identifier: MIT */
/* giltracer diff: compares two recordings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/opts.h"
#include "cmd.h"
#include "report/diff_write.h"
#include "report/fail_on.h"
#include "report/json.h"

#define MAX_JSON (256u << 20)

struct options {
	const char *json;
	bool verbose, quiet;
	const char *paths[2];
	unsigned count;
};

/* Reads a session folder, or a document written by --json. */
static int read_side(struct summary *ret, const char *path, struct error *err)
{
	const struct report_outputs outputs = { .summary = ret };
	CLEANUP(free) char *text = NULL;
	struct stat st;
	size_t len;

	*ret = (struct summary){ 0 };
	if (stat(path, &st) < 0)
		return error_errno(err, "%s", path);
	if (S_ISDIR(st.st_mode))
		return report_session(path, &outputs, err);
	if (file_read(&text, &len, path, MAX_JSON, err) < 0)
		return -1;
	return summary_read(ret, text, len, err) < 0 ? error_prefix(err, "%s", path) : 0;
}

static int write_json(const struct diff *diff, const char *path, struct error *err)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };

	if (!strcmp(path, "-")) {
		diff_json(diff, PACKAGE_VERSION, stdout);
		return 0;
	}
	if (filewriter_open(&w, path, err) < 0)
		return -1;
	diff_json(diff, PACKAGE_VERSION, w.out);
	return filewriter_commit(&w, err);
}

static int compare(const struct options *options, const struct fail_on *fail_on,
                   const struct summary *a, const struct summary *b, struct error *err)
{
	bool stdout_taken = options->json && !strcmp(options->json, "-");
	struct diff diff;
	int status = 0;

	diff_init(&diff, a, b);
	if (options->json)
		status = write_json(&diff, options->json, err);
	if (status == 0 && !options->quiet)
		diff_text(&diff, options->verbose, stdout_taken ? stderr : stdout);
	diff_done(&diff);
	return status < 0 ? -1 : fail_on_check(fail_on, a, b);
}

static int run(const struct options *options, const struct opt_list *conditions, struct error *err)
{
	struct fail_on fail_on = { 0 };
	struct summary a = { 0 }, b = { 0 };
	int status = -1;

	if (options->count < 2)
		status = error_set(err, EINVAL,
		                   "two session folders or --json documents are expected (see "
		                   "giltracer diff --help)");
	else if (fail_on_parse(&fail_on, conditions, true, err) == 0 &&
	         read_side(&a, options->paths[0], err) == 0 &&
	         read_side(&b, options->paths[1], err) == 0)
		status = compare(options, &fail_on, &a, &b, err);
	fail_on_done(&fail_on);
	summary_done(&a);
	summary_done(&b);
	return status;
}

/* Parses options before and after the folders. */
static int parse(const struct opt *opts, int argc, char **argv, struct options *options,
                 struct error *err)
{
	for (int at = 0; at < argc;) {
		int next = opts_parse(opts, argc - at, argv + at, err);

		if (next < 0)
			return -1;
		at += next;
		if (at == argc)
			return 0;
		if (options->count == 2)
			return error_set(err, EINVAL, "'%s': only two recordings can be compared",
			                 argv[at]);
		options->paths[options->count++] = argv[at];
	}
	return 0;
}

static int diff_run(int argc, char **argv, struct error *err)
{
	struct options options = { 0 };
	struct opt_list conditions = { 0 };
	bool help = false;
	const struct opt opts[] = {
		OPT_STR(0, "json", "FILE", &options.json,
		        "write the comparison as JSON; - is stdout"),
		FAIL_ON_OPT(&conditions),
		OPT_FLAG('v', "verbose", &options.verbose, "also show small changes"),
		OPT_FLAG('q', "quiet", &options.quiet, "print errors only; no table"),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};
	int status = parse(opts, argc, argv, &options, err);

	if (options.verbose || options.quiet)
		log_set_level(options.quiet ? LOG_ERROR : LOG_DEBUG);
	if (status == 0)
		status = help ? cmd_help(&cmd_diff, opts) : run(&options, &conditions, err);
	opt_list_done(&conditions);
	return status;
}

const struct cmd cmd_diff = {
	.name = "diff",
	.usage = "[OPTION]... A B",
	.summary = "compare two recordings",
	.run = diff_run,
};

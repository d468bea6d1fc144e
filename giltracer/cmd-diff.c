/* SPDX-License-Identifier: MIT */
/* giltracer diff: compares two recordings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/filemap.h"
#include "base/log.h"
#include "base/opts.h"
#include "base/vec.h"
#include "cmd.h"
#include "report/diff_write.h"
#include "report/fail_on.h"
#include "report/json.h"
#include "report/session_report.h"

#define MAX_JSON (256u << 20)

/* Recordings of the program in one state, and their means. */
struct side {
	VEC(const char *) paths;
	struct summary *of, mean;
};

struct options {
	const char *html, *json;
	bool confidential, verbose, quiet;
	struct side a, b;
};

/* Reads a session folder, or a document written by --json. */
static int read_summary(struct summary *ret, const char *path, bool confidential, struct error *err)
{
	const struct report_outputs outputs = { .confidential = confidential, .summary = ret };
	CLEANUP(free) char *text = NULL;
	struct stat st;
	size_t len;

	*ret = (struct summary){ 0 };
	if (stat(path, &st) < 0)
		return error_errno(err, "%s", path);
	if (S_ISDIR(st.st_mode))
		return report_session(path, &outputs, err);
	if (confidential)
		return error_set(err, EINVAL, "%s: --confidential needs session folders", path);
	if (file_read(&text, &len, path, MAX_JSON, err) < 0)
		return -1;
	return summary_read(ret, text, len, err) < 0 ? error_prefix(err, "%s", path) : 0;
}

static int read_recordings(struct side *side, bool confidential, struct error *err)
{
	side->of = xcalloc(side->paths.n, sizeof(*side->of));
	for (size_t i = 0; i < side->paths.n; i++)
		if (read_summary(&side->of[i], side->paths.v[i], confidential, err) < 0)
			return -1;
	summary_join(&side->mean, side->of, side->paths.n);
	return 0;
}

static void side_done(struct side *side)
{
	for (size_t i = 0; side->of && i < side->paths.n; i++)
		summary_done(&side->of[i]);
	free(side->of);
	summary_done(&side->mean);
	vec_done(&side->paths);
}

/* The recording to show: of several, that with the median of the fact that the verdict is about. */
static const char *median(const struct side *side, enum fact fact)
{
	for (size_t i = 0; i < side->paths.n; i++) {
		size_t below = 0, equal = 0;

		for (size_t k = 0; k < side->paths.n; k++) {
			below += side->of[k].percent[fact] < side->of[i].percent[fact];
			equal += side->of[k].percent[fact] == side->of[i].percent[fact];
		}
		if (below <= side->paths.n / 2 && below + equal > side->paths.n / 2)
			return side->paths.v[i];
	}
	return side->paths.v[0];
}

static int write_json(const struct diff *diff, FILE *out, struct error *err)
{
	(void)err;
	diff_json(diff, PACKAGE_VERSION, out);
	return 0;
}

/* Writes a page with both recordings. */
static int write_html(const struct diff *diff, const struct options *options, FILE *out,
                      struct error *err)
{
	const char *paths[2] = { median(&options->a, diff->fact), median(&options->b, diff->fact) };
	struct opened *opened[2] = { NULL, NULL };
	struct analysis *of[2] = { NULL, NULL };
	int status = 0;

	for (unsigned i = 0; i < 2 && status == 0; i++) {
		status = session_open(&opened[i], paths[i], options->confidential, err);
		if (status == 0)
			of[i] = analysis_new(opened_recording(opened[i]));
	}
	if (status == 0)
		status =
			report_diff_html(&(struct change){ diff, of[0], of[1],
		                                           options->confidential ? "A" : paths[0],
		                                           options->confidential ? "B" : paths[1] },
		                         out, err);
	if (status == 0)
		status = filemap_check_all(err);
	for (unsigned i = 0; i < 2; i++) {
		analysis_free(of[i]);
		session_close(opened[i]);
	}
	return status;
}

static int write_to(const struct diff *diff, const struct options *options, const char *path,
                    bool html, struct error *err)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };
	bool is_stdout = !strcmp(path, "-");
	FILE *out = stdout;
	int status;

	if (!is_stdout && filewriter_open(&w, path, err) < 0)
		return -1;
	if (!is_stdout)
		out = w.out;
	status = html ? write_html(diff, options, out, err) : write_json(diff, out, err);
	return status < 0 || is_stdout ? status : filewriter_commit(&w, err);
}

static int compare(const struct options *options, const struct fail_on *fail_on, struct error *err)
{
	const char *outputs[] = { options->html, options->json };
	bool stdout_taken = false;
	struct diff diff;
	int status = 0;

	diff_init(&diff, &options->a.mean, &options->b.mean);
	for (unsigned i = 0; i < 2; i++)
		if (outputs[i] && status == 0) {
			status = write_to(&diff, options, outputs[i], !i, err);
			stdout_taken |= !strcmp(outputs[i], "-");
		}
	if (status == 0 && !options->quiet)
		diff_text(&diff, options->verbose, stdout_taken ? stderr : stdout);
	if (status == 0 && options->html && strcmp(options->html, "-") != 0) {
		fflush(stdout);
		log_info("both recordings are in %s: open it in a browser", options->html);
	}
	diff_done(&diff);
	return status < 0 ? -1 : fail_on_check(fail_on, &options->a.mean, &options->b.mean);
}

/* A page shows what only session folders have. */
static int check_folders(const struct side *side, struct error *err)
{
	for (size_t i = 0; i < side->paths.n; i++) {
		struct stat st;

		if (stat(side->paths.v[i], &st) < 0)
			return error_errno(err, "%s", side->paths.v[i]);
		if (!S_ISDIR(st.st_mode))
			return error_set(err, EINVAL,
			                 "%s: --output needs session folders (record with --keep)",
			                 side->paths.v[i]);
	}
	return 0;
}

static int run(struct options *options, const struct opt_list *conditions, struct error *err)
{
	struct fail_on fail_on = { 0 };
	int status = -1;

	if (!options->a.paths.n || !options->b.paths.n)
		status = error_set(err, EINVAL,
		                   "two session folders or --json documents are expected (see "
		                   "giltracer diff --help)");
	else if (options->html && options->json && !strcmp(options->html, options->json))
		status = error_set(err, EINVAL, "%s: cannot take two documents", options->html);
	else if (fail_on_parse(&fail_on, conditions, true, err) == 0 &&
	         (!options->html ||
	          (check_folders(&options->a, err) == 0 && check_folders(&options->b, err) == 0)) &&
	         read_recordings(&options->a, options->confidential, err) == 0 &&
	         read_recordings(&options->b, options->confidential, err) == 0)
		status = compare(options, &fail_on, err);
	fail_on_done(&fail_on);
	return status;
}

/* Parses options before, between and after the folders. The first word is that before them. */
static int parse(const struct opt *opts, int argc, char **argv, struct side *side,
                 struct error *err)
{
	for (int at = 0; at < argc;) {
		int next = opts_parse(opts, argc - at, argv + at, err);

		if (next < 0)
			return -1;
		at += next;
		if (at < argc)
			*vec_push(&side->paths) = argv[at];
	}
	return 0;
}

/* "A B", or "A1 A2 A3 -- B1 B2 B3". */
static int parse_sides(const struct opt *opts, int argc, char **argv, struct options *options,
                       struct error *err)
{
	struct side *a = &options->a, *b = &options->b;
	int end = 0;

	while (end < argc && strcmp(argv[end], "--") != 0)
		end++;
	if (parse(opts, end, argv, a, err) < 0 ||
	    (end < argc && parse(opts, argc - end, argv + end, b, err) < 0))
		return -1;
	if (end < argc && a->paths.n)
		return 0;
	if (end < argc) { /* it only ends the options */
		vec_done(&a->paths);
		a->paths.v = b->paths.v;
		a->paths.n = b->paths.n;
		a->paths.alloc = b->paths.alloc;
		memset(&b->paths, 0, sizeof(b->paths));
	}
	if (a->paths.n > 2)
		return error_set(err, EINVAL,
		                 "'%s': put -- between the recordings before and after a change",
		                 a->paths.v[2]);
	if (a->paths.n == 2)
		*vec_push(&b->paths) = a->paths.v[--a->paths.n];
	return 0;
}

static int diff_run(int argc, char **argv, struct error *err)
{
	struct options options = { 0 };
	struct opt_list conditions = { 0 };
	bool help = false;
	const struct opt opts[] = {
		OPT_STR('o', "output", "FILE", &options.html,
		        "write a page with both recordings; - is stdout"),
		OPT_STR(0, "json", "FILE", &options.json,
		        "write the comparison as JSON; - is stdout"),
		FAIL_ON_OPT(&conditions),
		CONFIDENTIAL_OPT(&options.confidential),
		OPT_FLAG('v', "verbose", &options.verbose, "also show small changes"),
		OPT_FLAG('q', "quiet", &options.quiet, "print errors only; no table"),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};
	int status = parse_sides(opts, argc, argv, &options, err);

	if (options.verbose || options.quiet)
		log_set_level(options.quiet ? LOG_ERROR : LOG_DEBUG);
	if (status == 0)
		status = help ? cmd_help(&cmd_diff, opts) : run(&options, &conditions, err);
	opt_list_done(&conditions);
	side_done(&options.a);
	side_done(&options.b);
	return status;
}

const struct cmd cmd_diff = {
	.name = "diff",
	.usage = "[OPTION]... A B | A... -- B...",
	.summary = "compare two recordings",
	.run = diff_run,
};

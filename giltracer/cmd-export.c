/* SPDX-License-Identifier: MIT */
/* giltracer export: session folder -> a format of another tool. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/opts.h"
#include "cmd.h"
#include "export/export.h"

/* The folder; options may stand before and behind it. */
static int parse(const struct opt *opts, int argc, char **argv, const char **dir, struct error *err)
{
	for (int at = 0; at < argc;) {
		int next = opts_parse(opts, argc - at, argv + at, err);

		if (next < 0)
			return -1;
		at += next;
		if (at >= argc)
			break;
		if (*dir)
			return error_set(err, EINVAL, "'%s': only one session folder is expected",
			                 argv[at]);
		*dir = argv[at];
	}
	return 0;
}

static int make(const char *dir, const char *name, const char *path, struct error *err)
{
	struct report_document document = { .path = path };
	const struct report_outputs outputs = { .documents = &document, .document_count = 1 };
	const struct export_format *format;

	if (!dir || !name)
		return error_set(err, EINVAL, "%s is expected (see giltracer export --help)",
		                 dir ? "--format" : "a session folder");
	format = export_find(name, err);
	if (!format)
		return error_prefix(err, "option --format");
	document.write = format->write;
	return report_session(dir, &outputs, err);
}

static void print_formats(void)
{
	printf("\nFormats:\n");
	for (const struct export_format *f = export_formats; f->name; f++)
		printf("  %-25s %s\n", f->name, f->summary);
}

static int export_run(int argc, char **argv, struct error *err)
{
	const char *dir = NULL, *name = NULL, *path = "-";
	bool help = false, verbose = false, quiet = false;
	const struct opt opts[] = {
		OPT_STR('f', "format", "FORMAT", &name, "what to write, see below"),
		OPT_STR('o', "output", "FILE", &path, "where to (standard output)"),
		OPT_FLAG('v', "verbose", &verbose, "say more"),
		OPT_FLAG('q', "quiet", &quiet, "print errors only"),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};

	if (parse(opts, argc, argv, &dir, err) < 0)
		return -1;
	if (verbose || quiet)
		log_set_level(quiet ? LOG_ERROR : LOG_DEBUG);
	if (!help)
		return make(dir, name, path, err);
	cmd_help(&cmd_export, opts);
	print_formats();
	return 0;
}

const struct cmd cmd_export = {
	.name = "export",
	.usage = "--format FORMAT [-o FILE] DIR",
	.summary = "write a session folder in the format of another tool",
	.run = export_run,
};

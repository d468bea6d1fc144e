/* SPDX-License-Identifier: MIT */
/* giltracer export: converts a session to a format of another tool. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/opts.h"
#include "cmd.h"
#include "export/export.h"

static int make(const char *dir, unsigned format, const char *path, bool confidential,
                struct error *err)
{
	const struct report_document document = { export_formats[format].write, path };
	const struct report_outputs outputs = { .confidential = confidential,
		                                .documents = &document,
		                                .document_count = 1 };

	if (!dir || format == EXPORT_FORMAT_COUNT)
		return error_set(err, EINVAL, "%s is expected (see giltracer export --help)",
		                 dir ? "--format" : "a session folder");
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
	const char *dir = NULL, *path = "-", *names[EXPORT_FORMAT_COUNT + 1];
	unsigned format = EXPORT_FORMAT_COUNT;
	bool help = false, verbose = false, quiet = false, confidential = false;
	const struct opt opts[] = {
		OPT_CHOICE('f', "format", "FORMAT", &format, names, "the format, see below"),
		OPT_STR('o', "output", "FILE", &path, "the file to write (standard output)"),
		CONFIDENTIAL_OPT(&confidential),
		OPT_FLAG('v', "verbose", &verbose, "print more messages"),
		OPT_FLAG('q', "quiet", &quiet, "print errors only"),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};

	for (unsigned i = 0; i <= EXPORT_FORMAT_COUNT; i++)
		names[i] = export_formats[i].name;
	if (cmd_options_and_folder(opts, argc, argv, &dir, err) < 0)
		return -1;
	if (verbose || quiet)
		log_set_level(quiet ? LOG_ERROR : LOG_DEBUG);
	return help ? cmd_help(&cmd_export, opts) : make(dir, format, path, confidential, err);
}

const struct cmd cmd_export = {
	.name = "export",
	.usage = "--format FORMAT [-o FILE] DIR",
	.summary = "write a session folder in the format of another tool",
	.run = export_run,
	.help_end = print_formats,
};

/* SPDX-License-Identifier: MIT */
/* giltracer dump: prints recordings of perf or the library as text, for bug reports and tests. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/opts.h"
#include "base/str.h"
#include "cmd.h"
#include "perfdata/print.h"
#include "perfdata/reader.h"
#include "session/session.h"
#include "trace/calls/from_calls.h"
#include "trace/perf/from_perf.h"
#include "trace/preload/from_preload.h"
#include "trace/perf/stacks.h"
#include "trace/print.h"
#include "python/pycode.h"
#include "trace/slices.h"

struct dump {
	bool events, stacks, header, calls, help;
	unsigned limit;
	const char *path;
};

static int dump_records(const struct dump *dump, struct error *err)
{
	CLEANUP(perfdata_close) struct perfdata *pd = NULL;
	struct perfdata_record rec;
	unsigned n = 0;

	if (perfdata_open(&pd, dump->path, err) < 0)
		return -1;
	while ((!dump->limit || n < dump->limit) && perfdata_next(pd, &rec)) {
		if (!dump->header)
			print_record(stdout, perfdata_header(pd), &rec);
		n++;
	}
	if (dump->header)
		print_header(stdout, perfdata_header(pd));
	if (perfdata_cut(pd))
		log_warn("%s: at %#" PRIx64 ": %s; the rest is not shown", dump->path,
		         perfdata_cut(pd)->offset, perfdata_cut(pd)->text);
	return perfdata_check(pd, err);
}

/* In a session's folder, the list of code objects is next to NAME.perf.data. */
static int open_code(struct pycode **ret, const struct dump *dump, struct error *err)
{
	static const char suffix[] = ".perf.data";
	size_t len = strlen(dump->path);
	CLEANUP(free) char *path = NULL;

	if (!dump->stacks || !str_has_suffix(dump->path, suffix))
		return 0;
	path = xasprintf("%.*s.codes", (int)(len - strlen(suffix)), dump->path);
	return access(path, F_OK) == 0 ? pycode_open(ret, path, err) : 0;
}

/* The session that contains the file; NULL: none. */
static int open_session(struct session **ret, const struct dump *dump, struct error *err)
{
	const char *slash = strrchr(dump->path, '/');
	CLEANUP(free)
	char *dir = slash ? xasprintf("%.*s", (int)(slash + 1 - dump->path), dump->path)
	                  : xstrdup(".");
	CLEANUP(free) char *json = xasprintf("%s/session.json", dir);

	return dump->stacks && access(json, F_OK) == 0 ? session_read(ret, dir, err) : 0;
}

/* Prints the events of source, and closes it. */
static int print_events(const struct dump *dump, struct source *source, struct error *err)
{
	struct event ev;
	unsigned n = 0;
	int got = 0;

	while ((!dump->limit || n++ < dump->limit) && (got = source_next(source, &ev, err)) > 0) {
		print_event(stdout, source, &ev);
		print_event_stack(stdout, source, &ev);
	}
	if (got >= 0)
		print_source_stats(stdout, source);
	source_close(source);
	return got < 0 ? -1 : 0;
}

static int dump_perf_events(const struct dump *dump, struct error *err)
{
	CLEANUP(session_free) struct session *session = NULL;
	CLEANUP(pycode_close) struct pycode *code = NULL;
	struct from_perf_options options = { .unwind = dump->stacks };
	struct source *source;

	if (open_code(&code, dump, err) < 0 || open_session(&session, dump, err) < 0)
		return -1;
	options.code = code;
	if (session) {
		/* A stripped interpreter has no symbol for take_gil, but the session has its
		 * address. */
		options.functions = session->functions;
		options.function_count = session->function_count;
		options.build_id = session->build_id;
	}
	if (from_perf_open(&source, dump->path, &options, err) < 0)
		return -1;
	return print_events(dump, source, err);
}

/* Prints the events in a folder of the preload library, whose records cannot be decoded without
 * its logs. */
static int dump_preload(const struct dump *dump, struct error *err)
{
	struct source *source;

	if (from_preload_open(&source, dump->path, NULL, NULL, err) < 0)
		return -1;
	if (!source->stats.bytes) {
		source_close(source);
		return error_set(err, EINVAL,
		                 "%s: not a recording of the preload library, which is gil.preload "
		                 "in a session's folder",
		                 dump->path);
	}
	return print_events(dump, source, err);
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Prints each thread's calls by start time. */
static int dump_calls(const struct dump *dump, struct error *err)
{
	CLEANUP(slices_free) struct slices *slices = NULL;
	const struct from_calls_options options = { 0 };

	if ((is_folder(dump->path) ? from_calls_read(&slices, dump->path, &options, err)
	                           : from_viztracer_read(&slices, dump->path, 0, NULL, err)) < 0)
		return -1;
	for (size_t i = 0; i < slices->thread_count; i++)
		print_calls(stdout, slices, &slices->threads[i]);
	return 0;
}

static int dump_run(int argc, char **argv, struct error *err)
{
	struct dump dump = { 0 };
	const struct opt opts[] = {
		OPT_FLAG('e', "events", &dump.events,
		         "print the events derived from the records, in order of time"),
		OPT_FLAG('s', "stacks", &dump.stacks, "print these events with call stacks"),
		OPT_FLAG('c', "calls", &dump.calls,
		         "print the Python calls of a session's gil.preload or gil.viztracer.json"),
		OPT_FLAG('H', "header", &dump.header, "print the header of the file"),
		OPT_UINT('n', "limit", "COUNT", &dump.limit, 1, UINT32_MAX,
		         "stop after COUNT records or events"),
		OPT_FLAG('h', "help", &dump.help, "show this help"),
		OPT_END,
	};
	CLEANUP(free) char *resolved = NULL;
	struct stat st;
	int first = opts_parse(opts, argc, argv, err);

	if (first < 0)
		return -1;
	if (dump.help)
		return cmd_help(&cmd_dump, opts);
	if (first != argc - 1)
		return error_set(err, EINVAL, "exactly one FILE or FOLDER is expected");
	/* A link that the user names is followed; those in a folder are not. */
	if (lstat(argv[first], &st) == 0 && S_ISLNK(st.st_mode))
		resolved = realpath(argv[first], NULL);
	dump.path = resolved ? resolved : argv[first];
	if (dump.calls)
		return dump_calls(&dump, err);
	if (is_folder(dump.path))
		return dump_preload(&dump, err);
	return dump.events || dump.stacks ? dump_perf_events(&dump, err) : dump_records(&dump, err);
}

const struct cmd cmd_dump = {
	.name = "dump",
	.usage = "[OPTION]... FILE|FOLDER",
	.summary = "show the raw records of a recording, for bug reports",
	.run = dump_run,
};

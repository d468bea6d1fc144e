/* SPDX-License-Identifier: MIT */
/* Record a program into a session folder: what `giltracer record` and `giltracer` have in common.
 */
#ifndef GILTRACER_RECORD_RECORD_H
#define GILTRACER_RECORD_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/opts.h"
#include "base/child.h"
#include "locate/framefetch.h"

/* Who sees the GIL's events: perf by uprobes, or a library inside the program. Both, to compare
 * them: the report is made of perf's. None: samples are all there is. */
enum probes_kind { PROBES_AUTO, PROBES_UPROBES, PROBES_PRELOAD, PROBES_BOTH, PROBES_NONE };

extern const char *const probes_kind_names[];

enum python_trace {
	PYTHON_TRACE_AUTO,
	PYTHON_TRACE_NATIVE,
	PYTHON_TRACE_VIZTRACER,
	PYTHON_TRACE_NONE
};

/* As the option and the session call them; in describe.c. */
extern const char *const python_trace_names[];

/* VizTracer takes its buffer when it starts: 10 million entries are about 640 MB of address space,
 * of which it touches what it fills. */
#define PYTHON_TRACE_ENTRIES 10000000

struct record_options {
	bool state_detect;
	bool no_gil_detect;
	bool one_run;
	bool trace_imports;
	bool verbose, quiet;
	unsigned pid; /* the process to record, which runs already; 0: start a program */
	const char *python;
	const char *module;
	const char *entry;
	const char *imports;
	unsigned probes;       /* enum probes_kind */
	unsigned python_trace; /* enum python_trace */
	unsigned python_trace_entries;
	unsigned trace_min_us;  /* shorter calls are left out */
	bool trace_c_calls;     /* calls of functions in C, too */
	const char *trace_only; /* modules between commas; NULL: all */
	unsigned frames;        /* Python frames that each request fetches */
	unsigned duration_s;    /* 0: until the program ends */
	unsigned max_mib;
	unsigned sample_hz; /* 0: no samples, unless there is nothing else */
	bool gil_only;
	bool no_children; /* the process itself alone */
	struct opt_list events;
	bool (*is_command)(const char *word); /* for the message about a missing script */
};

/* About 40 million GIL events: 1.5 GB of memory for the report, and 250 MB of page. */
#define RECORD_MAX_MIB 4096

#define RECORD_OPTIONS_DEFAULT(is_command_)                                                 \
	{                                                                                   \
		.python_trace_entries = PYTHON_TRACE_ENTRIES, .frames = FRAMEFETCH_DEFAULT, \
		.max_mib = RECORD_MAX_MIB, .is_command = (is_command_)                      \
	}

/* The lines of both option tables. */
#define RECORD_OPTS(o)                                                                         \
	OPT_REST('m', "module", "MODULE", &(o)->module, "run a module, as python -m does"),    \
		OPT_UINT('p', "pid", "PID", &(o)->pid, 1, INT32_MAX,                           \
	                 "record a program that is running, until Ctrl-C or --duration"),      \
		OPT_FLAG(0, "state-detect", &(o)->state_detect,                                \
	                 "also record thread states and why threads sleep; runs the program "  \
	                 "twice"),                                                             \
		OPT_UNFLAG(0, "no-state-detect", &(o)->state_detect,                           \
	                   "record the GIL only (the default)"),                               \
		OPT_FLAG(0, "no-gil-detect", &(o)->no_gil_detect,                              \
	                 "record no GIL events: infer GIL waits from stacks"),                 \
		OPT_CHOICE(0, "probes", "KIND", &(o)->probes, probes_kind_names,               \
	                   "record GIL events by auto, uprobes, preload or none (auto)"),      \
		OPT_UINT(0, "sample", "HZ", &(o)->sample_hz, 1, 10000,                         \
	                 "also read the Python stacks of all threads HZ times a second"),      \
		OPT_FLAG(0, "gil-only", &(o)->gil_only,                                        \
	                 "with --sample, read only the stack of the GIL's holder, if any"),    \
		OPT_FLAG(0, "no-children", &(o)->no_children,                                  \
	                 "with -p, leave out the child processes of PID"),                     \
		OPT_FLAG(0, "one-run", &(o)->one_run,                                          \
	                 "with --state-detect, run the program only once"),                    \
		OPT_STR(0, "python", "PATH", &(o)->python,                                     \
	                "use this interpreter (VIRTUAL_ENV's, the script's, or python3)"),     \
		OPT_CHOICE(0, "python-trace", "KIND", &(o)->python_trace, python_trace_names,  \
	                   "record Python calls by auto, native, viztracer or none (auto)"),   \
		OPT_UINT(0, "python-trace-entries", "COUNT", &(o)->python_trace_entries, 1000, \
	                 2000000000, "keep the last COUNT Python calls (10000000)"),           \
		OPT_STR(0, "trace-only", "MODULES", &(o)->trace_only,                          \
	                "record only calls of functions of these modules and submodules"),     \
		OPT_UINT(0, "trace-min-us", "US", &(o)->trace_min_us, 1, 1000000000,           \
	                 "leave out Python calls that are shorter than US"),                   \
		OPT_FLAG(0, "trace-c-calls", &(o)->trace_c_calls,                              \
	                 "also record calls of functions in C"),                               \
		OPT_UINT(0, "frames", "COUNT", &(o)->frames, 0, FRAMEFETCH_MAX,                \
	                 "fetch COUNT Python frames at each request for the GIL (2)"),         \
		OPT_STR(0, "import", "MODULES", &(o)->imports,                                 \
	                "import these modules (comma-separated) before tracing"),              \
		OPT_STR(0, "entry", "NAME", &(o)->entry,                                       \
	                "trace from the first call of function NAME or MODULE:NAME"),          \
		OPT_FLAG(0, "trace-imports", &(o)->trace_imports,                              \
	                 "trace from the first line, imports included"),                       \
		OPT_UINT(0, "duration", "SECONDS", &(o)->duration_s, 1, 1000000,               \
	                 "record at most SECONDS; the program continues (no limit)"),          \
		OPT_UINT(0, "max-size", "MIB", &(o)->max_mib, 1, 1000000000,                   \
	                 "record at most MIB; the program continues (4096)"),                  \
		OPT_LIST('e', "event", "EVENT", &(o)->events,                                  \
	                 "also count this perf event; may be repeated"),                       \
		OPT_FLAG('v', "verbose", &(o)->verbose, "print more messages"),                \
		OPT_FLAG('q', "quiet", &(o)->quiet, "print errors only")

/**
 * What the program did, and how we should end.
 * @exit_status: the program's, 128 + signal if it died of one
 * @signal: that signal, or 0
 * @failed: a recording failed while the program ran; said already
 * @interrupted: somebody wants us to stop
 * @unloaded: the program did not run, since Python could not load it
 */
struct record_outcome {
	int exit_status;
	int signal;
	bool failed;
	bool interrupted;
	bool unloaded;
};

void record_set_log_level(const struct record_options *options);

/* Make the folder for a session: new, empty, or of an older session, which is removed. *ret is its
 * absolute path, since the program may change its folder; caller frees. */
int record_make_folder(char **ret, const char *dir, struct error *err);

/* Remove a session, the folder too unless there is something else in it. */
void record_remove_folder(const char *dir);

/*
 * Run argv (script and its arguments; the arguments alone with options->module) and leave a session
 * in the existing folder dir, an absolute path. Signals are blocked since the caller has something
 * to remove; one that asks us to end while no program runs is an error, EINTR, and still pending.
 * Returns 0, or as the run function of a command.
 */
int record_session(const struct record_options *options, char *const *argv, const char *dir,
                   const struct signals *signals, struct record_outcome *ret, struct error *err);

/* The exit status to return; does not return if the program died of a signal: then so do we. */
int record_exit(const struct record_outcome *outcome);

#endif

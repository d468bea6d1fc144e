/* SPDX-License-Identifier: MIT */
/* Records a program into a session folder, for `giltracer record` and `giltracer`. */
#ifndef GILTRACER_RECORD_RECORD_H
#define GILTRACER_RECORD_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/child.h"
#include "base/error.h"
#include "base/opts.h"
#include "python/probes.h"
#include "python/probes.h"
#include "python/python.h"
#include "session/session.h"

/* What records the GIL's events: perf by uprobes, or a library inside the program; PROBES_BOTH:
 * both, to compare them, with perf's in the report; PROBES_NONE: neither, only samples. */
enum probes_kind { PROBES_AUTO, PROBES_UPROBES, PROBES_PRELOAD, PROBES_BOTH, PROBES_NONE };

extern const char *const probes_kind_names[];

enum python_trace {
	PYTHON_TRACE_AUTO,
	PYTHON_TRACE_NATIVE,
	PYTHON_TRACE_VIZTRACER,
	PYTHON_TRACE_NONE
};

/* The names in the option and in the session. */
extern const char *const python_trace_names[];

/* LOCKS_ALL: locks of C code, too */
enum locks_kind { LOCKS_PYTHON, LOCKS_ALL };

extern const char *const locks_kind_names[];

/* VizTracer allocates its buffer when it starts: 10 million entries are about 640 MB of address
 * space, of which it touches only what it fills. */
#define PYTHON_TRACE_ENTRIES 10000000

struct record_options {
	bool state_detect;
	bool no_gil_detect;
	bool one_run;
	bool trace_imports;
	bool no_source; /* do not copy lines of the program's files into the session */
	bool verbose, quiet;
	unsigned pid; /* the running process to record; 0: start a program */
	const char *python;
	const char *module, *code;
	const char *entry;
	const char *imports;
	unsigned probes;       /* enum probes_kind */
	unsigned python_trace; /* enum python_trace */
	unsigned python_trace_entries;
	unsigned trace_min_us;   /* omit shorter calls */
	bool trace_c_calls;      /* calls of C functions, too */
	unsigned locks;          /* enum locks_kind */
	const char *trace_only;  /* modules, separated by commas; NULL: all */
	unsigned frames;         /* Python frames to record with each request */
	unsigned duration_s;     /* 0: until the program ends */
	const char *flight;      /* keep the last events only, for this time; NULL: all */
	uint64_t flight_ns;      /* the same, set by record_session */
	const char *flight_when; /* with flight: write a report when this is true; NULL: never */
	const char *reports;     /* the folder of these reports, of at most reports_mib */
	unsigned reports_mib;
	unsigned max_mib;
	unsigned sample_hz; /* 0: no samples, unless nothing else can be recorded */
	bool gil_only;
	bool no_children; /* only the process itself */
	struct opt_list events;
	bool (*is_command)(const char *word); /* for the message about a missing script */
};

/* About 40 million GIL events: the report takes 1.5 GB of memory, and its page 250 MB. */
#define RECORD_MAX_MIB 4096

#define RECORD_OPTIONS_DEFAULT(is_command_)                                                 \
	{                                                                                   \
		.python_trace_entries = PYTHON_TRACE_ENTRIES, .frames = FRAMEFETCH_DEFAULT, \
		.max_mib = RECORD_MAX_MIB, .is_command = (is_command_)                      \
	}

/* The lines of both option tables. */
#define RECORD_OPTS(o)                                                                            \
	OPT_REST('m', "module", "MODULE", &(o)->module, "run a module, as python -m does"),       \
		OPT_REST('c', "command", "CODE", &(o)->code, "run this text, as python -c does"), \
		OPT_UINT('p', "pid", "PID", &(o)->pid, 1, INT32_MAX,                              \
	                 "record a program that is running, until Ctrl-C or --duration"),         \
		OPT_FLAG(0, "state-detect", &(o)->state_detect,                                   \
	                 "also record thread states and why threads sleep; runs the program "     \
	                 "twice"),                                                                \
		OPT_UNFLAG(0, "no-state-detect", &(o)->state_detect,                              \
	                   "record the GIL only (the default)"),                                  \
		OPT_FLAG(0, "no-gil-detect", &(o)->no_gil_detect,                                 \
	                 "record no GIL events: infer GIL waits from stacks"),                    \
		OPT_CHOICE(0, "probes", "KIND", &(o)->probes, probes_kind_names,                  \
	                   "record GIL events by auto, uprobes, preload or none (auto)"),         \
		OPT_UINT(0, "sample", "HZ", &(o)->sample_hz, 1, 10000,                            \
	                 "also read the Python stacks of all threads HZ times a second"),         \
		OPT_FLAG(0, "gil-only", &(o)->gil_only,                                           \
	                 "with --sample, read only the stack of the GIL's holder, if any"),       \
		OPT_FLAG(0, "no-children", &(o)->no_children,                                     \
	                 "with -p, leave out the child processes of PID"),                        \
		OPT_FLAG(0, "one-run", &(o)->one_run,                                             \
	                 "with --state-detect, run the program only once"),                       \
		OPT_STR(0, "python", "PATH", &(o)->python,                                        \
	                "use this interpreter (VIRTUAL_ENV's, the script's, or python3)"),        \
		OPT_CHOICE(0, "python-trace", "KIND", &(o)->python_trace, python_trace_names,     \
	                   "record Python calls by auto, native, viztracer or none (auto)"),      \
		OPT_UINT(0, "python-trace-entries", "COUNT", &(o)->python_trace_entries, 1000,    \
	                 2000000000, "keep the last COUNT Python calls (10000000)"),              \
		OPT_STR(0, "trace-only", "MODULES", &(o)->trace_only,                             \
	                "record only calls of functions of these modules and submodules"),        \
		OPT_UINT(0, "trace-min-us", "US", &(o)->trace_min_us, 1, 1000000000,              \
	                 "leave out Python calls that are shorter than US"),                      \
		OPT_FLAG(0, "trace-c-calls", &(o)->trace_c_calls,                                 \
	                 "also record calls of functions in C"),                                  \
		OPT_CHOICE(0, "locks", "KIND", &(o)->locks, locks_kind_names,                     \
	                   "record waits for locks of python, or of all code (python)"),          \
		OPT_UINT(0, "frames", "COUNT", &(o)->frames, 0, FRAMEFETCH_MAX,                   \
	                 "fetch COUNT Python frames at each request for the GIL (2)"),            \
		OPT_FLAG(0, "no-source", &(o)->no_source,                                         \
	                 "keep the lines of the program's source out of the session"),            \
		OPT_STR(0, "import", "MODULES", &(o)->imports,                                    \
	                "import these modules (comma-separated) before tracing"),                 \
		OPT_STR(0, "entry", "NAME", &(o)->entry,                                          \
	                "trace from the first call of function NAME or MODULE:NAME"),             \
		OPT_FLAG(0, "trace-imports", &(o)->trace_imports,                                 \
	                 "trace from the first line, imports included"),                          \
		OPT_UINT(0, "duration", "SECONDS", &(o)->duration_s, 1, 1000000,                  \
	                 "record at most SECONDS; the program continues (no limit)"),             \
		OPT_STR(0, "flight", "TIME", &(o)->flight,                                        \
	                "keep only the last TIME of the recording, such as 30s or 5m"),           \
		OPT_UINT(0, "max-size", "MIB", &(o)->max_mib, 1, 1000000000,                      \
	                 "record at most MIB; the program continues (4096)"),                     \
		OPT_LIST('e', "event", "EVENT", &(o)->events,                                     \
	                 "also count this perf event; may be repeated"),                          \
		OPT_FLAG('v', "verbose", &(o)->verbose, "print more messages"),                   \
		OPT_FLAG('q', "quiet", &(o)->quiet, "print errors only")

/**
 * The program's end, and how to end ourselves.
 * @exit_status: the program's; 128 + signal if a signal killed it
 * @signal: that signal, or 0
 * @failed: a recording failed while the program ran; already reported
 * @interrupted: a signal asked us to stop
 * @idle: no thread of a process that already ran did anything meanwhile
 * @unloaded: the program did not run, because Python could not load it
 * @closing: the process that removes the probes, see record_exit; 0: none
 */
struct record_outcome {
	int exit_status;
	int signal;
	bool failed;
	bool interrupted;
	bool idle;
	bool unloaded;
	pid_t closing;
};

void record_set_log_level(const struct record_options *options);

/* Make the folder for a session: new, empty, or with an older session, which is removed. *ret is
 * its absolute path, because the program may change its folder; the caller frees it. */
int record_make_folder(char **ret, const char *dir, struct error *err);

/* Remove a session, and its folder unless it contains other files. */
void record_remove_folder(const char *dir);

/*
 * Run argv (script and its arguments; with options->module or code, only the arguments) and leave a session
 * in the existing folder dir, an absolute path. The caller blocks signals, because it has to clean
 * up; a signal that asks us to end while no program runs is the error EINTR, and remains pending.
 * Returns 0, or as the run function of a command.
 */
int record_session(const struct record_options *options, char *const *argv, const char *dir,
                   const struct signals *signals, struct record_outcome *ret, struct error *err);

/* Wait until the probes are removed, if the process that does it would not live longer than we do. */
void record_wait_closing(const struct record_outcome *outcome);

/* The exit status to return, after record_wait_closing. If a signal killed the program, this function
 * does not return but kills us by the same signal. */
int record_exit(const struct record_outcome *outcome);

/* ---- what the session document contains about the interpreter and the host */

/* A session with these; the caller fills in the rest, and frees it with session_free. */
struct session *describe_session(const struct python *python);

/* ---- the probes */

/* As probe_set_resolve. resolve_probes_again: root may get what an earlier call has found, without what is only
 * shown: probe->how, instruction and costs. */
int resolve_probes(struct probe_set **ret, const struct python *python, unsigned frames,
                   struct error *err);
int resolve_probes_again(struct probe_set **ret, const struct python *python, unsigned frames,
                         struct error *err);

#endif

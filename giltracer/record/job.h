/* SPDX-License-Identifier: MIT */
/* One recording, from the options to the session: shared by record.c, prepare.c, the engines
 * and run.c. */
#ifndef GILTRACER_RECORD_JOB_H
#define GILTRACER_RECORD_JOB_H

#include "record/perf.h"
#include "system/perf_access.h"
#include "python/probes.h"
#include "python/python.h"
#include "python/shebang.h"
#include "session/session.h"
#include "system/uprobes.h"
#include "record/engine.h"
#include "record/flight.h"
#include "record/library.h"
#include "record/record.h"

/**
 * What to run, found by job_prepare.
 * @kind: as in share/python/program.py, of @target: script, module, text of -c, or "-"
 * @option: the interpreter's option before it, -m or -c; NULL: none
 * @argv: its arguments
 * @entry: where tracing starts, in the form that share/python/program.py reads
 * @bootstrap: path of the script that the interpreter runs instead of the target
 * @stack: as in struct execution_plan
 * @python_options: of the shebang, NULL-terminated
 * @python_trace: what records Python calls, not PYTHON_TRACE_AUTO
 * @command: the command line of a process that already runs, to which target and argv point; owned
 */
struct job_program {
	const char *kind, *option, *target;
	char *const *argv;
	char *entry, *bootstrap, *stack;
	struct python *python;
	struct shebang shebang;
	const char **python_options;
	enum python_trace python_trace;
	char **command;
};

/**
 * What to record, found by job_prepare_engine; counters by job_prepare.
 * @counters: NULL-terminated
 * @probes: where the GIL's functions are; NULL: not known; @sought: that was tried
 * @uprobes: the probes that are placed; NULL: none
 * @library: can be loaded if .library is set: by the engine, for Python calls, or to take over
 * @perf: perf records
 */
struct job_events {
	const char **counters;
	struct probe_set *probes;
	struct uprobes *uprobes;
	struct preloading library;
	bool perf, sought;
};

/**
 * One recording. The caller sets the first four members; job_describe makes the session, and
 * job_run fills it.
 * @engines: by preference, NULL-terminated; the first is in use
 * @then: takes over from it while the program runs; NULL: none
 */
struct job {
	const struct record_options *options;
	const char *dir;
	const struct signals *signals;
	struct record_outcome *outcome;
	pid_t pid; /* of a running program, see family_python; 0: one is started */
	struct job_program program;
	struct perf_limits host;
	struct error no_perf; /* why host.version is NULL */
	struct job_events events;
	const struct engine *const *engines;
	const struct engine *then;
	struct session *session;
	struct flight_watch watch;
	struct afterwards after;
};

/* Whether to record the GIL, or its counterpart in a free-threaded build. */
bool job_wants_gil(const struct job *job);

/* Whether stacks and states are recorded: on request, or because nothing else can be. */
bool job_wants_stacks(const struct job *job);

/* Find the program, the interpreter, perf and our own files. Whatever can be refused is refused
 * here, before anything starts. Returns 0, or as the run function of a command. */
int job_prepare(struct job *job, char *const *argv, struct error *err);

/* Find only the program and the interpreter. Returns as job_prepare. */
int job_find_program(struct job *job, char *const *argv, struct error *err);

/* Free an allocated job with all its members. NULL is allowed. */
void job_free(struct job *job);

/*
 * The engine cannot record the program, for the reason in *err. Returns 0, with a message, if another one can
 * take its place, or if it can do without perf, which has failed (ECHILD). Otherwise *err stays.
 */
int job_change_engine(struct job *job, struct error *err);

/* Whether the program can load the library; done once. */
int job_find_library(struct job *job, struct error *err);

/* Find the places to probe. Tried once: a second try fails without a message. */
int job_find_probes(struct job *job, struct error *err);

/* Prepare the engine, or one that can take its place. uprobes_release() must follow. */
int job_prepare_engine(struct job *job, struct error *err);

/* Note in the session what the engine records. */
void job_describe_engine(const struct job *job, struct session *session);

/* The session document before the program has run; the caller frees it. */
struct session *job_describe(const struct job *job);

/* Run the program as often as the options ask, and add its passes and notes to the session. */
int job_run(struct job *job, struct error *err);

#endif

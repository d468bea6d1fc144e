/* SPDX-License-Identifier: MIT */
/* One recording, from the options to the session: shared by record.c, prepare.c, describe.c and
 * run.c. */
#ifndef GILTRACER_RECORD_JOB_H
#define GILTRACER_RECORD_JOB_H

#include "system/perf_access.h"
#include "python/probes.h"
#include "python/python.h"
#include "python/shebang.h"
#include "session/session.h"
#include "system/uprobes.h"
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
 * What to record, found by job_prepare_probes; counters by job_prepare.
 * @counters, @early: NULL-terminated; early: probes that are enabled before tracing starts
 * @probes: where the GIL's functions are; NULL: not known
 * @uprobes: the probes that are placed; NULL: none
 * @preloading: used if .library is set
 * @calls: the library, if perf records the GIL and the library only the calls
 * @samples_only: nothing but samples is recorded
 * @beside: the library records the GIL, and perf everything else
 * @may_hand_over: uprobes record the GIL until they cost the program too much, and then the library
 * does, which is @calls
 * @unknown_build: free-threaded, and no definition of its probes exists
 */
struct job_events {
	const char **counters, **early;
	struct probe_set *probes;
	struct uprobes *uprobes;
	struct preloading preloading, calls;
	bool samples_only, beside, may_hand_over, unknown_build;
};

/* One recording. The caller sets the first four members; job_describe makes the session, and
 * job_run fills it. */
struct job {
	const struct record_options *options;
	const char *dir;
	const struct signals *signals;
	struct record_outcome *outcome;
	pid_t pid; /* of a running program, see family_python; 0: one is started */
	struct job_program program;
	struct perf_limits host;
	struct job_events events;
	struct session *session;
};

/* Whether to record the GIL, or its counterpart in a free-threaded build, so that uprobes are
 * needed. */
bool job_wants_gil(const struct job *job);

/* Whether the library inside the program records the GIL. */
static inline bool job_preloads(const struct job *job)
{
	return job->events.preloading.library;
}

/* Whether uprobes record the GIL, if it is recorded. */
static inline bool job_uses_uprobes(const struct job *job)
{
	return !job->events.samples_only &&
	       (!job_preloads(job) || job->options->probes == PROBES_BOTH);
}

static inline bool job_uses_perf(const struct job *job)
{
	return job_uses_uprobes(job) || job->events.beside;
}

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
 * The engine that was to record the GIL cannot, for the reason in *err. Returns 0, with a message, if
 * --probes leaves the choice and another one can: the library instead of uprobes, samples instead of
 * either, and the library alone if perf fails (ECHILD). Otherwise *err stays.
 */
int job_change_engine(struct job *job, struct error *err);

/* Find the places to probe, and place the probes. uprobes_release() must follow. */
int job_prepare_probes(struct job *job, struct error *err);

/* The session document before the program has run; the caller frees it. */
struct session *job_describe(const struct job *job);

/* Run the program as often as the options ask, and add its passes and notes to the session. */
int job_run(struct job *job, struct error *err);

#endif

/* SPDX-License-Identifier: MIT */
/* One recording, from the options to the session: what record.c, prepare.c, describe.c and run.c
 * share. */
#ifndef GILTRACER_RECORD_JOB_H
#define GILTRACER_RECORD_JOB_H

#include "system/perf_limits.h"
#include "locate/probes.h"
#include "locate/python.h"
#include "locate/shebang.h"
#include "session/session.h"
#include "system/uprobes.h"
#include "record/preloading.h"
#include "record/record.h"

/**
 * What runs: found by job_prepare.
 * @target: script or module; @argv: its arguments
 * @entry: where tracing starts, as share/python/program.py reads it
 * @bootstrap: path of what the interpreter runs instead
 * @python_options: of the shebang, NULL-terminated
 * @python_trace: who records its calls, not PYTHON_TRACE_AUTO
 * @command: of a process that runs already, which target and argv are then; owned
 */
struct job_program {
	const char *target;
	char *const *argv;
	char *entry, *bootstrap;
	struct python *python;
	struct shebang shebang;
	const char **python_options;
	enum python_trace python_trace;
	char **command;
};

/**
 * What is recorded of it: found by job_prepare_probes, counters by job_prepare.
 * @counters, @early: NULL-terminated; early are probes that need no tracing to be switched on
 * @probes: where the GIL's functions are; NULL: not known
 * @uprobes: those that are placed; NULL: none
 * @preloading: used where .library is set
 * @calls: the same, where perf records the GIL, and the library the calls only
 * @samples_only: nothing else is recorded
 * @beside: perf records everything but the GIL, which the library does
 * @unknown_build: free-threaded, and there is no definition of its probes
 */
struct job_events {
	const char **counters, **early;
	struct probe_set *probes;
	struct uprobes *uprobes;
	struct preloading preloading, calls;
	bool samples_only, beside, unknown_build;
};

/* One recording. The first four are the caller's, session is made by job_describe and filled by
 * job_run. */
struct job {
	const struct record_options *options;
	const char *dir;
	const struct signals *signals;
	struct record_outcome *outcome;
	struct job_program program;
	struct perf_limits host;
	struct job_events events;
	struct session *session;
};

/* The GIL is recorded, or what a free-threaded build has instead: uprobes are wanted. */
bool job_wants_gil(const struct job *job);

/* The library inside the program sees the GIL. */
static inline bool job_preloads(const struct job *job)
{
	return job->events.preloading.library;
}

/* Uprobes see the GIL, if it is recorded. */
static inline bool job_uses_uprobes(const struct job *job)
{
	return !job->events.samples_only &&
	       (!job_preloads(job) || job->options->probes == PROBES_BOTH);
}

static inline bool job_uses_perf(const struct job *job)
{
	return job_uses_uprobes(job) || job->events.beside;
}

/* Stacks and states are recorded, as asked, or since there is nothing else to record. */
bool job_wants_stacks(const struct job *job);

/* Find program, interpreter, perf and our own files: everything that can be refused before anything
 * is started. Returns 0, or as the run function of a command. */
int job_prepare(struct job *job, char *const *argv, struct error *err);

/* Only program and interpreter. Returns as job_prepare. */
int job_find_program(struct job *job, char *const *argv, struct error *err);

/* Of a job that was allocated: with all that it has. NULL is none. */
void job_free(struct job *job);

/* Find the places to probe, and place the probes. From here on uprobes_release() must follow. */
int job_prepare_probes(struct job *job, struct error *err);

/* What the session says before the program has run; the caller frees it. */
struct session *job_describe(const struct job *job);

/* Run the program as often as the options ask, and add its passes and notes to the session. */
int job_run(struct job *job, struct error *err);

#endif

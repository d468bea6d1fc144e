/* SPDX-License-Identifier: MIT */
/* One recording, from the options to the session: what the files record*.c share. */
#ifndef GILTRACER_RECORD_JOB_H
#define GILTRACER_RECORD_JOB_H

#include "launch/perfhost.h"
#include "launch/probes.h"
#include "launch/python.h"
#include "launch/shebang.h"
#include "launch/session.h"
#include "launch/uprobes.h"
#include "record.h"

/* Everything that one recording needs, in the order in which it is had. */
struct job {
	const struct record_options *options;
	char *const *argv; /* of the program, without the script's name */
	const char *target;
	const char *dir;
	const char **counters; /* NULL-terminated */
	const char **early;    /* probes that tracing need not be switched on for; likewise */
	char *bootstrap;
	char *entry;
	struct python *python;
	struct shebang shebang;
	const char **python_options; /* of the shebang, NULL-terminated */
	struct perf_host host;
	struct probe_set *probes;
	struct uprobes *uprobes;
	struct session *session;
	const struct signals *signals;
	struct record_outcome *outcome;
	bool python_traced;
	bool unknown_build; /* free-threaded, and there is no definition of its probes */
};

/* The GIL is recorded, or what a free-threaded build has instead: uprobes are wanted. */
bool job_wants_gil(const struct job *job);

/* Stacks and states are recorded, as asked, or since there is nothing else to record. */
bool job_wants_stacks(const struct job *job);

/* Find program, interpreter, perf and our own files: everything that can be refused before anything
 * is started. Returns 0, or as the run function of a command. */
int job_prepare(struct job *job, char *const *argv, struct error *err);

/* Find the places to probe, and place the probes. From here on uprobes_release() must follow. */
int job_prepare_probes(struct job *job, struct error *err);

/* What the session says before the program has run; the caller frees it. */
struct session *job_describe(const struct job *job);

/* Run the program as often as the options ask, and add its passes and notes to the session. */
int job_run(struct job *job, struct error *err);

#endif

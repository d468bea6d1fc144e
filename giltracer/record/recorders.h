/* SPDX-License-Identifier: MIT */
/* The recordings that are made of one process at the same time. */
#ifndef GILTRACER_RECORD_RECORDERS_H
#define GILTRACER_RECORD_RECORDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "record/perfcmd.h"
#include "record/recorder.h"

#define RECORDERS_MAX 3

/**
 * @plans: count of them, borrowed; what is started for @pid, with its relatives @others
 * @ended: whether the process has ended, with which its recordings end; called with @data
 */
struct recorders {
	const struct perf_plan *plans;
	size_t count;
	pid_t pid;
	const char *others; /* see struct perf_plan */
	bool late_tasks;    /* likewise */
	bool (*ended)(void *data);
	void *data;
	struct recorder v[RECORDERS_MAX];
};

#define RECORDERS_NONE                                               \
	{                                                            \
		.v = { RECORDER_NONE, RECORDER_NONE, RECORDER_NONE } \
	}

/* Start all of them, and wait until they are attached. Errors are those of recorder_start. */
int recorders_start(struct recorders *recorders, const struct signals *signals, struct error *err);

/* "enable" or "disable", and wait until that is done. *note: what went wrong first, the caller's to
 * free; left alone if nothing did. */
void recorders_command(struct recorders *recorders, const char *command, char **note);

/* End all of them. Why one has failed replaces *note: it says more than that it did not answer. */
void recorders_finish(struct recorders *recorders, char **note);
void recorders_done(struct recorders *recorders);

/* The same, to start them again. */
void recorders_reset(struct recorders *recorders);

#endif

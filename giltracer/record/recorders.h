/* SPDX-License-Identifier: MIT */
/* Several recordings of one process at the same time. */
#ifndef GILTRACER_RECORD_RECORDERS_H
#define GILTRACER_RECORD_RECORDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "record/perfcmd.h"
#include "record/recorder.h"

#define RECORDERS_MAX 4

/**
 * @plans: count of them, borrowed; for process @pid and its relatives @others
 * @ended: whether the process, and with it the recordings, has ended; called with @data
 */
struct recorders {
	const struct perf_plan *plans;
	size_t count;
	pid_t pid;
	const char *others; /* see struct perf_plan */
	bool late_tasks;    /* see struct perf_plan */
	bool standby_used;
	bool (*ended)(void *data);
	void *data;
	struct recorder v[RECORDERS_MAX];
};

#define RECORDERS_NONE                                                              \
	{                                                                           \
		.v = { RECORDER_NONE, RECORDER_NONE, RECORDER_NONE, RECORDER_NONE } \
	}

/* Start all of them, and wait until they are attached. Errors are those of recorder_start. */
int recorders_start(struct recorders *recorders, const struct signals *signals, struct error *err);

/* Send "enable" or "disable" to those that neither stand by nor have been stopped, and wait until
 * that is done. *note: the first problem, freed by the caller; unchanged if there is none. */
void recorders_command(struct recorders *recorders, const char *command, char **note);

/* Enable the one that stands by, which then does so no longer. Stop the first one, which records
 * uprobes, with recorder_stop(). */
int recorders_enable_standby(struct recorders *recorders, struct error *err);

/* End all of them. The reason why one has failed replaces *note, because it tells more than that
 * perf did not answer. */
void recorders_finish(struct recorders *recorders, char **note);
void recorders_done(struct recorders *recorders);

/* As recorders_done, but they can be started again. */
void recorders_reset(struct recorders *recorders);

#endif

/* SPDX-License-Identifier: MIT */
/* Records a process with perf: by one perf record, or by several at the same time. */
#ifndef GILTRACER_RECORD_PERF_H
#define GILTRACER_RECORD_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/child.h"
#include "base/error.h"
#include "base/vec.h"

/* ---- the arguments of perf record. Pure: nothing is looked up on the host */

/* The name of the sampling event, for trace/perf/from_perf.h. */
#define PERFCMD_NATIVE "giltracer_native"

/**
 * All pointers are borrowed.
 * @perf: the program, a path or a name for PATH
 * @without_syslog: start perf without CAP_SYSLOG, so that it does not read the kernel's symbols
 * @output: perf.data to write
 * @pid: process to attach to, with all its future children
 * @others: more such processes, "12,34"; NULL for none
 * @late_tasks: write the names and mappings of existing threads at the end: perf gives up if a
 * thread ends while it reads them at the start
 * @everybody: not @pid but the whole machine, and only its wake-ups and CPU switches
 * @control_fd, @ack_fd: perf's ends of its control pipes
 * @native: sample user stacks of running threads, with dumps of this many bytes; 0: none
 * @native_hz: frequency of these samples; at most perf_host.sample_hz
 * @answer_ms: how long perf may take to answer; 0: a minute
 * @mmap_pages: ring buffer per CPU, a power of two; 0 leaves it to perf
 * @aio: write asynchronously: with small buffers, records are lost while perf waits for the file
 * @buildid_mmap: build-ids in the mmap records (perf 5.12)
 * @probes: "GROUP:EVENT", NULL-terminated; NULL for none
 * @counters: the user's events, NULL-terminated; NULL for none
 * @unswapped: keep a task's events with the task, see perf_reads_inherited()
 * @waking: record sched:sched_waking
 * @sched: record sched:sched_switch; @stops: only where a signal or a debugger stops a thread
 * @standby: its events are enabled only when the library takes over from uprobes
 * @stack_size: bytes of user stack with each sched:sched_switch to a sleep, a multiple of 8; 0: no
 * stacks
 */
struct perf_plan {
	const char *perf;
	bool without_syslog;
	const char *output;
	pid_t pid;
	const char *others;
	int control_fd, ack_fd;
	unsigned answer_ms;
	unsigned mmap_pages;
	bool aio;
	bool buildid_mmap;
	const char *const *probes;
	const char *const *counters;
	bool everybody;
	bool late_tasks;
	bool unswapped;
	bool waking;
	bool sched, stops;
	bool standby;
	unsigned stack_size;
	unsigned native, native_hz;
};

/* The argument vector, NULL-terminated; free with argv_free. */
char **perfcmd_argv(const struct perf_plan *plan);

void argv_free(char **argv);

/* ---- one perf record */

/*
 * One running perf record: attached to a process, switched on and off through its control pipe. It
 * is attached rather than made to start the program, so that the program is our own child: its
 * environment, signals, descriptors and exit status are the same as without perf, the terminal's
 * signals do not end the recording before the program, and two recordings can watch one program.
 */

/**
 * @mmap_pages: in use: less than planned if the host did not allow more
 * @answer_ms: how long perf may take to answer
 * @starting: not attached yet: a signal that asks us to end also ends the waiting
 * @stopped: recorder_stop() was called
 */
struct recorder {
	struct child perf;
	int control_fd, ack_fd, text_fd;
	unsigned mmap_pages;
	int answer_ms;
	bool starting, stopped;
};

#define RECORDER_NONE                                                             \
	{                                                                         \
		.perf = CHILD_NONE, .control_fd = -1, .ack_fd = -1, .text_fd = -1 \
	}

/*
 * Start perf; recorder_ready waits until it is attached, so that several can start at the same
 * time. plan->control_fd and plan->ack_fd are set here. The error contains perf's message; EINTR: a
 * signal asks us to end, and remains pending.
 */
int recorder_start(struct recorder *ret, const struct perf_plan *plan,
                   const struct signals *signals, struct error *err);

/* plan and signals are those of recorder_start, because perf may have to be restarted with a
 * smaller buffer. Error ESRCH: threads or processes ended while perf listed them. */
int recorder_ready(struct recorder *recorder, const struct perf_plan *plan,
                   const struct signals *signals, struct error *err);

/* Whether perf has events open; true also if this user may not find out. */
bool recorder_has_events(const struct recorder *recorder);

/* The program has ended: let perf write its data. recorder_finish waits for that, and reports
 * whether the recording failed; perf may still be closing its events then. */
void recorder_stop(struct recorder *recorder);
int recorder_finish(struct recorder *recorder, struct error *err);

void recorder_done(struct recorder *recorder);

/* ---- several of one process at the same time */

/**
 * What nobody has to wait for: the kernel takes 50 to 100 ms to remove each uprobe.
 * @perfs: pidfds of processes of perf whose files are complete or not needed, and which end by themselves
 * @held: probes that were held open until the recordings had ended
 */
struct afterwards {
	VEC(int) perfs, held;
};

void afterwards_move(struct afterwards *to, struct afterwards *from);

/* Wait until all of them have ended. */
void afterwards_wait(struct afterwards *after);

/* Closes the descriptors. */
void afterwards_done(struct afterwards *after);

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

/* End all of them, but do not wait for the one that stands by, whose file nobody needs. The reason why one
 * has failed replaces *note, because it tells more than that perf did not answer. */
void recorders_finish(struct recorders *recorders, char **note);

/* After recorders_finish: do not wait until the processes of perf have ended. */
void recorders_leave(struct recorders *recorders, struct afterwards *ret);
void recorders_done(struct recorders *recorders);

/* As recorders_done, but they can be started again. */
void recorders_reset(struct recorders *recorders);

#endif

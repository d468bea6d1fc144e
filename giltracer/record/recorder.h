/* SPDX-License-Identifier: MIT */
/*
 * One running perf record: attached to a process, switched on and off through its control pipe. It
 * is attached rather than made to start the program, so that the program is our own child: its
 * environment, signals, descriptors and exit status are the same as without perf, the terminal's
 * signals do not end the recording before the program, and two recordings can watch one program.
 */
#ifndef GILTRACER_RECORD_RECORDER_H
#define GILTRACER_RECORD_RECORDER_H

#include <stdbool.h>

#include "base/error.h"
#include "base/child.h"
#include "record/perfcmd.h"

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

/* Send "enable" or "disable"; recorder_answer returns when perf has done it. An error if perf
 * died. */
int recorder_command(struct recorder *recorder, const char *command, struct error *err);
int recorder_answer(struct recorder *recorder, struct error *err);

/* The program has ended: let perf write its data. recorder_finish waits for that, and reports
 * whether the recording failed. */
void recorder_stop(struct recorder *recorder);
int recorder_finish(struct recorder *recorder, struct error *err);

void recorder_done(struct recorder *recorder);

#endif

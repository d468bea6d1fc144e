/* SPDX-License-Identifier: MIT */
/*
 * One perf record at work: attached to a process, switched on and off through its control pipe.
 * It is attached rather than made to start the program, so that the program is our own child: its
 * environment, signals, descriptors and exit status are those it would have without perf, the
 * terminal's signals do not end the recording before the program, and two recordings can watch one
 * program.
 */
#ifndef GILTRACER_RECORD_RECORDER_H
#define GILTRACER_RECORD_RECORDER_H

#include <stdbool.h>

#include "base/error.h"
#include "base/child.h"
#include "record/perfcmd.h"

/**
 * @mmap_pages: as in use: fewer than planned where the host did not allow more
 * @answer_ms: how long it may take to answer
 * @starting: not there yet: a signal that asks us to end ends the waiting
 */
struct recorder {
	struct child perf;
	int control_fd, ack_fd, text_fd;
	unsigned mmap_pages;
	int answer_ms;
	bool starting;
};

#define RECORDER_NONE                                                             \
	{                                                                         \
		.perf = CHILD_NONE, .control_fd = -1, .ack_fd = -1, .text_fd = -1 \
	}

/*
 * Start perf; recorder_ready waits until it is attached, so that several can start at the same
 * time. plan->control_fd and plan->ack_fd are ours to choose. The error says what perf said; EINTR:
 * a signal asks us to end, and is still pending.
 */
int recorder_start(struct recorder *ret, const struct perf_plan *plan,
                   const struct signals *signals, struct error *err);

/* plan and signals are those of recorder_start: perf may have to be started again with less. The
 * error ESRCH: threads or processes ended while perf read which there are. */
int recorder_ready(struct recorder *recorder, const struct perf_plan *plan,
                   const struct signals *signals, struct error *err);

/* Whether it has events open; true also where this user may not look. */
bool recorder_has_events(const struct recorder *recorder);

/* "enable" or "disable"; recorder_answer returns when perf has done it. An error if perf died. */
int recorder_command(struct recorder *recorder, const char *command, struct error *err);
int recorder_answer(struct recorder *recorder, struct error *err);

/* The program has ended: let perf write what it has; recorder_finish waits for that, and says
 * whether the recording failed. */
void recorder_stop(struct recorder *recorder);
int recorder_finish(struct recorder *recorder, struct error *err);

void recorder_done(struct recorder *recorder);

#endif

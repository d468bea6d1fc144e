/* SPDX-License-Identifier: MIT */
/*
 * A process in our process group that reports the signals it receives. The program received these,
 * too: a terminal or kill(-PGID) sent them to the whole group. Any other signal was sent to
 * giltracer alone, which passes it on.
 */
#ifndef GILTRACER_RECORD_GROUP_SIGNALS_H
#define GILTRACER_RECORD_GROUP_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/child.h"

/* Reports of a signal that we have not taken yet, and the time of the last one. */
struct group_signal {
	unsigned count;
	uint64_t at_ns;
};

struct group_signals {
	struct child child;
	int fd;
	struct group_signal seen[NSIG]; /* by number */
};

#define GROUP_SIGNALS_NONE                     \
	{                                      \
		.child = CHILD_NONE, .fd = -1, \
	}

/* The caller has blocked signals with signals_block(); they are blocked in that process, too. */
int group_signals_start(struct group_signals *ret, struct error *err);

/* Whether the signal that we have just received was sent to the whole group; may wait for a moment.
 * True once for each signal that the group receives. */
bool group_signals_saw(struct group_signals *group, int signal);

void group_signals_done(struct group_signals *group);

#endif

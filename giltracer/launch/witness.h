/* SPDX-License-Identifier: MIT */
/*
 * A process of our group that does nothing but say which signals it got: those the program got too,
 * since they were sent to the whole group, by a terminal or by kill(-PGID). What came to us alone
 * is for us to pass on.
 */
#ifndef GILTRACER_LAUNCH_WITNESS_H
#define GILTRACER_LAUNCH_WITNESS_H

#include <stdbool.h>

#include "base/error.h"
#include "launch/child.h"

struct witness {
	struct child child;
	int fd;
};

#define WITNESS_NONE                           \
	{                                      \
		.child = CHILD_NONE, .fd = -1, \
	}

/* Signals are blocked by signals_block(), and so in the witness. */
int witness_start(struct witness *ret, struct error *err);

/* Whether the group got this signal, which has just come to us; may wait for a moment. Each one
 * that the witness got is told once. */
bool witness_saw(struct witness *witness, int signal);

void witness_done(struct witness *witness);

#endif

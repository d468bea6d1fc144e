/* SPDX-License-Identifier: MIT */
/* The Python stacks of all threads of a running process, and the holder of the GIL, at one
 * moment. */
#ifndef GILTRACER_LIVE_SNAPSHOT_H
#define GILTRACER_LIVE_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "python/pythreads.h"
#include "python/target.h"
#include "trace/samples.h"

/* @code: borrowed from the target; @line: 0 if unknown */
struct snapshot_frame {
	const struct live_code *code;
	uint32_t line;
};

enum gil_relation {
	GIL_NONE, /* neither holds it nor waits for it */
	GIL_HOLDS,
	GIL_WAITS, /* requests it; before 3.15: asleep on the GIL's own lock or condition variable */
	GIL_NOT_KNOWN, /* the GIL's location is unknown, or it cannot be read */
};

/**
 * A thread. One that runs code of a subinterpreter is in the calling interpreter, too; it is listed
 * once, with its frames in all interpreters.
 * @tid: its number in the kernel, in our namespace; 0: the thread has ended, has not started yet,
 * or cannot be identified
 * @name: the program's name for it (python/pythreads.h), else the kernel's
 * @named: the name is the program's
 * @state: R, S, D, T, Z as in /proc/PID/task/TID/stat; '?' if unknown
 * @activity: what it is doing, judged by its system call
 * @gil: its relation to the GIL of the interpreter it is in, at @gil_address (0: unknown)
 * @gil_of: the number of the interpreter that the GIL belongs to; 0: the main one
 * @futex: for which it sleeps, unless for the GIL; 0: none; @sp: its stack pointer then; @ident: its pthread_t
 * @torn: a stack of the thread changed during each attempt to read it; then there are no frames
 * @frames: innermost first; those in its present interpreter, then those in its other ones
 */
struct snapshot_thread {
	uint32_t tid;
	char name[PYTHREAD_NAME];
	bool named;
	char state;
	enum sample_activity activity;
	enum gil_relation gil;
	uint64_t gil_address;
	uint32_t gil_of;
	uint64_t futex, sp, ident;
	bool torn;
	VEC(struct snapshot_frame) frames;
};

/**
 * @time_ns: when reading the stacks began, CLOCK_MONOTONIC
 * @gil_known: the definition contains the location of the GIL; @gils: how many GILs exist that are on
 * @threads: holders of a GIL first, then those that wait for one, then the others, by tid
 */
struct snapshot {
	uint64_t time_ns;
	bool gil_known;
	uint32_t gils;
	VEC(struct snapshot_thread) threads;
};

/* Takes snapshots of a process repeatedly; what does not change is looked up only once. */
struct snapshots;

/* target is borrowed until snapshots_free. */
struct snapshots *snapshots_new(struct target *target);
void snapshots_free(struct snapshots *snapshots);
DEFINE_CLEANUP(struct snapshots *, snapshots_free);

/* Error ESRCH: the process has ended; E2BIG: it has more frames than are read; EAGAIN: its threads
 * changed each time they were read, or it is ending or executes another program. Free with
 * snapshot_done. */
int snapshot_take(struct snapshot *ret, struct snapshots *snapshots, struct error *err);
void snapshot_done(struct snapshot *snapshot);

/* The thread that holds the GIL at address; NULL if none does or it is unknown. */
const struct snapshot_thread *snapshot_holder(const struct snapshot *snapshot, uint64_t gil);

#endif

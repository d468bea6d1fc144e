/* SPDX-License-Identifier: MIT */
/*
 * Patterns of threads that delay each other, with the evidence for each. A pattern is only reported
 * if it happened PATTERN_COUNT times and cost PATTERN_SHARE % of the time that it is measured by; a
 * recording that is short or mostly unknown has none.
 *
 *	loop-starvation  a thread that runs an asyncio event loop waits for the GIL for
 *	                 PATTERN_SHORT_NS or more when its selector returns, so that every callback
 *	                 that is due is late by that; share of its life. Recognised by the Python
 *	                 frames that wait, select in selectors.py called by _run_once in
 *	                 asyncio/base_events.py; not reported where frames are unknown, nor for
 *	                 other loops
 *	convoy           a thread releases the GIL for less than PATTERN_SHORT_NS, after a hold as
 *	                 short, and then waits for nearly a whole switch interval; share of its life
 *	late-wakeups     a thread is away for longer than that, as an event loop that sleeps until
 *	                 something happens, and then waits for PATTERN_SHORT_NS or more, in at least
 *	                 half of the cases; share of its life
 *	ping-pong        two threads hand the GIL to each other a thousand times a second and more,
 *	                 for holds of PATTERN_QUICK_NS on average; share of the recording, in which
 *	                 the GIL was free although a thread waited for it that had a CPU
 *	oversubscription on average two threads and more wait for a GIL that is held for
 *	                 PATTERN_BUSY % of the recording, by three threads and more in turn
 *	lock-across-wait a thread sleeps until another one wakes it that has itself been waiting for
 *	                 the GIL: a lock was held, or an item was awaited, across a wait; share of
 *	                 the sleeper's life
 */
#ifndef GILTRACER_ANALYSIS_PATTERNS_H
#define GILTRACER_ANALYSIS_PATTERNS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/hogs.h"
#include "base/vec.h"
#include "model/model.h"

#define PATTERN_COUNT        10
#define PATTERN_SHARE        10
#define PATTERN_SHORT_NS     1000000
#define PATTERN_QUICK_NS     200000
#define PATTERN_BUSY         90
#define PATTERN_RECORDING_NS 50000000

enum pattern_kind {
	PATTERN_LOOP_STARVATION,
	PATTERN_CONVOY,
	PATTERN_LATE_WAKEUPS,
	PATTERN_PING_PONG,
	PATTERN_OVERSUBSCRIPTION,
	PATTERN_LOCK_ACROSS_WAIT,
	PATTERN_KINDS,
};

/**
 * @thread: the thread that waits. Index, or MODEL_NONE
 * @other: the thread that held the GIL most meanwhile, the partner, or the waker; or MODEL_NONE
 * @count: number of cases. Oversubscription: number of threads
 * @ns: its cost: waiting, hand-offs or sleeping. Oversubscription: all waiting
 * @longest_ns: the longest single case; ping-pong: the average hold
 * @share: percent of the time that the rule refers to, rounded down
 * @function, @file, @line: loop-starvation: the function that held the GIL most meanwhile, in
 *                          thread other; borrowed from the frames' names; NULL: not known
 */
struct pattern {
	enum pattern_kind kind;
	uint32_t thread, other;
	uint64_t count, ns, longest_ns;
	unsigned share;
	const char *function, *file;
	uint32_t line;
};

struct patterns {
	VEC(struct pattern) v;
};

/* Finds the patterns of a finished model, most ns first. frames may be NULL. If a thread's
 * event loop starves, the same waits are not reported as late wake-ups or as a convoy. Free with
 * patterns_done. */
void patterns_find(struct patterns *ret, const struct model *model, const struct stacks *frames,
                   uint64_t interval_ns);
void patterns_done(struct patterns *patterns);

/* Event loops that wait for the GIL when their selector returns: see patterns.h. */

/**
 * How long a thread waited for the GIL between two times.
 * @holder: the thread that held it most of that time, MODEL_NONE: none is known
 * @frame: the holder's frame, id in the frames, 0: unknown
 */
struct loops_wait {
	uint64_t ns;
	uint32_t holder, frame;
};

/* frames may be NULL. */
struct loops_wait loops_waited(const struct model *m, const struct stacks *frames, uint32_t thread,
                               uint64_t from_ns, uint64_t to_ns);

#endif

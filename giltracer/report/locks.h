/* SPDX-License-Identifier: MIT */
/* What blocks the threads of a free-threaded interpreter: locks, and stops of the world. */
#ifndef GILTRACER_REPORT_LOCKS_H
#define GILTRACER_REPORT_LOCKS_H

#include <stdbool.h>
#include <stdio.h>

#include "report/crowds.h"
#include "report/jsonw.h"
#include "report/report.h"

/**
 * Where threads were blocked, or blocked others: all spans of one state in one Python function.
 * @state: GIL_LOCK_WAIT, GIL_STOPPED or GIL_STOPPING
 * @frame: id in the source's frames, 0: not known
 * @of: LOCK_WAIT: the type of the object whose lock it is, "" if that is not known; borrowed
 */
struct locks_place {
	unsigned state;
	uint32_t frame;
	const char *of;
	uint64_t count, ns, longest_ns;
};

/* Percentages of a thread's life: of the whole of it what is unknown, of the rest the others. */
struct locks_shares {
	double free, lock_wait, stopped, stops, unknown;
};

struct locks_shares locks_shares(const struct model_thread *thread);

struct locks_places {
	VEC(struct locks_place) v; /* most time first */
};

/* Of one thread, or of all: MODEL_NONE. Done with by vec_done(&places.v). */
struct locks_places locks_places(const struct report_pass *pass, uint32_t thread);

/* "lock", "stopped" or "stops others". */
const char *locks_state_name(unsigned state);

/* The GIL of the pass was off all the while, and what threads blocked on was recorded: that is
 * shown instead of it. */
bool locks_of_pass(const struct report_pass *pass);

/* The tables, threads by crowds; nothing where nothing of it can be. */
void locks_text(const struct report_pass *pass, const struct crowds *crowds, FILE *out);

/* Members "locks", "lock_blame" (at most so many rows, the largest) and "blocked" of an open
 * object.
 */
void locks_json(struct jsonw *w, const struct report_pass *pass, size_t most);

#endif

/* SPDX-License-Identifier: MIT */
/* What blocks threads: locks, and stops of the world of a free-threaded interpreter. */
#ifndef GILTRACER_ANALYSIS_LOCKS_H
#define GILTRACER_ANALYSIS_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/recording.h"
#include "base/vec.h"

/**
 * A place where threads were blocked or blocked others: all spans with one state in one Python
 * function.
 * @state: GIL_LOCK_WAIT, GIL_STOPPED or GIL_STOPPING
 * @frame: id in the source's frames, 0: not known
 * @of: LOCK_WAIT: the type of the object that the lock belongs to, "" if not known; borrowed
 */
struct locks_place {
	unsigned state;
	uint32_t frame;
	const char *of;
	uint64_t count, ns, longest_ns;
};

/* Percentages of a thread's life: unknown is a share of the whole life, the others are shares of
 * the known part. */
struct locks_shares {
	double free, lock_wait, stopped, stops, unknown;
};

struct locks_shares locks_shares(const struct model_thread *thread);

struct locks_places {
	VEC(struct locks_place) v; /* most time first */
};

/* The places of one thread, or of all for MODEL_NONE. Free with vec_done(&places.v). */
struct locks_places locks_places(const struct recording_pass *pass, uint32_t thread);

/* Whether the pass's GIL was off throughout and lock waits were recorded: reports then show locks
 * instead of the GIL. */
bool locks_of_pass(const struct recording_pass *pass);

#endif

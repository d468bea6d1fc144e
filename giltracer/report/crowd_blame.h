/* SPDX-License-Identifier: MIT */
/* Who waited for whom, by crowds: a thousand threads that all wait for each other are a million
 * pairs, and one row. */
#ifndef GILTRACER_REPORT_CROWD_BLAME_H
#define GILTRACER_REPORT_CROWD_BLAME_H

#include "report/crowds.h"

enum crowd_wait {
	CROWD_GIL,     /* of the model's blame */
	CROWD_LOCK,    /* of its lock_blame, of state GIL_LOCK_WAIT, */
	CROWD_STOPPED, /* and of GIL_STOPPED */
	CROWD_LINE,    /* of its starved: in line for a CPU */
};

/**
 * Rows of the model between two crowds, or a crowd and whoever is no thread.
 * @waiter, @holder: crowds; holder may be MODEL_NONE or MODEL_UNKNOWN
 * @name: CROWD_LINE, of holder MODEL_NONE: as in struct model_starved
 * @pairs: how many rows of the model it is; @wait_ns: their sum
 * @longest_ns, @longest_at_ns, @longest_waiter, @longest_holder: the longest overlap, and of which
 *	threads; of CROWD_LINE the largest row, and no time
 */
struct crowd_blame {
	enum crowd_wait kind;
	uint32_t waiter, holder, name;
	uint64_t pairs, wait_ns;
	uint64_t longest_ns, longest_at_ns;
	uint32_t longest_waiter, longest_holder;
};

struct crowd_blames {
	VEC(struct crowd_blame) v;
};

/* Of a holder that is no crowd, who that is, in words that depend on the kind; of CROWD_LINE not
 * the names of programs. */
const char *crowd_blame_nobody(const struct crowd_blame *blame);

/* Most wait first; CROWD_LOCK and CROWD_STOPPED are asked for together, by either. Free with
 * vec_done(&blames.v). */
struct crowd_blames crowds_blame(const struct crowds *crowds, const struct model *model,
                                 enum crowd_wait kind);

#endif

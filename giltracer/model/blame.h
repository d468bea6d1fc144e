/* SPDX-License-Identifier: MIT */
/* Whose hold each wait is charged to. */
#ifndef GILTRACER_MODEL_BLAME_H
#define GILTRACER_MODEL_BLAME_H

#include "model/model.h"

void blame_finish(struct model *m);

/* Charges of one waiter, by holder; the two last are nobody and unknown. */
struct ledger {
	struct model_blame *rows; /* of every possible holder; wait_ns 0: unused */
	VEC(uint32_t) used;
	size_t threads;
};

/* [start, end) of its time is the holder's, a thread, MODEL_NONE or MODEL_UNKNOWN. */
void ledger_charge(struct ledger *l, uint32_t holder, uint64_t start_ns, uint64_t end_ns);

#endif

/* SPDX-License-Identifier: MIT */
/* Charges each wait to the thread that held the GIL. */
#ifndef GILTRACER_MODEL_BLAME_H
#define GILTRACER_MODEL_BLAME_H

#include "model/model.h"

void blame_finish(struct model *m);

/* Charges of one waiter, by holder; the last two rows are for no holder and for an unknown one. */
struct ledger {
	struct model_blame *rows; /* one per possible holder; wait_ns is 0 if unused */
	VEC(uint32_t) used;
	size_t threads;
};

/* Charges [start, end) to holder: a thread, MODEL_NONE or MODEL_UNKNOWN. */
void ledger_charge(struct ledger *l, uint32_t holder, uint64_t start_ns, uint64_t end_ns);

#endif

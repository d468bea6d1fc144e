/* SPDX-License-Identifier: MIT */
/*
 * What goes on in a slot of the page of totals: the slot has what has ended; what has not is added
 * when it is read. All times are ticks.
 */
#ifndef GILTRACER_LIVE_TOTALS_SETTLE_H
#define GILTRACER_LIVE_TOTALS_SETTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/totals.h"

/* What was last reported of a slot, in ticks. A torn slot may read as less: then these are reported
 * again. */
struct totals_reported {
	uint64_t hold, wait, switch_wait, kept, life;
	uint64_t wait_for[TOTALS_GROUPS];
};

/**
 * A slot as it was at now.
 * @whole: it was not being written
 * @knows: held is of its GIL at now, too
 */
struct totals_moment {
	uint64_t now;
	bool whole, knows;
	struct totals_waited held;
};

static inline uint64_t totals_less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static inline uint32_t totals_group_index(uint32_t group)
{
	return group < TOTALS_GROUPS ? group : TOTALS_OTHERS;
}

/* Adds what goes on, as at the moment. asked: when the holder was asked to release the GIL, 0: it
 * was not. Nothing becomes less than what was reported. A thread that is in the middle of a write
 * does not say what goes on. */
void totals_settle(struct totals_slot *slot, uint64_t asked, const struct totals_moment *m,
                   struct totals_reported *reported);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A slot of the page of totals contains only completed holds and waits. The one in progress is
 * added when the slot is read. All times are in ticks.
 */
#ifndef GILTRACER_LIVE_TOTALS_SETTLE_H
#define GILTRACER_LIVE_TOTALS_SETTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/totals.h"

/* The numbers last reported for a slot. A torn slot may yield lower ones; then these are reported
 * again. */
struct totals_reported {
	uint64_t hold, wait, switch_wait, kept, life;
	uint64_t wait_for[TOTALS_GROUPS];
};

/**
 * The moment at which a slot was copied.
 * @whole: the slot was not being written
 * @knows: held is valid: that of the slot's GIL at now
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

/* Adds the hold or wait in progress at the moment m, unless the slot was being written. asked: when
 * the holder was asked to release the GIL; 0: it was not. No number becomes lower than the one last
 * reported. */
void totals_settle(struct totals_slot *slot, uint64_t asked, const struct totals_moment *m,
                   struct totals_reported *reported);

#endif

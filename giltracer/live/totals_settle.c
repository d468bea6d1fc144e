/* SPDX-License-Identifier: MIT */
/* Adds holds and waits in progress to totals. */
#include "live/totals_settle.h"

#include <stddef.h>
#include <string.h>

static uint64_t grown(uint64_t *reported, uint64_t value)
{
	if (*reported < value)
		*reported = value;
	return *reported;
}

/* Adds the wait in progress, which has lasted for on ticks: for each group, the time for which it
 * has held the GIL since the wait began. The rest, or everything without held, goes to the group
 * that held the GIL when the wait began. */
static void add_present(struct totals_slot *slot, const struct totals_waited *held, uint64_t now,
                        uint64_t on)
{
	for (unsigned i = 0; held && i < TOTALS_GROUPS; i++) {
		uint64_t ticks = totals_less(held->held[i], slot->seen[i]);

		if (i == totals_group_index(held->holder))
			ticks += totals_less(now, held->last);
		if (ticks > on)
			ticks = on;
		slot->wait_for[i] += ticks;
		on -= ticks;
	}
	slot->wait_for[totals_group_index(slot->holder)] += on;
}

/* Makes the parts of the wait add up to it, although the slot and held may be of different moments.
 * No part becomes lower than the one last reported. */
static void fit_wait(struct totals_slot *slot, uint64_t *reported)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < TOTALS_GROUPS; i++) {
		if (slot->wait_for[i] < reported[i])
			slot->wait_for[i] = reported[i];
		sum += slot->wait_for[i];
	}
	for (unsigned i = 0; sum > slot->wait && i < TOTALS_GROUPS; i++) {
		uint64_t cut = slot->wait_for[i] - reported[i];

		if (cut > sum - slot->wait)
			cut = sum - slot->wait;
		slot->wait_for[i] -= cut;
		sum -= cut;
	}
	slot->wait_for[TOTALS_OTHERS] += totals_less(slot->wait, sum);
	memcpy(reported, slot->wait_for, sizeof(slot->wait_for));
}

void totals_settle(struct totals_slot *slot, uint64_t asked, const struct totals_moment *m,
                   struct totals_reported *reported)
{
	uint64_t now = m->now, on = m->whole ? totals_less(now, slot->since) : 0;

	if (slot->state != TOTALS_ENDED)
		slot->lived += totals_less(now, slot->began);
	if (slot->state == TOTALS_HOLD) {
		slot->hold += on;
		slot->kept += on && asked >= slot->since ? totals_less(now, asked) : 0;
	} else if (slot->state == TOTALS_WAIT) {
		slot->wait += on;
		add_present(slot, m->knows ? &m->held : NULL, now, on);
	} else if (slot->state == TOTALS_SWITCH) {
		slot->switch_wait += on;
	}
	slot->hold = grown(&reported->hold, slot->hold);
	slot->wait = grown(&reported->wait, slot->wait);
	fit_wait(slot, reported->wait_for);
	slot->switch_wait = grown(&reported->switch_wait, slot->switch_wait);
	slot->kept = grown(&reported->kept, slot->kept);
	/* The slot may have changed after now; then its life until now is too short. */
	if (slot->lived < slot->hold + slot->wait + slot->switch_wait)
		slot->lived = slot->hold + slot->wait + slot->switch_wait;
	slot->lived = grown(&reported->life, slot->lived);
}

/* SPDX-License-Identifier: MIT */
/* Adds to totals what has not ended. */
#include "live/totals_settle.h"

#include <stddef.h>
#include <string.h>

static uint64_t grown(uint64_t *reported, uint64_t value)
{
	if (*reported < value)
		*reported = value;
	return *reported;
}

/* The wait that goes on, as long as on: what the groups held since it began, and what is missing.
 * Without held, all of it is missing. */
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

/* None shrinks, and they add up to the wait, also if what goes on was seen at different moments. */
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
	/* It may have changed after now. */
	if (slot->lived < slot->hold + slot->wait + slot->switch_wait)
		slot->lived = slot->hold + slot->wait + slot->switch_wait;
	slot->lived = grown(&reported->life, slot->lived);
}

/* SPDX-License-Identifier: MIT */
/*
 * A condition on the GIL of a process, and whether it has held for long enough:
 *
 *	MEASURE > NUMBER% for NUMBER(s|m)
 *
 * It has no clock: whoever feeds it says what passed when.
 */
#ifndef GILTRACER_METRICS_TRIGGER_H
#define GILTRACER_METRICS_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "live/totals.h"

/* How long it may not fire again. */
#define TRIGGER_PAUSE_NS (3600 * UINT64_C(1000000000))

enum trigger_measure {
	TRIGGER_WAIT, /* by the thread that waits for the GIL most */
	TRIGGER_HOLD, /* a GIL is held */
	TRIGGER_KEPT, /* it is held after another thread has asked for it */
};

/* More than so many percent of the time, for so long. */
struct trigger {
	enum trigger_measure measure;
	unsigned percent;
	uint64_t for_ns;
};

/**
 * Of a process. { 0 } has seen nothing.
 * @at_ns: the last instant, with its values: of each thread, or of each GIL
 * @holds: since since_ns
 */
struct trigger_state {
	uint64_t at_ns, since_ns;
	bool holds;
	VEC(uint64_t) values;
};

/* EINVAL: what is wrong in it, and what there is. */
int trigger_parse(struct trigger *ret, const char *text, struct error *err);

/* Whether the condition held from since_ns to the snapshot's instant, in each interval between those that it
 * was fed with, for as long as it should. */
bool trigger_feed(const struct trigger *trigger, struct trigger_state *state,
                  const struct totals_snapshot *snapshot);

/* Whether it may fire now; then *last_ns is the time. 0: it has not fired before. */
bool trigger_fire(uint64_t now_ns, uint64_t *last_ns);

void trigger_state_done(struct trigger_state *state);

#endif

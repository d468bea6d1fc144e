/* SPDX-License-Identifier: MIT */
/*
 * A condition on the GIL of a process, and whether it has held for long enough:
 *
 *	MEASURE > NUMBER% for NUMBER(s|m)
 *
 * It does not read a clock: the caller passes snapshots with their times.
 */
#ifndef GILTRACER_METRICS_TRIGGER_H
#define GILTRACER_METRICS_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "live/totals.h"

/* The least time between two reports of a process. */
#define TRIGGER_PAUSE_NS (3600 * UINT64_C(1000000000))

enum trigger_measure {
	TRIGGER_WAIT, /* waiting of the thread that waits for the GIL most */
	TRIGGER_HOLD, /* holding of a GIL */
	TRIGGER_KEPT, /* holding after another thread has asked for it */
};

/* More than this many percent of the time, for this long. */
struct trigger {
	enum trigger_measure measure;
	unsigned percent;
	uint64_t for_ns;
};

/**
 * State for one process. { 0 } is the initial state.
 * @at_ns: the last instant, with its values: of each thread, or of each GIL
 * @holds: the condition has held since since_ns
 */
struct trigger_state {
	uint64_t at_ns, since_ns;
	bool holds;
	VEC(uint64_t) values;
};

/* Error EINVAL: it names the mistake and the possible values. */
int trigger_parse(struct trigger *ret, const char *text, struct error *err);

/* Whether the condition has held for long enough until the snapshot's instant: in each of the
 * intervals between the snapshots that were passed. */
bool trigger_feed(const struct trigger *trigger, struct trigger_state *state,
                  const struct totals_snapshot *snapshot);

/* Whether it may fire now; if so, *last_ns becomes the present time. 0: it has not fired before. */
bool trigger_fire(uint64_t now_ns, uint64_t *last_ns);

void trigger_state_done(struct trigger_state *state);

#endif

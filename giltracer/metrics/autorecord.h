/* SPDX-License-Identifier: MIT */
/* Writes a report when a condition on a watched process holds, at most one an
 * hour for each process. */
#ifndef GILTRACER_METRICS_AUTORECORD_H
#define GILTRACER_METRICS_AUTORECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "live/totals.h"
#include "metrics/watch.h"

/* ---- the condition */

/*
 * A condition on the GIL of a process, and whether it has held for long enough:
 *
 *	MEASURE > NUMBER% for NUMBER(s|m)
 *
 * It does not read a clock: the caller passes snapshots with their times.
 */

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

#define AUTORECORD_FOLDER  "giltracer-reports"
#define AUTORECORD_MIB     1024
#define AUTORECORD_SECONDS 10

/**
 * @condition: NULL: nothing is recorded
 * @folder: of the reports; created if missing. Its oldest reports are deleted if all together
 * exceed limit_mib
 * @duration_s: of a recording; 0: AUTORECORD_SECONDS
 */
struct autorecord_options {
	const char *condition, *folder;
	unsigned limit_mib, duration_s;
};

#define AUTORECORD_OPTIONS_DEFAULT                                       \
	{                                                                \
		.folder = AUTORECORD_FOLDER, .limit_mib = AUTORECORD_MIB \
	}

#define AUTORECORD_OPTS(o)                                                       \
	OPT_STR(0, "record-when", "CONDITION", &(o)->condition,                  \
	        "write a report when this is true: with metrics, for example "   \
	        "'gil_wait>50% for 10s'; with --flight, 'gil_wait>200ms'"),      \
		OPT_STR(0, "reports", "DIR", &(o)->folder,                       \
	                "the folder for these reports (giltracer-reports)"),     \
		OPT_UINT(0, "reports-limit", "MIB", &(o)->limit_mib, 1, 1 << 20, \
	                 "delete the oldest of these reports when they exceed MIB (1024)")

struct autorecord;

/* Checks the condition, if there is one. Error EINVAL: it is invalid. */
int autorecord_check(const struct autorecord_options *options, struct error *err);

/* Called by the watching thread to report what was done, or why it was not. */
typedef void autorecord_say(bool failed, const char *text);

/* Start a thread that watches. Nobody else may use watch; the caller frees it after
 * autorecord_stop. */
int autorecord_start(struct autorecord **ret, const struct autorecord_options *options,
                     struct watch *watch, autorecord_say *say, struct error *err);

/* Stop watching. A present recording ends now and writes its report. */
void autorecord_stop(struct autorecord *autorecord);

DEFINE_CLEANUP(struct autorecord *, autorecord_stop);

#endif

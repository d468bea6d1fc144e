/* SPDX-License-Identifier: MIT */
/* Writes a report by itself when a condition on a watched process holds (trigger.h), at most one an hour. */
#ifndef GILTRACER_METRICS_AUTORECORD_H
#define GILTRACER_METRICS_AUTORECORD_H

#include <stdbool.h>

#include "base/error.h"
#include "metrics/watch.h"

#define AUTORECORD_FOLDER  "giltracer-reports"
#define AUTORECORD_MIB     1024
#define AUTORECORD_SECONDS 10

/**
 * @condition: NULL: nothing is recorded
 * @folder: of the reports; it is made. Its oldest reports are deleted when they are more than limit_mib
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

#define AUTORECORD_OPTS(o)                                                                    \
	OPT_STR(0, "record-when", "CONDITION", &(o)->condition,                               \
	        "with metrics: write a report, at most once an hour, when this is true, for " \
	        "example 'gil_wait>50% for 10s'"),                                            \
		OPT_STR(0, "reports", "DIR", &(o)->folder,                                    \
	                "the folder for these reports (giltracer-reports)"),                  \
		OPT_UINT(0, "reports-limit", "MIB", &(o)->limit_mib, 1, 1 << 20,              \
	                 "delete the oldest of these reports when they exceed MIB (1024)")

struct autorecord;

/* EINVAL: the condition, if there is one, is none. */
int autorecord_check(const struct autorecord_options *options, struct error *err);

/* Called by the thread that watches: what was done, or why it was not. */
typedef void autorecord_say(bool failed, const char *text);

/* Watch from now on, with a thread of its own; watch, which nobody else may use, is the caller's to end. */
int autorecord_start(struct autorecord **ret, const struct autorecord_options *options,
                     struct watch *watch, autorecord_say *say, struct error *err);

/* A recording that goes on ends now, with its report. */
void autorecord_stop(struct autorecord *autorecord);

DEFINE_CLEANUP(struct autorecord *, autorecord_stop);

#endif

/* SPDX-License-Identifier: MIT */
/* Writes a report when a condition on a watched process holds (trigger.h), at most one an
 * hour for each process. */
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

#define AUTORECORD_OPTS(o)                                                                    \
	OPT_STR(0, "record-when", "CONDITION", &(o)->condition,                               \
	        "with metrics: write a report, at most once an hour, when this is true, for " \
	        "example 'gil_wait>50% for 10s'"),                                            \
		OPT_STR(0, "reports", "DIR", &(o)->folder,                                    \
	                "the folder for these reports (giltracer-reports)"),                  \
		OPT_UINT(0, "reports-limit", "MIB", &(o)->limit_mib, 1, 1 << 20,              \
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

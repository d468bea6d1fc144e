/* SPDX-License-Identifier: MIT */
/* Differences in recording a free-threaded interpreter. */
#ifndef GILTRACER_RECORD_FREETHREADED_H
#define GILTRACER_RECORD_FREETHREADED_H

#include "locate/python.h"
#include "record/job.h"

/* To be called if no probes were found, for the reason in err. Returns 0 for a build whose
 * probes are unknown, which is recorded without them, and -1 with err unchanged for any other. */
int freethreaded_without_probes(struct job *job, struct error *err);

/*
 * Those of the events, NULL-terminated, that show which import turns the GIL on. They are recorded
 * also before tracing starts, because most imports precede it. The caller frees the array.
 */
const char **freethreaded_early_events(const char *const *events);

/* What is recorded, as a noun for messages. */
const char *freethreaded_subject(const struct python *python);

#endif

/* SPDX-License-Identifier: MIT */
/* What recording does differently for a free-threaded interpreter. */
#ifndef GILTRACER_RECORD_FREETHREADED_H
#define GILTRACER_RECORD_FREETHREADED_H

#include "locate/python.h"
#include "record/job.h"

/* No probes were found, as err says. A build whose probes are unknown is recorded without them: 0.
 * Any other: -1, err as it was. */
int freethreaded_without_probes(struct job *job, struct error *err);

/* Those of the events, NULL-terminated, that show which import turns the GIL on. They are not
 * limited to tracing: most imports precede it. The caller frees the array. */
const char **freethreaded_early_events(const char *const *events);

/* What is recorded, for a message. */
const char *freethreaded_subject(const struct python *python);

#endif

/* SPDX-License-Identifier: MIT */
/* What probing a free-threaded interpreter leaves unknown. */
#ifndef GILTRACER_LOCATE_FREETHREADED_H
#define GILTRACER_LOCATE_FREETHREADED_H

#include "locate/probes.h"

/* A note on what the report will lack with these probes, NULL: nothing. Static. */
const char *freethreaded_note(const struct probe_set *set);

#endif

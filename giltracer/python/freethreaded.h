/* SPDX-License-Identifier: MIT */
/* Information that is missing when a free-threaded interpreter is probed. */
#ifndef GILTRACER_PYTHON_FREETHREADED_H
#define GILTRACER_PYTHON_FREETHREADED_H

#include "python/probes.h"

/* A note on what the report will lack with these probes; NULL: nothing. Static. */
const char *freethreaded_note(const struct probe_set *set);

#endif

/* SPDX-License-Identifier: MIT */
/* Where the probes of a definition go in one file: by its symbols, and by what its code says. */
#ifndef GILTRACER_LOCATE_PLACE_H
#define GILTRACER_LOCATE_PLACE_H

#include "base/error.h"

struct probe_set;
struct probedef;
struct symbols;

/* Fill in the probes of set, whose path and names are there; take_gil fetches that many Python
 * frames. ENOENT if take_gil cannot be found. */
int place_probes(struct probe_set *set, const struct probedef *def, struct symbols *symbols,
                 unsigned frames, struct error *err);

#endif

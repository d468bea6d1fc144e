/* SPDX-License-Identifier: MIT */
/* Chooses the places of a definition's probes in one file, from its symbols and its code. */
#ifndef GILTRACER_PYTHON_PLACE_H
#define GILTRACER_PYTHON_PLACE_H

#include "base/error.h"

struct probe_set;
struct probedef;
struct symbols;

/* Sets the probes of set, whose path and names are set; take_gil fetches frames Python frames.
 * ENOENT if take_gil cannot be found. */
int place_probes(struct probe_set *set, const struct probedef *def, struct symbols *symbols,
                 unsigned frames, struct error *err);

#endif

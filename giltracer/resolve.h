/* SPDX-License-Identifier: MIT */
/* For commands: where the probes of an interpreter go, with a word to who has to wait for it. */
#ifndef GILTRACER_RESOLVE_H
#define GILTRACER_RESOLVE_H

#include "launch/probes.h"

/* As probe_set_resolve. */
int resolve_probes(struct probe_set **ret, const struct python *python, unsigned frames,
                   struct error *err);

#endif

/* SPDX-License-Identifier: MIT */
/* Finds the probes of an interpreter, and shows progress while a symbol server is asked. */
#ifndef GILTRACER_RECORD_RESOLVE_H
#define GILTRACER_RECORD_RESOLVE_H

#include "locate/probes.h"

/* As probe_set_resolve. */
int resolve_probes(struct probe_set **ret, const struct python *python, unsigned frames,
                   struct error *err);

#endif

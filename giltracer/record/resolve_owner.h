/* SPDX-License-Identifier: MIT */
/*
 * Finds the probes of an interpreter for giltracer setup. Root must neither run nor read what a
 * user may have made, so the interpreter is asked, and the file with the GIL is read, by processes
 * with the rights of the user who can change those files.
 */
#ifndef GILTRACER_RECORD_RESOLVE_OWNER_H
#define GILTRACER_RECORD_RESOLVE_OWNER_H

#include "locate/probes.h"

/* wanted: as for python_find. The set contains what stored_probes.h describes. */
int resolve_as_owner(struct probe_set **ret, const char *wanted, unsigned frames,
                     struct error *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The probes of an interpreter for giltracer setup. Root neither runs nor reads what a user may
 * have made: the interpreter is asked, and then the file is read in which the GIL is, by a process
 * with the rights of whoever decides what they are.
 */
#ifndef GILTRACER_RECORD_RESOLVE_OWNER_H
#define GILTRACER_RECORD_RESOLVE_OWNER_H

#include "locate/probes.h"

/* wanted: as of python_find. The set has what stored_probes.h says. */
int resolve_as_owner(struct probe_set **ret, const char *wanted, unsigned frames,
                     struct error *err);

#endif

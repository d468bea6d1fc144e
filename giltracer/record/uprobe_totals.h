/* SPDX-License-Identifier: MIT */
/* Totals of a process that runs already and does not count them itself: by uprobes, as root. */
#ifndef GILTRACER_RECORD_UPROBE_TOTALS_H
#define GILTRACER_RECORD_UPROBE_TOTALS_H

#include <sys/types.h>

#include "base/error.h"
#include "live/totals.h"

/*
 * Count from now on, until totals_close, which removes the probes. Of the process alone, not of its children.
 * Errors: ENOTSUP its build has no GIL, or not all of its releases can be seen; EPERM, EACCES it is not permitted;
 * those of process_python_find and uprobes_prepare.
 */
int uprobe_totals_open(struct totals **ret, pid_t pid, struct error *err);

#endif

/* SPDX-License-Identifier: MIT */
/* Totals of a running process that does not count them itself, by uprobes, as root. */
#ifndef GILTRACER_RECORD_UPROBE_TOTALS_H
#define GILTRACER_RECORD_UPROBE_TOTALS_H

#include <sys/types.h>

#include "base/error.h"
#include "live/totals.h"

/*
 * Count from now on, until totals_close, which removes the probes. Only the process itself is
 * counted, not its children. Errors: ENOTSUP: its build has no GIL, or not all of its releases can
 * be probed; EPERM, EACCES: not permitted; those of process_python_find and uprobes_prepare.
 */
int uprobe_totals_open(struct totals **ret, pid_t pid, struct error *err);

#endif

/* SPDX-License-Identifier: MIT */
/* Totals of a running process that does not count them itself, by uprobes, as root. */
#ifndef GILTRACER_METRICS_UPROBE_TOTALS_H
#define GILTRACER_METRICS_UPROBE_TOTALS_H

#include <sys/types.h>

#include "base/error.h"
#include "live/totals.h"

struct probe_set;

/*
 * Count from now on, until totals_close, which removes the probes. set: all places where the GIL is taken and
 * released; owned by the totals, also after an error. Only the process itself is counted, not its children.
 * Errors: EPERM, EACCES: not permitted; those of uprobes_prepare.
 */
int uprobe_totals_open(struct totals **ret, pid_t pid, struct probe_set *set, struct error *err);

#endif

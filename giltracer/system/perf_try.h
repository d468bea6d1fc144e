/* SPDX-License-Identifier: MIT */
/* Whether the kernel lets this process record events, and if not, what forbids it. */
#ifndef GILTRACER_SYSTEM_PERF_TRY_H
#define GILTRACER_SYSTEM_PERF_TRY_H

#include <stdbool.h>

#include "base/error.h"

/* Try to open a software event of our own. The error names what forbids it, such as seccomp. */
int perf_try_self(struct error *err);

/* Try to open tracepoint GROUP:EVENT with its data; uprobes are recorded in this form, too. */
int perf_try_event(const char *group, const char *event, struct error *err);

/* Open it for ourselves, without recording it: as long as it is open, the kernel removes this
 * uprobe from other programs at once when they are not recorded any more. Else it first waits, for
 * tens of milliseconds. Returns the descriptor, or -1. */
int perf_hold_event(const char *group, const char *event);

/*
 * Whether the kernel permits reading inherited events with samples (6.12), as "dummy:uS" does. If
 * such an event is open, the kernel leaves each task its own events. Else it swaps those of related
 * tasks when it switches between them, and uprobes in a program that a child then executes are
 * never placed, because the kernel looks for the task for which the event was opened.
 */
bool perf_reads_inherited(void);

#endif

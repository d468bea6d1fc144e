/* SPDX-License-Identifier: MIT */
/* Whether the kernel lets this process record events, and if not, which of its guards says no. */
#ifndef GILTRACER_SYSTEM_PERF_TRY_H
#define GILTRACER_SYSTEM_PERF_TRY_H

#include <stdbool.h>

#include "base/error.h"

/* Try to open a software event of our own. The error names the guard: seccomp, paranoid, … */
int perf_try_self(struct error *err);

/* Try to open tracepoint GROUP:EVENT with its data, which is how uprobes are recorded. */
int perf_try_event(const char *group, const char *event, struct error *err);

/*
 * Whether the kernel lets inherited events be read with samples (6.12), as "dummy:uS" is. Where
 * there is one, it leaves the events of each task to that task; else it swaps those of relatives
 * when it switches between them, and uprobes in a program that a child then executes are never
 * placed: the kernel looks for the task that the event was made for.
 */
bool perf_reads_inherited(void);

#endif

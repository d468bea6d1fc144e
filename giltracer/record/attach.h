/* SPDX-License-Identifier: MIT */
/* Record a process that runs already, and go on running it: it is neither stopped nor changed. */
#ifndef GILTRACER_RECORD_ATTACH_H
#define GILTRACER_RECORD_ATTACH_H

#include <sys/types.h>

#include "base/error.h"
#include "record/pass.h"

/* The arguments that it was started with, NULL-terminated; free with argv_free. */
char **attach_command(pid_t pid);

/*
 * Record process pid, its descendants and what these start, until a signal asks us to end, a limit
 * is reached or the process ends. Of plan, perf, perf_count, probes, codes, limit and on_limit
 * count. ret->status is 0. Errors are those of pass_run; ESRCH the process has ended.
 */
int attach_run(const struct pass_plan *plan, pid_t pid, const struct signals *signals,
               struct pass_result *ret, struct error *err);

#endif

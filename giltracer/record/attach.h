/* SPDX-License-Identifier: MIT */
/* Records a process that already runs. It is neither stopped nor changed, and goes on
 * afterwards. */
#ifndef GILTRACER_RECORD_ATTACH_H
#define GILTRACER_RECORD_ATTACH_H

#include <sys/types.h>

#include "base/error.h"
#include "record/pass.h"

/* The arguments that the process was started with, NULL-terminated; free with argv_free. */
char **attach_command(pid_t pid);

/*
 * Record process pid, its descendants and their new children until a signal asks us to end, a limit
 * is reached or the process ends. Of the plan, perf, perf_count, probes, preloading, sampling,
 * codes, no_children, may_change, limit and on_limit are used. ret->status is 0. Errors are those of pass_run;
 * ESRCH: the process has ended.
 */
int attach_run(const struct pass_plan *plan, pid_t pid, const struct signals *signals,
               struct pass_result *ret, struct error *err);

#endif

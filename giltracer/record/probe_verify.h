/* SPDX-License-Identifier: MIT */
/* Whether the probes are where they should be in a process that runs. */
#ifndef GILTRACER_RECORD_PROBE_VERIFY_H
#define GILTRACER_RECORD_PROBE_VERIFY_H

#include <sys/types.h>

#include "base/error.h"

struct probe_set;

/*
 * Call it when the probes are placed and known to the recorder, and nothing runs yet. Error ESTALE:
 * the file is not as it was when its functions were looked for; an instruction in the middle of
 * which a probe stands would do anything.
 */
int probe_verify_file(const struct probe_set *set, struct error *err);

/*
 * The kernel puts its breakpoints into the file that it found when the probes were placed. A
 * process that runs another one, since the file was replaced or an overlay copied it, or that the
 * kernel has put none into, would be recorded without its GIL. Call it while a recorder is attached
 * and the process waits. Error ESTALE: they are not there, and why. What this user may not look at
 * counts as good.
 */
int probe_verify_process(pid_t pid, const struct probe_set *set, struct error *err);

#endif

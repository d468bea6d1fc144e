/* SPDX-License-Identifier: MIT */
/* Checks that the probes are in place in a running process. */
#ifndef GILTRACER_RECORD_PROBE_VERIFY_H
#define GILTRACER_RECORD_PROBE_VERIFY_H

#include <sys/types.h>

#include "base/error.h"

struct probe_set;

/*
 * Call it when the probes are placed and known to the recorder, and nothing runs yet. Error ESTALE:
 * the file has changed since its functions were found, so that a probe may be in the middle of an
 * instruction, with unpredictable effects.
 */
int probe_verify_file(const struct probe_set *set, struct error *err);

/*
 * The kernel puts its breakpoints into the file that it found when the probes were placed. A
 * process is recorded without its GIL if it runs another file, because the file was replaced or an
 * overlay copied it, or if the kernel has put no breakpoints into it. Call it while a recorder is
 * attached and the process waits. Error ESTALE: the probes are missing, and why. A process that
 * this user may not read passes.
 */
int probe_verify_process(pid_t pid, const struct probe_set *set, struct error *err);

#endif

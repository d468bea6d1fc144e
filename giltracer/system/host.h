/* SPDX-License-Identifier: MIT */
/* What this host lets us do: kernel settings, privileges, tools. */
#ifndef GILTRACER_SYSTEM_HOST_H
#define GILTRACER_SYSTEM_HOST_H

#include <stdbool.h>

#include "base/error.h"

/* Value of a sysctl by its dotted name, "kernel.perf_event_paranoid"; NULL if there is none. Caller
 * frees. */
char *host_sysctl(const char *name);
int host_sysctl_write(const char *name, const char *value, struct error *err);

/* Run a program found in PATH with its output discarded, wait for it, and fail with what it said
 * on stderr if its exit status is not 0. argv is NULL-terminated. */
int host_run(const char *const *argv, struct error *err);

/* Whether our effective capabilities have it: CAP_SYS_ADMIN and others of linux/capability.h. */
bool host_capable(int capability);

/* Whether our bounding set has it: no program that we start can have more. */
bool host_may_have(int capability);

/*
 * For struct child_spec's prepare: what is executed next cannot have CAP_SYSLOG, so it sees no
 * addresses of the kernel in /proc/kallsyms. Where this is not permitted, nothing changes. True.
 */
bool host_give_up_syslog(void);

#endif

/* SPDX-License-Identifier: MIT */
/* What this host permits: kernel settings, privileges, tools. */
#ifndef GILTRACER_SYSTEM_HOST_H
#define GILTRACER_SYSTEM_HOST_H

#include <stdbool.h>

#include "base/error.h"

/* The value of a sysctl by its dotted name, such as "kernel.perf_event_paranoid"; NULL if it
 * does not exist. The caller frees it. */
char *host_sysctl(const char *name);
int host_sysctl_write(const char *name, const char *value, struct error *err);

/* Run a program found in PATH with its output discarded, and wait for it. If its exit status is
 * not 0, fail with the text that it printed to stderr. argv is NULL-terminated. */
int host_run(const char *const *argv, struct error *err);

/* Whether our effective capabilities contain one, such as CAP_SYS_ADMIN of linux/capability.h. */
bool host_capable(int capability);

/* Whether our bounding set contains it; no program that we start can have more. */
bool host_may_have(int capability);

/*
 * For prepare of struct child_spec: the executed program will not have CAP_SYSLOG, so that it reads
 * no kernel addresses in /proc/kallsyms. If that is not permitted, nothing changes. Returns true.
 */
bool host_give_up_syslog(void);

#endif

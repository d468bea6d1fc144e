/* SPDX-License-Identifier: MIT */
/* giltracer-perf, as installed by giltracer setup, starts perf for the members of a group, so
 * that they can record their own programs. It has the capabilities that they lack. */
#ifndef GILTRACER_SYSTEM_PERF_GUARD_H
#define GILTRACER_SYSTEM_PERF_GUARD_H

#include <stdbool.h>

#include "base/error.h"

/* The path at which setup installs it, in $(libexecdir)/giltracer ($GILTRACER_LIBEXECDIR
 * replaces the folder). The caller frees it. */
char *perf_guard_path(void);

/* The program as built, without capabilities, which setup copies. The caller frees it. */
int perf_guard_find_program(char **ret, struct error *err);

/* The group whose members may execute it, if it is installed and this user may not execute it;
 * else NULL. The caller frees it. */
char *perf_guard_group(void);

/* Whether this user may execute it, and the kernel opens the event for it: GROUP:EVENT, "self"
 * or "inherited", see giltracer-perf.c. */
bool perf_guard_permits(const char *event);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * giltracer-perf, as giltracer setup installs it: perf for the members of a group, who may record
 * their own programs by it. It has the capabilities that they lack.
 */
#ifndef GILTRACER_SYSTEM_PERF_GUARD_H
#define GILTRACER_SYSTEM_PERF_GUARD_H

#include <stdbool.h>

#include "base/error.h"

/* Where setup puts it, $(libexecdir)/giltracer ($GILTRACER_LIBEXECDIR replaces the folder). Caller
 * frees. */
char *perf_guard_path(void);

/* The program as it was built, without capabilities, for setup to copy. Caller frees. */
int perf_guard_find_program(char **ret, struct error *err);

/* The group whose members may execute it, if it is installed and this user may not. Caller frees.
 */
char *perf_guard_group(void);

/* Whether this user may execute it, and the kernel opens the event for it: GROUP:EVENT, "self" or
 * "inherited", see giltracer-perf.c. */
bool perf_guard_permits(const char *event);

#endif

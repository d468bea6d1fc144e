/* SPDX-License-Identifier: MIT */
/* The descendants of a process. */
#ifndef GILTRACER_LIVE_FAMILY_H
#define GILTRACER_LIVE_FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"

struct family {
	VEC(pid_t) v;
};

/* Append the present descendants, without pid itself. Free with vec_done. */
void family_read(struct family *ret, pid_t pid);

/* Whether the process runs CPython. */
bool family_is_python(pid_t pid);

/*
 * The process that is meant by the number of a wrapper: a shell, sudo, uv run, an init, a loader.
 * If process pid does not run CPython and one of its descendants does, that is *ret, otherwise it
 * is pid itself, whether it can be examined or not. Descendants of a CPython do not count. Error
 * EINVAL: there are several.
 */
int family_python(pid_t *ret, pid_t pid, struct error *err);

/* With both numbers, if they differ. */
#define FAMILY_TAKEN "process %u is not CPython: using process %d, its descendant"

#endif

/* SPDX-License-Identifier: MIT */
/* The descendants of a process. */
#ifndef GILTRACER_LIVE_FAMILY_H
#define GILTRACER_LIVE_FAMILY_H

#include <sys/types.h>

#include "base/vec.h"

struct family {
	VEC(pid_t) v;
};

/* Append the present descendants, without pid itself. Free with vec_done. */
void family_read(struct family *ret, pid_t pid);

#endif

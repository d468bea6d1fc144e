/* SPDX-License-Identifier: MIT */
/* CPU limits of control groups: how much of the CPUs a program may use, and in how many periods the
 * kernel stopped it because it had used that up. Versions 1 and 2 (cgroups(7)). */
#ifndef GILTRACER_SYSTEM_CGROUP_H
#define GILTRACER_SYSTEM_CGROUP_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/**
 * @quota_us: CPU time that the group may use in each period of @period_us; 0: no group is limited
 * @periods: number of periods in which it ran; @throttled: of these, in which it was stopped
 */
struct cgroup_quota {
	uint64_t quota_us, period_us, periods, throttled;
};

#define CGROUP_LEVELS 16

/**
 * A process's group and those around it that have a limit, with their numbers when they were read.
 * @folders: owned
 */
struct cgroup {
	char *folders[CGROUP_LEVELS];
	struct cgroup_quota quotas[CGROUP_LEVELS];
	size_t n;
};

/* proc: "/proc/self", or "/proc/" and the number of a process. Has no groups if they cannot be
 * read. Free with cgroup_done. */
void cgroup_open(struct cgroup *ret, const char *proc);
void cgroup_done(struct cgroup *cgroup);

/* The limit of the group that was throttled most since cgroup_open, or the lowest limit if none
 * was, with its numbers of periods since then. */
struct cgroup_quota cgroup_since(const struct cgroup *cgroup);

static inline void cleanup_cgroup_done(struct cgroup *cgroup)
{
	cgroup_done(cgroup);
}

#endif

/* SPDX-License-Identifier: MIT */
/* What this host permits: kernel settings, privileges, tools. */
#ifndef GILTRACER_SYSTEM_HOST_H
#define GILTRACER_SYSTEM_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/procfs.h"

/* The value of a sysctl by its dotted name, such as "kernel.perf_event_paranoid"; NULL if it
 * does not exist. The caller frees it. */
char *host_sysctl(const char *name);
int host_sysctl_write(const char *name, const char *value, struct error *err);

/* Run a program found in PATH with its output discarded, and wait for it. If its exit status is
 * not 0, fail with the text that it printed to stderr. argv is NULL-terminated. */
int host_run(const char *const *argv, struct error *err);

/* Whether our effective capabilities contain one, such as CAP_SYS_ADMIN of linux/capability.h. */
bool host_capable(int capability);

/*
 * For prepare of struct child_spec. The executed program will not have CAP_SYSLOG, without which
 * /proc/kallsyms contains no addresses; host_hide_kernel_symbols: and finds that file empty. Where that is
 * not permitted, nothing changes. They return true.
 */
bool host_give_up_syslog(void);
bool host_hide_kernel_symbols(void);

/* ---- stolen time */

/* The time for which the hypervisor ran something else on this virtual machine's CPUs; threads
 * that appear to run did not run then. /proc/stat counts it in whole ticks (proc(5), "steal"). */

/* Of all CPUs since the start of the system, in ns; 0 if the kernel does not report it. */
uint64_t steal_time_ns(void);

/* Since it was before_ns; 0 if it has decreased, which it may in a container. */
uint64_t steal_time_since(uint64_t before_ns);

/* The same from the text of /proc/stat, with this number of ticks a second. */
uint64_t steal_time_parse(const char *text, uint64_t ticks);

/* The most that may have been stolen if the kernel, which counts in ticks, reports stolen_ns; 0
 * on a host that never steals. */
uint64_t steal_time_most(uint64_t stolen_ns);

/* stolen_ns in percent of the time of all CPUs during wall_ns. */
double steal_time_percent(uint64_t stolen_ns, uint64_t wall_ns, uint64_t cpus);

/* ---- CPU limits of control groups */

/* CPU limits of control groups: how much of the CPUs a program may use, and in how many periods the
 * kernel stopped it because it had used that up. Versions 1 and 2 (cgroups(7)). */

#define CGROUP_LEVELS 16

/**
 * A process's group and those around it that have a limit, with their numbers when they were read.
 * @folders: owned
 */
struct cgroup {
	char *folders[CGROUP_LEVELS];
	struct cpu_quota quotas[CGROUP_LEVELS];
	size_t n;
};

/* proc: "/proc/self", or "/proc/" and the number of a process. Has no groups if they cannot be
 * read. Free with cgroup_done. */
void cgroup_open(struct cgroup *ret, const char *proc);
void cgroup_done(struct cgroup *cgroup);

/* The limit of the group that was throttled most since cgroup_open, or the lowest limit if none
 * was, with its numbers of periods since then. */
struct cpu_quota cgroup_since(const struct cgroup *cgroup);

DEFINE_CLEANUP_IN(struct cgroup, cgroup_done);

/* ---- what a sandbox permits: capabilities, seccomp, security modules */

#ifndef CAP_PERFMON
#define CAP_PERFMON 38 /* defined in linux/capability.h since 5.8 */
#endif

/* Whether this is not the first user namespace. Our capabilities may be full there, but the
 * kernel ignores them for resources of the host. */
bool sandbox_user_namespace(void);

/* Whether a seccomp filter is in force. */
bool sandbox_filtered(void);

/* Whether we have CAP_PERFMON, or CAP_SYS_ADMIN, which includes it, and the kernel respects it. */
bool sandbox_perfmon_capable(void);

/* Whether this is not the first process namespace. */
bool sandbox_own_pid_namespace(void);

/* Whether this is a container whose root user cannot lift the restrictions. */
bool sandbox_container(void);

/* What the environment forbids, one sentence; NULL if nothing. The caller frees it. */
char *sandbox_text(void);

/* Lists the capabilities that this process lacks and that would make a difference: call it with
 * i from 0 until it returns false. Strings are constants. */
bool sandbox_lacks(size_t i, const char **ret_name, const char **ret_what_for);

/*
 * How to get a permission that is missing, one phrase: the command or, in a container, the options
 * with which its administrator has to start it. roots: it is for uprobes or the scheduler's events,
 * which setup gives to nobody; otherwise for perf's events or their buffers. The caller frees it.
 */
char *sandbox_remedy(bool roots);

#endif

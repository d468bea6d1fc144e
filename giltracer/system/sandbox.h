/* SPDX-License-Identifier: MIT */
/* What restricts this process (a container, seccomp, lockdown), and who can lift that. */
#ifndef GILTRACER_SYSTEM_SANDBOX_H
#define GILTRACER_SYSTEM_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38 /* defined in linux/capability.h since 5.8 */
#endif

/* Whether this is not the first user namespace. Our capabilities may be full there, but the
 * kernel ignores them for resources of the host. */
bool sandbox_user_namespace(void);

/* Whether a seccomp filter is in force. */
bool sandbox_filtered(void);

/* Whether the kernel is locked down for confidentiality. */
bool sandbox_locked_down(void);

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

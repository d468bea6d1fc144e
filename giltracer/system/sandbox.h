/* SPDX-License-Identifier: MIT */
/* What restricts this process (a container, seccomp, lockdown), and who can lift the restriction. */
#ifndef GILTRACER_SYSTEM_SANDBOX_H
#define GILTRACER_SYSTEM_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38 /* linux/capability.h has it since 5.8 */
#endif

/* In a user namespace other than the first our capabilities may be full, and count for nothing that
 * is the kernel's. */
bool sandbox_user_namespace(void);

/* A seccomp filter is in force. */
bool sandbox_filtered(void);

/* The kernel is locked down for confidentiality. */
bool sandbox_locked_down(void);

/* CAP_PERFMON, or CAP_SYS_ADMIN, which was it before Linux 5.8; one that counts. */
bool sandbox_perfmon_capable(void);

/* In a process namespace other than the first. */
bool sandbox_own_pid_namespace(void);

/* A container whose root, or who becomes root in it, cannot permit itself what is missing. */
bool sandbox_container(void);

/* What the surroundings take away, one sentence; NULL if nothing. Caller frees. */
char *sandbox_text(void);

/* Capabilities that this process lacks and that would change something. Returned in turn, i from 0;
 * false at the end. Strings are constants. */
bool sandbox_lacks(size_t i, const char **ret_name, const char **ret_what_for);

/*
 * How to get what perf and uprobes need, one phrase: the command, or, in a container, the options
 * with which its administrator has to start it. python is the interpreter's path; NULL if it is not
 * known; frames is how many its probes fetch. Caller frees.
 */
char *sandbox_remedy(const char *python, unsigned frames);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Return probes and seccomp. Since Linux 6.11 a function with a return probe returns by a system
 * call of its own on x86-64, uretprobe(2). From 6.14 on, and in stable releases of the time,
 * seccomp filters have no say in it; before, a program under a filter that does not know it dies
 * where such a function returns (arch/x86/kernel/uprobes.c, kernel/seccomp.c).
 */
#ifndef GILTRACER_SYSTEM_URETPROBE_CHECK_H
#define GILTRACER_SYSTEM_URETPROBE_CHECK_H

#include <stdbool.h>

/* Whether the filter that is in force denies it; false if there is no filter. Tries it, in a child.
 */
bool uretprobe_denied(void);

/* The same from how the child ended (see waitpid; its exit status is the call's errno) and the
 * kernel's release, "6.12.3-amd64". The kernel ends who calls it from anywhere else by SIGILL; its
 * sister, uprobe(2) of 6.18, says ENXIO. */
bool uretprobe_judge(int status, const char *release);

#endif

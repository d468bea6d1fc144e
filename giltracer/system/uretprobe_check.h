/* SPDX-License-Identifier: MIT */
/*
 * Return probes and seccomp. Since Linux 6.11, a function with a return probe on x86-64 returns by
 * a special system call, uretprobe(2). From 6.14 on, and in stable releases of that time, it
 * bypasses seccomp filters; before, a filter that does not know the call kills the program when
 * such a function returns (arch/x86/kernel/uprobes.c, kernel/seccomp.c).
 */
#ifndef GILTRACER_SYSTEM_URETPROBE_CHECK_H
#define GILTRACER_SYSTEM_URETPROBE_CHECK_H

#include <stdbool.h>

/* Whether the present filter denies the call; false if there is no filter. Tries the call in a
 * child process. */
bool uretprobe_denied(void);

/*
 * The same from how the child ended (see waitpid; its exit status is the call's errno) and the
 * kernel's release, "6.12.3-amd64". The kernel kills by SIGILL if uretprobe is called from
 * elsewhere; the related uprobe(2) of 6.18 returns ENXIO.
 */
bool uretprobe_judge(int status, const char *release);

#endif

/* SPDX-License-Identifier: MIT */
/* The interpreter of a running process. Nothing is executed in the process. */
#ifndef GILTRACER_PYTHON_PROCESS_H
#define GILTRACER_PYTHON_PROCESS_H

#include <stdint.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "python/python.h"

/**
 * @python: owned; its paths can be opened from here, /proc/PID/root/… for another mount namespace.
 *          command and executable are the file that the process runs; members that only the
 *          interpreter itself could provide are missing: micro below 3.11, viztracer, debug
 * @bias: address in the process minus link-time address, for python->library
 */
struct process_python {
	struct python *python;
	uint64_t bias;
};

/*
 * Whether the number is that of a program that can be recorded, as far as any user may know.
 * Errors: ESRCH there is no such process, or it has ended; EACCES it is hidden; EINVAL the number
 * is that of a thread; ENOTSUP it is a kernel thread or a 32-bit program.
 */
int process_check(pid_t pid, struct error *err);

struct procfs_mapping;

/* The name under which the mapped file can be opened here: its own, or one below the root of the
 * process. Caller frees. NULL: the file is gone. */
char *process_openable(pid_t pid, const struct procfs_mapping *m);

/* Whether it is stopped, by a signal or a debugger. */
bool process_is_stopped(pid_t pid);

/*
 * Errors: those of process_check; EACCES it may not be examined; ENOTSUP it is not a CPython of
 * this machine's architecture, or is too old. Free with process_python_done.
 */
int process_python_find(struct process_python *ret, pid_t pid, struct error *err);
void process_python_done(struct process_python *process);

#endif

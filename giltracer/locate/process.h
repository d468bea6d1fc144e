/* SPDX-License-Identifier: MIT */
/* The interpreter of a process that is running already. Nothing of the process is executed. */
#ifndef GILTRACER_LOCATE_PROCESS_H
#define GILTRACER_LOCATE_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "locate/python.h"

/**
 * @python: owned; its paths can be opened from here, /proc/PID/root/… for another mount namespace.
 *          command and executable are the file that the process runs; what only the interpreter
 *          itself could say is missing: micro below 3.11, viztracer, debug
 * @bias: address in the process less link-time address, of what is in python->library
 */
struct process_python {
	struct python *python;
	uint64_t bias;
};

/*
 * Whether the number is that of a program that can be recorded, as far as anybody may know. Errors:
 * ESRCH there is no such process, or it has ended, EACCES it is hidden, EINVAL the number is that
 * of a thread, ENOTSUP it is a kernel thread or a 32-bit program.
 */
int process_check(pid_t pid, struct error *err);

/*
 * Errors: those of process_check; EACCES it may not be looked at, ENOTSUP it is no CPython of this
 * machine's architecture, or one that is too old. Done by process_python_done.
 */
int process_python_find(struct process_python *ret, pid_t pid, struct error *err);
void process_python_done(struct process_python *process);

#endif

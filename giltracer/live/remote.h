/* SPDX-License-Identifier: MIT */
/*
 * Makes a running CPython execute a text. Its main thread is stopped by ptrace(2), and calls
 * Py_AddPendingCall() when it goes on. If it waits in a system call of CPython's own, it is woken, or
 * executes the text there.
 *
 * The thread goes on by itself, whatever happens to this process: its registers are on its stack in
 * the form that the kernel gives to a signal handler, and the call returns through rt_sigreturn(2).
 */
#ifndef GILTRACER_LIVE_REMOTE_H
#define GILTRACER_LIVE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct target;

/**
 * @library: our file, which an earlier recording may have left loaded; borrowed
 * @gil: address of the main interpreter's GIL
 * @add, @run, @ensure, @release: addresses of CPython's functions
 * @enter, @restore: addresses of the instructions syscall and ret, and of those that call
 *                    rt_sigreturn, of which @restore_offset is the place in libc's file
 * @page, @size: the memory that contains the text; it is unmapped after the text was executed
 * @text, @running: addresses of the text, and to which its execution returns
 * @stopped_ns, @stops: how long the thread was stopped in all, and how often
 */
struct remote_call {
	const struct target *target;
	const char *library;
	uint64_t gil;
	uint64_t add, run, ensure, release;
	uint64_t enter, restore, restore_offset;
	uint64_t page, size, text, running;
	uint64_t stopped_ns;
	unsigned stops;
};

/* Whether the process can be made to. Errors: ENOTSUP: not this program, or not here; EACCES: the
 * process belongs to another user; EBUSY: it has a tracer. */
int remote_call_find(struct remote_call *ret, const struct target *target, const char *library,
                     struct error *err);

/* Execute the text. Error EAGAIN: the thread could not be stopped now. */
int remote_call_ask(struct remote_call *call, const char *text, struct error *err);

/* If the thread waits in a system call of CPython's before it has executed the text, wake it. */
void remote_call_wake(struct remote_call *call, const char *text);

/* Withdraw the text. False: its execution has begun or ended, or the thread could not be stopped. */
bool remote_call_withdraw(struct remote_call *call, const char *text);

/* The name by which a process has loaded this very library of ours, whose file may be gone; NULL: it has not.
 * The caller frees it. */
char *remote_library(pid_t pid, const char *file);

/*
 * ---- Makes a running CPython execute a script (PEP 768, CPython 3.14 and later). Its main thread does
 * so at its next check for pending work between bytecodes. As by sys.remote_exec(), the process's
 * memory is written; the process is not stopped.
 */

struct target;

/**
 * The main thread, which is to execute the script.
 * @request, @script: addresses of the flag and of the path
 * @breaker: address of the byte that makes the thread check for work
 * @gil: address of its interpreter's GIL
 */
struct remote_exec {
	const struct target *target;
	uint64_t request, script, breaker, gil;
};

/* Whether the process can be asked. Errors: ENOTSUP: its version does not support it, or it is
 * disabled; EACCES: the process belongs to another user. */
int remote_exec_find(struct remote_exec *ret, const struct target *target, struct error *err);

/* Ask; path is absolute, and readable by the process. Error EBUSY: another script is pending. */
int remote_exec_ask(const struct remote_exec *remote, const char *path, struct error *err);

/* Withdraw the request. False: the script has begun or ended. */
bool remote_exec_withdraw(const struct remote_exec *remote);

#endif

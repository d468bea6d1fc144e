/* SPDX-License-Identifier: MIT */
/*
 * Makes a running CPython execute a script (PEP 768, CPython 3.14 and later). Its main thread does
 * so at its next check for pending work between bytecodes. As by sys.remote_exec(), the process's
 * memory is written; the process is not stopped.
 */
#ifndef GILTRACER_LIVE_REMOTE_EXEC_H
#define GILTRACER_LIVE_REMOTE_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

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
 * disabled; EACCES: the process belongs to another user or container. */
int remote_exec_find(struct remote_exec *ret, const struct target *target, struct error *err);

/* Ask; path is absolute, and readable by the process. Error EBUSY: another script is pending. */
int remote_exec_ask(const struct remote_exec *remote, const char *path, struct error *err);

/* Withdraw the request. False: the script has begun or ended. */
bool remote_exec_withdraw(const struct remote_exec *remote);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Has a running CPython execute a script (PEP 768, CPython 3.14 and later): its main thread does so
 * when it next looks whether it is to do something else than its bytecode. Its memory is written, as
 * sys.remote_exec() does; it is not stopped.
 */
#ifndef GILTRACER_LIVE_REMOTE_EXEC_H
#define GILTRACER_LIVE_REMOTE_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct target;

/**
 * The main thread, which is asked.
 * @request, @script: addresses of the flag and of the path
 * @breaker: of the byte that makes it look
 * @gil: of its interpreter
 */
struct remote_exec {
	const struct target *target;
	uint64_t request, script, breaker, gil;
};

/* Whether it can be asked. Errors: ENOTSUP its version cannot, or was told not to, EACCES it is another
 * user's or container's. */
int remote_exec_find(struct remote_exec *ret, const struct target *target, struct error *err);

/* Ask; path is absolute, and readable by the process. Whoever asked before is EBUSY. */
int remote_exec_ask(const struct remote_exec *remote, const char *path, struct error *err);

/* It need not. False: it has begun, or has ended. */
bool remote_exec_withdraw(const struct remote_exec *remote);

#endif

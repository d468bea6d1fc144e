/* SPDX-License-Identifier: MIT */
#include "live/remote_exec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "python/memory.h"
#include "live/remote_call.h"
#include "python/target.h"

#define THREADS_MAX 100000

/* _Py_MAX_SCRIPT_PATH_SIZE, the same in all versions so far. */
#define PATH_SIZE 512

/*
 * The bits to set in the lowest byte of PyThreadState.eval_breaker, which is overwritten by one
 * write (Include/internal/pycore_ceval.h). If there is nothing to do for one of these bits, the
 * thread ignores it:
 *
 *	2	signals pending		4	calls to do		8	asynchronous exception
 *	32	please stop
 *
 * By setting them all, none can be lost. Two others are cleared, because they are set again if
 * needed: a thread that wants the GIL asks again after the switch interval, and the garbage
 * collector is due until it has run. They must not be set here: a thread that is asked to release
 * the GIL waits until another one has taken it. The remaining bit, the JIT compiler's, is
 * preserved.
 */
#define BREAKER_BITS 0x2e
#define BREAKER_JIT  0x80

/* _Py_DebugOffsets.debugger_support. */
struct offsets {
	uint64_t breaker, support, enabled, request, script, script_size;
};

/* The PyThreadState of the process's main thread in an interpreter; 0: none. */
static uint64_t find_in(const struct target *target, uint64_t interpreter)
{
	const uint32_t *at = target->def->memory;
	uint64_t thread = interpreter;
	uint32_t id, next = at[MEMORY_THREADS];

	for (unsigned i = 0; i < THREADS_MAX; i++, next = at[MEMORY_NEXT_THREAD]) {
		if (!memory_u64(target->pid, thread + next, &thread) || !thread)
			return 0;
		if (memory_u32(target->pid, thread + at[MEMORY_NATIVE_ID], &id) &&
		    id == (uint32_t)target->pid)
			return thread;
	}
	return 0;
}

/* Finds the main thread in the main interpreter, which is the last one in the list. */
static bool find_main(const struct target *target, uint64_t *thread, uint64_t *interpreter)
{
	const uint32_t *at = target->def->memory;
	uint64_t next = target->root + at[MEMORY_INTERPRETERS];

	*interpreter = 0;
	for (unsigned i = 0; i < THREADS_MAX && memory_u64(target->pid, next, &next) && next; i++) {
		*interpreter = next;
		next += at[MEMORY_NEXT_INTERPRETER];
	}
	*thread = *interpreter ? find_in(target, *interpreter) : 0;
	return *thread;
}

int remote_exec_find(struct remote_exec *ret, const struct target *target, struct error *err)
{
	const struct probedef *def = target->def;
	uint64_t thread, interpreter;
	uint32_t enabled;
	struct offsets at;

	if (def->memory[MEMORY_DEBUGGER] == PROBEDEF_NO_OFFSET || def->free_threaded)
		return error_set(
			err, ENOTSUP,
			"process %d: Python %s cannot load the library while it runs: 3.14 "
			"and later with a GIL can",
			(int)target->pid, target->process.python->version);
	if (remote_check_owner(target, err) < 0)
		return -1;
	if (!find_main(target, &thread, &interpreter) ||
	    !memory_read(target->pid, target->root + def->memory[MEMORY_DEBUGGER], &at,
	                 sizeof(at)) ||
	    !memory_u32(target->pid, interpreter + at.enabled, &enabled) ||
	    !memory_u64(target->pid, interpreter + def->memory[MEMORY_GIL], &ret->gil))
		return error_set(err, ESRCH, "process %d: its main thread runs no Python",
		                 (int)target->pid);
	/* This memory will be written, so an unknown layout is refused. */
	if (at.script_size != PATH_SIZE || at.script != 4 || at.request != 0 || enabled > 1)
		return error_set(err, ENOTSUP, "process %d: its Python %s is not supported",
		                 (int)target->pid, target->process.python->version);
	if (!enabled)
		return error_set(err, ENOTSUP,
		                 "process %d was started with -X disable-remote-debug or "
		                 "PYTHON_DISABLE_REMOTE_DEBUG, or its Python was built without "
		                 "remote debugging",
		                 (int)target->pid);
	ret->target = target;
	ret->request = thread + at.support + at.request;
	ret->script = thread + at.support + at.script;
	ret->breaker = thread + at.breaker;
	return 0;
}

/* Makes the thread check for pending work. */
static bool wake(const struct remote_exec *remote)
{
	pid_t pid = remote->target->pid;
	uint8_t bits;

	if (!memory_read(pid, remote->breaker, &bits, sizeof(bits)))
		return false;
	bits = (bits & BREAKER_JIT) | BREAKER_BITS;
	return memory_write(pid, remote->breaker, &bits, sizeof(bits));
}

int remote_exec_ask(const struct remote_exec *remote, const char *path, struct error *err)
{
	const uint32_t yes = 1;
	char script[PATH_SIZE] = "";
	pid_t pid = remote->target->pid;
	uint32_t asked;

	if (strlen(path) >= sizeof(script))
		return error_set(err, ENAMETOOLONG, "%s: its name is too long", path);
	memcpy(script, path, strlen(path));
	if (memory_u32(pid, remote->request, &asked) && asked)
		return error_set(err, EBUSY, "process %d: a debugger's script is pending",
		                 (int)pid);
	if (!memory_write(pid, remote->script, script, sizeof(script)) ||
	    !memory_write(pid, remote->request, &yes, sizeof(yes)))
		return error_errno(err, "process %d: cannot write its memory", (int)pid);
	if (wake(remote))
		return 0;
	error_errno(err, "process %d: cannot write its memory", (int)pid);
	remote_exec_withdraw(remote);
	return -1;
}

bool remote_exec_withdraw(const struct remote_exec *remote)
{
	const uint32_t no = 0;
	uint32_t asked = 0;

	memory_read(remote->target->pid, remote->request, &asked, sizeof(asked));
	return asked && memory_write(remote->target->pid, remote->request, &no, sizeof(no));
}

/* SPDX-License-Identifier: MIT */
/* Tries the system call itself; reads settings only to explain a refusal. */
#include "system/perf_try.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "system/host.h"
#include "system/perf_attr.h"
#include "system/sandbox.h"
#include "system/tracefs.h"

#define SMALL_MAX 65536

static int open_event(struct perf_event_attr attr)
{
	CLEANUP(close)
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : 0;
}

static int explain(int code, const char *what, int allowed, struct error *err)
{
	CLEANUP(free) char *paranoid = host_sysctl("kernel.perf_event_paranoid");
	long level = paranoid ? strtol(paranoid, NULL, 10) : -1;

	if (!paranoid)
		return error_set(err, code, "%s: this kernel has no perf events", what);
	if (sandbox_filtered() && (code == EPERM || code == ENOSYS))
		return error_set(err, code, "%s: a seccomp filter denies perf_event_open", what);
	if ((code == EACCES || code == EPERM) && level > allowed && !sandbox_perfmon_capable())
		return error_set(err, code,
		                 "%s: kernel.perf_event_paranoid is %ld; without CAP_PERFMON it "
		                 "must be at most %d",
		                 what, level, allowed);
	if (code == EACCES || code == EPERM)
		return error_set(err, code,
		                 "%s: perf_event_open is denied by a security module (SELinux, "
		                 "AppArmor, lockdown) or a seccomp filter, not by "
		                 "kernel.perf_event_paranoid",
		                 what);
	return error_set(err, code, "%s: %s", what, strerror(code));
}

int perf_try_self(struct error *err)
{
	int status = open_event(perf_attr_self());

	return status < 0 ? explain(-status, "perf events", 2, err) : 0;
}

bool perf_reads_inherited(void)
{
	return open_event(perf_attr_inherited()) == 0;
}

static int attr_of(struct perf_event_attr *ret, const char *group, const char *event,
                   struct error *err)
{
	CLEANUP(free) char *root = NULL;
	CLEANUP(free) char *path = NULL;
	CLEANUP(free) char *id = NULL;

	if (tracefs_find(&root, err) < 0)
		return -1;
	path = xasprintf("%s/events/%s/%s/id", root, group, event);
	if (file_read(&id, NULL, path, SMALL_MAX, err) < 0)
		return -1;
	*ret = perf_attr_tracepoint(strtoull(id, NULL, 10));
	return 0;
}

int perf_hold_event(const char *group, const char *event)
{
	struct perf_event_attr attr;
	struct error ignored;

	if (attr_of(&attr, group, event, &ignored) < 0)
		return -1;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int perf_try_event(const char *group, const char *event, struct error *err)
{
	CLEANUP(free) char *name = xasprintf("%s:%s", group, event);
	struct perf_event_attr attr;
	int status;

	if (attr_of(&attr, group, event, err) < 0)
		return -1;
	status = open_event(attr);
	return status < 0 ? explain(-status, name, -1, err) : 0;
}

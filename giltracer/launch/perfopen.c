/* SPDX-License-Identifier: MIT */
/* Tries the system call itself; the settings are only read to explain a refusal. */
#include "perfopen.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "launch/around.h"
#include "launch/host.h"
#include "launch/tracefs.h"

#define SMALL_MAX 65536

static int open_event(struct perf_event_attr *attr)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int explain(int code, const char *what, int allowed, struct error *err)
{
	CLEANUP(free) char *paranoid = host_sysctl("kernel.perf_event_paranoid");
	long level = paranoid ? strtol(paranoid, NULL, 10) : -1;

	if (!paranoid)
		return error_set(err, code, "%s: this kernel has no perf events", what);
	if (around_filtered() && (code == EPERM || code == ENOSYS))
		return error_set(err, code, "%s: a seccomp filter denies perf_event_open", what);
	if ((code == EACCES || code == EPERM) && level > allowed && !around_perfmon_capable())
		return error_set(err, code,
		                 "%s: kernel.perf_event_paranoid is %ld, it has to be at most %d "
		                 "without CAP_PERFMON",
		                 what, level, allowed);
	if (code == EACCES || code == EPERM)
		return error_set(err, code,
		                 "%s: perf_event_open is denied, but not by "
		                 "kernel.perf_event_paranoid: by a security module (SELinux, "
		                 "AppArmor, lockdown) or by a seccomp filter",
		                 what);
	return error_set(err, code, "%s: %s", what, strerror(code));
}

int perf_try_self(struct error *err)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int status = open_event(&attr);

	return status < 0 ? explain(-status, "perf events", 2, err) : 0;
}

bool perf_reads_inherited(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
		.sample_period = 4000,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_READ,
		.read_format = PERF_FORMAT_ID,
		.disabled = 1,
		.inherit = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return open_event(&attr) == 0;
}

int perf_try_event(const char *group, const char *event, struct error *err)
{
	CLEANUP(free) char *root = NULL;
	CLEANUP(free) char *path = NULL;
	CLEANUP(free) char *id = NULL;
	CLEANUP(free) char *name = xasprintf("%s:%s", group, event);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_RAW | PERF_SAMPLE_TIME,
		.disabled = 1,
	};
	int status;

	if (tracefs_find(&root, err) < 0)
		return -1;
	path = xasprintf("%s/events/%s/%s/id", root, group, event);
	if (file_read(&id, NULL, path, SMALL_MAX, err) < 0)
		return -1;
	attr.config = strtoull(id, NULL, 10);
	status = open_event(&attr);
	return status < 0 ? explain(-status, name, -1, err) : 0;
}

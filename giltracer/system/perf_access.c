/* SPDX-License-Identifier: MIT */
#include "system/perf_access.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "system/host.h"
#include "system/tracefs.h"

/* ---- whether the kernel lets this process record events, and if not, what forbids it */

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

int perf_hold_event(const char *group, const char *event, struct error *err)
{
	CLEANUP(free) char *name = xasprintf("%s:%s", group, event);
	struct perf_event_attr attr;
	int fd;

	if (attr_of(&attr, group, event, err) < 0)
		return -1;
	/* The kernel does not look for the uprobe's place in our own memory, for which it would first wait as
	 * long as for its removal. */
	attr.enable_on_exec = 1;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? explain(errno, name, -1, err) : fd;
}

/* ---- how much it may record */

#define OUTPUT_MAX 65536

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

/*
 * A larger buffer does not reduce the loss of records in bursts any further. Measured with stacks
 * of 4,096 bytes, on two CPUs at a load of 6 to 10: with 30,000 to 50,000 switches a second, up to
 * a quarter is lost in 16 MiB and nothing in 64 MiB; with 50,000 to 70,000 and another program that
 * always wants a CPU, up to 8 % in 64 MiB and nothing in 256 MiB (0 of 6 runs). The additional MiB
 * makes room for perf's control page.
 */
#define BUFFER_WANTED (257 * MIB)

/* Enough without stacks: records have 60 bytes then, not 4,300. */
#define BUFFER_PLAIN (65 * MIB)

static int64_t read_number(const char *path, int64_t otherwise)
{
	CLEANUP(free) char *text = NULL;
	struct error err;

	if (file_read(&text, NULL, path, 64, &err) < 0)
		return otherwise;
	return strtoll(text, NULL, 10);
}

static unsigned sample_rate(void)
{
	int64_t hz = read_number("/proc/sys/kernel/perf_event_max_sample_rate", 1000);

	return hz < 0 ? 0 : hz > INT_MAX ? INT_MAX : (unsigned)hz;
}

static uint64_t available_memory(void)
{
	CLEANUP(free) char *text = NULL;
	struct error err;
	const char *line;

	if (file_read(&text, NULL, "/proc/meminfo", 65536, &err) == 0 &&
	    (line = strstr(text, "\nMemAvailable:")))
		return strtoull(line + strlen("\nMemAvailable:"), NULL, 10) * KIB;
	return 256 * MIB;
}

/*
 * kernel/events/core.c, perf_mmap: perf_event_mlock_kb is counted per CPU and user, any excess
 * against RLIMIT_MEMLOCK, per process. Neither applies with CAP_IPC_LOCK or if paranoid is below 0.
 */
static void find_buffer(struct perf_limits *host)
{
	uint64_t cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t memory = available_memory() / 8 / cpus;
	struct rlimit limit = { 0 };

	host->buffer_bytes = memory < BUFFER_WANTED ? memory : BUFFER_WANTED;
	if ((host_capable(CAP_IPC_LOCK) && !sandbox_user_namespace()) ||
	    read_number("/proc/sys/kernel/perf_event_paranoid", 2) < 0)
		return;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur == RLIM_INFINITY)
		return;
	host->pool_bytes = (uint64_t)read_number("/proc/sys/kernel/perf_event_mlock_kb", 516) * KIB;
	host->own_bytes = limit.rlim_cur / cpus;
	if (host->pool_bytes + host->own_bytes < host->buffer_bytes) {
		host->buffer_bytes = host->pool_bytes + host->own_bytes;
		host->buffer_limited = true;
	}
}

/* A tracepoint with its data, of ourselves (pid 0) or of all processes (pid -1, on one cpu); -1: the kernel
 * does not let us open it. This tries it instead of reading settings. */
static int open_tracepoint(pid_t pid, int cpu)
{
	CLEANUP(free) char *root = NULL;
	CLEANUP(free) char *path = NULL;
	struct error err;
	struct perf_event_attr attr;
	int64_t id;

	if (tracefs_find(&root, &err) < 0)
		return -1;
	path = xasprintf("%s/events/sched/sched_switch/id", root);
	id = read_number(path, -1);
	if (id < 0)
		return -1;
	attr = perf_attr_tracepoint((uint64_t)id);
	return (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The output of perf, NULL if it cannot be run; the caller frees it. */
static char *ask_perf(const char *const *argv, bool (*prepare)(void), int *ret_status,
                      struct error *err)
{
	const struct capture capture = { .argv = argv, .max = OUTPUT_MAX, .prepare = prepare };
	struct captured out;

	if (capture_run(&out, &capture, err) < 0)
		return NULL;
	*ret_status = out.status;
	return out.text;
}

/* Asked for, because enterprise distributions backport options to a perf of an older version. */
static int ask_options(struct perf_limits *host, struct error *err)
{
	const char *const argv[] = { "perf", "record", "--list-opts", NULL };
	int status;
	CLEANUP(free) char *text = ask_perf(argv, NULL, &status, err);

	if (!text)
		return -1;
	if (!strstr(text, "--control"))
		return error_set(err, ENOTSUP,
		                 "perf %s is too old: giltracer needs perf 5.10 or newer",
		                 host->version);
	host->by_event = strstr(text, "--buildid-mmap");
	return 0;
}

/* On Ubuntu, perf is a script that starts the perf of the running kernel. */
static int no_perf_for_kernel(struct error *err)
{
	struct utsname host = { .release = "" };

	uname(&host);
	return error_set(err, ENOENT,
	                 "perf is not installed for this kernel (on Ubuntu: apt-get install "
	                 "linux-tools-%s)",
	                 host.release);
}

/* The reason is the first line of the output; without output, it is how perf ended. */
static int does_not_work(const char *text, int status, struct error *err)
{
	static const char begin[] = "perf does not work: ";

	text += strspn(text, "\n");
	if (*text)
		return error_set(err, ENOENT, "%s%.*s", begin, (int)strcspn(text, "\n"), text);
	if (WIFSIGNALED(status))
		return error_set(err, ENOENT, "%sperf --version was killed by signal %d (%s)",
		                 begin, WTERMSIG(status), strsignal(WTERMSIG(status)));
	return error_set(err, ENOENT, "%sperf --version prints nothing, and ends with status %d",
	                 begin, WEXITSTATUS(status));
}

/* If an administrator gave perf capabilities (setcap), the kernel refuses to execute it unless
 * it can get all of them; then it is asked again with CAP_SYSLOG. */
static char *ask_version(struct perf_limits *host, int *ret_status, struct error *err)
{
	const char *const argv[] = { "perf", "--version", NULL };
	char *text = ask_perf(argv, host_give_up_syslog, ret_status, err);

	host->without_syslog = text && !*ret_status;
	if (host->without_syslog)
		return text;
	free(text);
	return ask_perf(argv, NULL, ret_status, err);
}

static int find_version(struct perf_limits *host, struct error *err)
{
	int status;
	CLEANUP(free) char *text = ask_version(host, &status, err);
	unsigned major, minor;
	const char *number;

	if (!text)
		return err->code == ENOENT
		               ? error_set(err, ENOENT,
		                           "perf is not installed (on Debian: apt-get install "
		                           "linux-perf)")
		               : -1;
	number = strstr(text, "perf version ");
	if (strstr(text, "perf not found for kernel"))
		return no_perf_for_kernel(err);
	if (status || !number)
		return does_not_work(text, status, err);
	number += strlen("perf version ");
	host->version = xstrndup(number, strcspn(number, " \n"));
	if (sscanf(number, "%u.%u", &major, &minor) != 2)
		return error_set(err, ENOTSUP, "perf reports the unknown version '%s'",
		                 host->version);
	host->by_event = major > 5 || (major == 5 && minor >= 12);
	return host->by_event ? 0 : ask_options(host, err);
}

/* Whether perf was built with --aio. */
static bool has_aio(void)
{
	const char *const argv[] = { "perf", "version", "--build-options", NULL };
	struct error ignored;
	int status;
	CLEANUP(free) char *text = ask_perf(argv, NULL, &status, &ignored);
	const char *aio = text && !status ? strstr(text, "aio: [") : NULL;

	return aio && str_has_prefix(aio, "aio: [ on");
}

int perf_limits_find(struct perf_limits *ret, struct error *err)
{
	int cpu = sched_getcpu(); /* CPU 0 may be offline */

	*ret = (struct perf_limits){ .tried_fd = open_tracepoint(-1, cpu >= 0 ? cpu : 0) };
	/* A user who may record all processes may record their own. */
	ret->everybody = ret->tried_fd >= 0;
	if (!ret->everybody)
		ret->tried_fd = open_tracepoint(0, -1);
	ret->tracepoints = ret->tried = ret->tried_fd >= 0;
	if (find_version(ret, err) < 0) {
		perf_limits_done(ret);
		return -1;
	}
	ret->sample_hz = sample_rate();
	find_buffer(ret);
	ret->aio = ret->buffer_limited && has_aio();
	return 0;
}

void perf_limits_close(struct perf_limits *host)
{
	if (host->tried)
		close(host->tried_fd);
	host->tried = false;
}

void perf_limits_done(struct perf_limits *host)
{
	free(host->version);
	perf_limits_close(host);
	*host = (struct perf_limits){ 0 };
}

/* The kernel charges the shared pool first. If the pool is the larger part, all recordings get
 * an equal share; else the first one uses the pool up, and the others have only their own limit. */
static uint64_t buffer_of(const struct perf_limits *host, const struct perf_share *share)
{
	if (!host->buffer_limited)
		return host->buffer_bytes / share->share;
	if (host->own_bytes < host->pool_bytes)
		return host->buffer_bytes / share->count;
	return share->index ? host->own_bytes : host->buffer_bytes;
}

unsigned perf_limits_pages(const struct perf_limits *host, const struct perf_share *share)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t mine = buffer_of(host, share);
	unsigned pages = 1;

	if (!share->stacks && mine > BUFFER_PLAIN)
		mine = BUFFER_PLAIN;
	/* Each buffer has one more page, perf's control page. */
	while ((2 * (uint64_t)pages + 1) * page <= mine)
		pages *= 2;
	return pages;
}

unsigned perf_limits_stack_size(uint64_t buffer_bytes)
{
	if (buffer_bytes >= 16 * MIB)
		return 4096;
	return buffer_bytes >= 8 * MIB ? 2048 : 1024;
}

/* SPDX-License-Identifier: MIT */
/* Tells who owns a probe group, by records in RUNDIR, locks on them, and a marker in the kernel. */
#include "system/probe_lease.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/procfs.h"
#include "base/str.h"
#include "system/sandbox.h"
#include "system/tracefs.h"

#define RECORD_MAX 8192
#define LOCKS_MAX  (1u << 20)
#define SUFFIX     "_c"
#define RUNDIR     "/run/giltracer"

/* Twenty seconds in total: installing or removing takes one or two, and more where many giltracers end
 * at the same time. */
#define LOCK_LOOK_NS 20000000
#define LOCK_TRIES   1000

static const char *rundir(void)
{
	const char *dir = secure_getenv("GILTRACER_RUNDIR");

	return dir && *dir ? dir : NULL;
}

char *lease_path(const char *name)
{
	const char *dir = rundir();

	return xasprintf("%s/%s", dir ? dir : RUNDIR, name);
}

/* A container may see the host's processes and still have its own /run. A user who may not read
 * this is not root, and installs nothing. */
static bool is_run_of_init(const struct stat *run)
{
	struct stat init;

	return stat("/proc/1/root/run", &init) < 0 ||
	       (init.st_dev == run->st_dev && init.st_ino == run->st_ino);
}

static uint32_t hash(uint32_t seed, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		seed = (seed ^ bytes[i]) * 0x01000193;
	return seed;
}

char *lease_suffix(void)
{
	const char *dir = rundir();
	struct stat run = { 0 };
	uint32_t sum = 0x811c9dc5;

	if (stat("/run", &run) < 0 ||
	    (!dir && !sandbox_own_pid_namespace() && is_run_of_init(&run)))
		return xstrdup("");
	sum = hash(sum, &run.st_dev, sizeof(run.st_dev));
	sum = hash(sum, &run.st_ino, sizeof(run.st_ino));
	if (dir)
		sum = hash(sum, dir, strlen(dir));
	return xasprintf(SUFFIX "%06x", (sum ^ sum >> 24) & 0xffffff);
}

bool lease_is_foreign(const char *group)
{
	CLEANUP(free) char *ours = lease_suffix();
	const char *last = strrchr(group, '_');
	bool has_suffix = last && strlen(last) == strlen(SUFFIX) + 6;

	return strcmp(has_suffix ? last : "", ours) != 0;
}

int lease_make_folder(struct error *err)
{
	CLEANUP(free) char *dir = lease_path("");

	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return error_errno(err, "%s", dir);
	return 0;
}

/* The process that holds the lock, found in a line such as "3: FLOCK  ADVISORY  WRITE 1234
 * fe:00:5678 0 EOF" of /proc/locks; 0: none that is visible. */
static int lock_holder(const struct stat *st)
{
	CLEANUP(free) char *text = NULL;
	CLEANUP(free)
	char *file = xasprintf(" %02x:%02x:%" PRIu64 " ", major(st->st_dev), minor(st->st_dev),
	                       (uint64_t)st->st_ino);
	struct error ignored;
	char *rest, *line;
	int pid = 0;

	if (file_read(&text, NULL, "/proc/locks", LOCKS_MAX, &ignored) < 0)
		return 0;
	rest = text;
	while (!pid && (line = strsep(&rest, "\n")))
		if (!strstr(line, file) || sscanf(line, "%*s FLOCK ADVISORY %*s %d", &pid) != 1)
			pid = 0;
	return pid;
}

static int say_locked(int fd, const char *path, struct error *err)
{
	CLEANUP(free) char *comm = NULL;
	struct stat st;
	int pid = fstat(fd, &st) == 0 ? lock_holder(&st) : 0;

	if (!pid)
		return error_set(err, EBUSY, "%s is locked by another process", path);
	comm = procfs_comm(pid, 0);
	return error_set(err, EBUSY, "%s is locked by process %d (%s)", path, pid,
	                 comm ? comm : "which has ended");
}

/* Any process that can open the file can hold the lock for ever, so there is a deadline, and
 * signals that ask us to end are obeyed even while they are blocked. */
static int lock_in_time(int fd, int how, const char *path, struct error *err)
{
	const struct timespec pause = { .tv_nsec = LOCK_LOOK_NS };

	for (unsigned i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, how | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return error_errno(err, "%s: cannot lock", path);
		if (signals_ending())
			return error_set(err, EINTR, "interrupted");
		nanosleep(&pause, NULL);
	}
	return say_locked(fd, path, err);
}

int lease_lock_all(int *ret_fd, struct error *err)
{
	CLEANUP(free) char *path = lease_path("lock");
	CLEANUP(close) int fd = -1;

	if (lease_make_folder(err) < 0)
		return -1;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_errno(err, "%s", path);
	if (lock_in_time(fd, LOCK_EX, path, err) < 0)
		return -1;
	*ret_fd = take_fd(&fd);
	return 0;
}

static int record_open(const char *group, int flags)
{
	CLEANUP(free) char *path = lease_path(group);

	return open(path, flags | O_CLOEXEC, 0600);
}

bool lease_read(const char *group, struct lease_record *ret)
{
	CLEANUP(free) char *path = lease_path(group);
	CLEANUP(free) char *text = NULL;
	struct error ignored;

	if (file_read(&text, NULL, path, RECORD_MAX, &ignored) < 0)
		return false;
	return sscanf(text, "run %" SCNu64 " %" SCNu64, &ret->dev, &ret->ino) == 2;
}

/* The file is overwritten in place, because users hold locks on the inode. Any reader could lock it
 * for ever, so nobody else may read it. */
int lease_write(const char *group, const char *file, struct error *err)
{
	CLEANUP(close) int fd = record_open(group, O_RDWR | O_CREAT);
	CLEANUP(free) char *text = NULL;
	struct stat st;

	if (fd < 0)
		return error_errno(err, "cannot record the owner of %s", group);
	if (stat(file, &st) < 0)
		return error_errno(err, "%s", file);
	text = xasprintf("run %" PRIu64 " %" PRIu64 " %s\n", (uint64_t)st.st_dev,
	                 (uint64_t)st.st_ino, file);
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, strlen(text), 0) != (ssize_t)strlen(text))
		return error_errno(err, "cannot record the owner of %s", group);
	return 0;
}

void lease_remove(const char *group)
{
	CLEANUP(free) char *path = lease_path(group);

	unlink(path);
}

int lease_share(const char *group, int *ret_fd, struct error *err)
{
	CLEANUP(close) int fd = record_open(group, O_RDONLY);
	CLEANUP(free) char *path = lease_path(group);

	if (fd < 0)
		return error_errno(err, "record of %s", group);
	if (lock_in_time(fd, LOCK_SH, path, err) < 0)
		return -1;
	*ret_fd = take_fd(&fd);
	return 0;
}

bool lease_is_used(const char *group)
{
	CLEANUP(close) int fd = record_open(group, O_RDONLY);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* The path must not contain blanks, at which tracefs splits its commands. */
int lease_mark(const char *root, const char *group, struct error *err)
{
	CLEANUP(free) char *path = lease_path(group);
	CLEANUP(free) char *line = xasprintf("p:%s/" LEASE_MARKER " %s:0x0", group, path);

	if (strpbrk(path, " \t\n"))
		return error_set(err, EINVAL, "%s: a folder for records must not contain spaces",
		                 path);
	if (tracefs_has_event(root, group, LEASE_MARKER))
		return 0;
	return tracefs_command(root, line, err);
}

int lease_hold(const char *root, const char *group)
{
	CLEANUP(free) char *path = xasprintf("%s/events/%s/" LEASE_MARKER "/id", root, group);
	CLEANUP(free) char *id = NULL;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.disabled = 1,
	};
	struct error ignored;

	if (file_read(&id, NULL, path, RECORD_MAX, &ignored) < 0)
		return -1;
	attr.config = strtoull(id, NULL, 10);
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

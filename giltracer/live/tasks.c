/* SPDX-License-Identifier: MIT */
#include "live/tasks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/procfs.h"

/* ---- what a thread is doing, judged by its present system call: /proc/PID/task/TID/syscall */

/**
 * @activity: SAMPLE_UNKNOWN if the text does not tell
 * @futex: address of the futex for which the thread sleeps; 0: none
 * @sp: its stack pointer then; 0: unknown
 */
struct activity {
	enum sample_activity activity;
	uint64_t futex, sp;
};

/* The calls that mean the same activity for any descriptor. Not every architecture has the older
 * ones. */
static enum sample_activity of_call(long number)
{
	switch (number) {
	case SYS_futex:
#ifdef SYS_futex_waitv
	case SYS_futex_waitv:
#endif
		return SAMPLE_LOCK;
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
		return SAMPLE_NETWORK;
#ifdef SYS_poll
	case SYS_poll:
	case SYS_select:
	case SYS_epoll_wait:
#endif
	case SYS_ppoll:
	case SYS_pselect6:
	case SYS_epoll_pwait:
		return SAMPLE_POLL;
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
		return SAMPLE_SLEEP;
	case SYS_wait4:
	case SYS_waitid:
		return SAMPLE_CHILD;
	case SYS_fsync:
	case SYS_fdatasync:
		return SAMPLE_FILE;
	}
	return SAMPLE_OTHER;
}

static bool is_transfer(long number)
{
	switch (number) {
	case SYS_read:
	case SYS_write:
	case SYS_readv:
	case SYS_writev:
	case SYS_pread64:
	case SYS_pwrite64:
	case SYS_sendfile:
		return true;
	}
	return false;
}

static bool is_socket(pid_t pid, uint64_t fd)
{
	char path[64], target[16];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%llu", (int)pid, (unsigned long long)fd);
	n = readlink(path, target, sizeof(target));
	return n > 7 && !memcmp(target, "socket:", 7);
}

#define ARGUMENTS 6

/* The text is "running", "-1 SP PC" if the thread sleeps outside of a system call, or "NUMBER
 * 0xARGUMENT… SP PC". */
static struct activity activity_of(const char *text, pid_t pid)
{
	struct activity ret = { SAMPLE_UNKNOWN, 0, 0 };
	char *end;
	long number;
	uint64_t argument;

	if (!strncmp(text, "running", 7)) {
		ret.activity = SAMPLE_RUNNING;
		return ret;
	}
	number = strtol(text, &end, 10);
	if (end == text)
		return ret;
	argument = strtoull(end, &end, 16);
	ret.activity = number < 0 ? SAMPLE_OTHER : of_call(number);
	if (number >= 0 && is_transfer(number))
		ret.activity = is_socket(pid, argument) ? SAMPLE_NETWORK : SAMPLE_FILE;
	if (ret.activity != SAMPLE_LOCK || number != SYS_futex)
		return ret;
	ret.futex = argument;
	for (unsigned i = 1; i <= ARGUMENTS; i++)
		ret.sp = strtoull(end, &end, 16);
	return ret;
}

struct cstack cstack_find(pid_t pid, uint64_t address)
{
	CLEANUP(free) char *maps = procfs_read(pid, 0, "maps", NULL);
	struct procfs_mapping m;
	char *rest = maps;

	while (procfs_next_mapping(&m, &rest))
		if (address >= m.start && address < m.end)
			return (struct cstack){ .low = m.start,
				                .high = m.end,
				                .of_main = !strcmp(m.path, "[stack]") };
	return (struct cstack){ 0 };
}

#define ALL_NS NS_PER_SECOND /* how often names and states are read */

static void read_stat(struct task *task, pid_t pid)
{
	struct procfs_stat stat;

	if (procfs_stat(&stat, pid, (pid_t)task->tid))
		snprintf(task->name, sizeof(task->name), "%.15s", stat.name);
	task->state = stat.state ? stat.state : '?';
}

/* ---- all threads */

static struct task *find_tid(struct tasks *tasks, uint32_t tid)
{
	uint32_t at = idmap_get(&tasks->by_tid, tid);

	return at == IDMAP_NONE ? NULL : &tasks->v.v[at];
}

static void number(struct tasks *tasks)
{
	uint32_t ignored;

	idmap_done(&tasks->by_tid);
	idmap_done(&tasks->by_own_tid);
	for (size_t i = 0; i < tasks->v.n; i++) {
		idmap_set(&tasks->by_tid, tasks->v.v[i].tid, (uint32_t)i);
		idmap_add(&tasks->by_own_tid, tasks->v.v[i].own_tid, (uint32_t)i, &ignored);
	}
}

static int open_syscall(pid_t pid, uint32_t tid)
{
	CLEANUP(free) char *path = procfs_path(pid, (pid_t)tid, "syscall");

	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Whether this descriptor may stay open: half of the permitted ones are left for other purposes. */
static bool may_stay(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) < 0 || (rlim_t)fd < limit.rlim_cur / 2;
}

static void keep_open(struct task *task, pid_t pid)
{
	task->fd = open_syscall(pid, task->tid);
	if (task->fd < 0 || may_stay(task->fd))
		return;
	close(task->fd);
	task->fd = -1;
	task->opens = true;
}

static void read_task(struct tasks *tasks, pid_t pid, uint32_t tid)
{
	struct task *task = find_tid(tasks, tid);

	if (!task) {
		idmap_set(&tasks->by_tid, tid, (uint32_t)tasks->v.n);
		task = vec_push(&tasks->v);
		*task = (struct task){ .tid = tid };
		keep_open(task, pid);
		task->own_tid = procfs_own_number(pid, (pid_t)task->tid);
	}
	task->seen = true;
	read_stat(task, pid);
}

static void close_task(const struct task *task)
{
	if (task->fd >= 0)
		close(task->fd);
}

static void drop_gone(struct tasks *tasks)
{
	size_t kept = 0;

	for (size_t i = 0; i < tasks->v.n; i++) {
		if (tasks->v.v[i].seen)
			tasks->v.v[kept++] = tasks->v.v[i];
		else
			close_task(&tasks->v.v[i]);
	}
	tasks->v.n = kept;
}

static int compare(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int read_all(struct tasks *tasks, pid_t pid, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("/proc/%d/task", (int)pid);
	CLEANUP(closedir) DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		return errno == ENOENT || errno == ESRCH
		               ? error_set(err, ESRCH, "process %d has ended", (int)pid)
		               : error_errno(err, "%s", path);
	for (size_t i = 0; i < tasks->v.n; i++)
		tasks->v.v[i].seen = false;
	while ((entry = readdir(dir))) {
		uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (tid)
			read_task(tasks, pid, tid);
	}
	drop_gone(tasks);
	vec_sort(&tasks->v, compare);
	number(tasks);
	tasks->read_ns = clock_now_ns();
	return 0;
}

/* ---- activities */

static void read_activity(struct task *task, pid_t pid)
{
	char text[256];
	int fd = task->opens ? open_syscall(pid, task->tid) : task->fd;
	ssize_t n = fd >= 0 ? pread(fd, text, sizeof(text) - 1, 0) : -1;
	struct activity a;

	if (task->opens && fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	a = activity_of(text, pid);
	task->activity = a.activity;
	task->futex = a.futex;
	task->sp = a.sp;
	/* If the file is not readable, only the state is known. */
	if (a.activity == SAMPLE_UNKNOWN && task->state == 'R')
		task->activity = SAMPLE_RUNNING;
}

int tasks_look(struct tasks *tasks, pid_t pid, bool again, struct error *err)
{
	if ((again || !tasks->v.n || clock_now_ns() - tasks->read_ns >= ALL_NS) &&
	    read_all(tasks, pid, err) < 0)
		return -1;
	for (size_t i = 0; i < tasks->v.n; i++)
		read_activity(&tasks->v.v[i], pid);
	return 0;
}

void tasks_done(struct tasks *tasks)
{
	for (size_t i = 0; i < tasks->v.n; i++)
		close_task(&tasks->v.v[i]);
	vec_done(&tasks->v);
	idmap_done(&tasks->by_tid);
	idmap_done(&tasks->by_own_tid);
}

const struct task *tasks_find(const struct tasks *tasks, uint32_t own_tid)
{
	uint32_t at = idmap_get(&tasks->by_own_tid, own_tid);

	return at == IDMAP_NONE ? NULL : &tasks->v.v[at];
}

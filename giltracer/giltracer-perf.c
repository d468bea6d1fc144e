/* SPDX-License-Identifier: MIT */
/*
 * Runs perf with CAP_PERFMON for the members of a group, on their own programs only. giltracer
 * setup gives a copy of this program the capabilities; perf itself has none. The kernel lets
 * CAP_PERFMON record any process, so this program makes the check that the kernel makes without it:
 *
 *	giltracer-perf record WORD…	see record/perfwords.h
 *	giltracer-perf try EVENT	open GROUP:EVENT, "self" or "inherited" on itself; the exit
 *					status is errno
 *
 * Between the check and perf's opening of its events, the process could become another one: by
 * executing a set-user-ID program, or by ending, after which its number may be reused. So an event
 * of ours is opened on it before the check. The kernel ends that event for good in both cases. It
 * is checked after perf has opened its events, which do not record before.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "record/perfwords.h"
#include "system/perf_attr.h"
#include "system/perf_path.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

/* The folder of tracefs that giltracer setup shares with the group. */
#define TRACING "/run/giltracer/tracing"

static const int CAPABILITIES[] = { CAP_PERFMON, CAP_IPC_LOCK };

/* ---- capabilities */

/* Selects the capabilities that remain permitted, are effective, and are inherited. */
static int caps_set(bool permitted, bool effective, bool inheritable)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct v[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, v) < 0)
		return -1;
	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		v[i].permitted = permitted ? v[i].permitted : 0;
		v[i].effective = effective ? v[i].permitted : 0;
		v[i].inheritable = inheritable ? v[i].permitted : 0;
	}
	return (int)syscall(SYS_capset, &header, v);
}

/* perf inherits the capabilities. So would programs that perf starts, but it starts none here. */
static int caps_pass_on(void)
{
	if (caps_set(true, true, true) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(CAPABILITIES) / sizeof(*CAPABILITIES); i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAPABILITIES[i], 0, 0) < 0)
			return -1;
	return 0;
}

/* ---- the process that is recorded */

static int open_event(struct perf_event_attr attr, pid_t pid)
{
	return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Checks that the process is the caller's, as ptrace(2) does for reading, without any
 * capability. */
static int check_own(pid_t pid, struct error *err)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	if (caps_set(true, false, false) < 0)
		return error_errno(err, "capset");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_errno(err, "process %d is not yours to record", (int)pid);
	close(fd);
	return caps_set(true, true, false) < 0 ? error_errno(err, "capset") : 0;
}

/* Opens an event with a buffer: without one, poll would report it as ended. */
static int watch(pid_t pid, struct error *err)
{
	int fd = open_event(perf_attr_self(), pid);

	if (fd < 0)
		return error_errno(err, "process %d", (int)pid);
	if (mmap(NULL, 2 * (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
	         0) == MAP_FAILED) {
		close(fd);
		return error_errno(err, "process %d: mmap", (int)pid);
	}
	return check_own(pid, err) < 0 ? -1 : fd;
}

static bool has_stayed(int watched)
{
	struct pollfd pfd = { .fd = watched, .events = POLLIN };

	return poll(&pfd, 1, 0) == 0;
}

/* ---- perf */

static void __attribute__((noreturn)) exec_perf(const struct perf_plan *plan)
{
	/* No settings, plugins or libraries of the caller are used. */
	static char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", home[] = "HOME=/nonexistent",
		    tracing[] = "TRACEFS_PATH=" TRACING, config[] = "PERF_CONFIG=/dev/null",
		    locale[] = "LC_ALL=C";
	char *const environment[] = { path, home, tracing, config, locale, NULL };

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (caps_pass_on() == 0)
		execve(plan->perf, perfcmd_argv(plan), environment);
	fprintf(stderr, "%s: %s\n", plan->perf, strerror(errno));
	_exit(126);
}

/* Our ends of perf's control pipes. */
struct perf {
	pid_t pid;
	int control, ack;
};

static int start_perf(struct perf *ret, struct perf_plan plan, struct error *err)
{
	int control[2], ack[2];

	plan.perf = perf_path();
	if (!plan.perf)
		return error_set(err, ENOENT, "no perf in /usr/bin that belongs to root");
	if (pipe2(control, O_CLOEXEC) < 0 || pipe2(ack, O_CLOEXEC) < 0)
		return error_errno(err, "pipe");
	plan.control_fd = control[0];
	plan.ack_fd = ack[1];
	ret->pid = fork();
	if (ret->pid < 0)
		return error_errno(err, "fork");
	if (ret->pid == 0) {
		fcntl(control[0], F_SETFD, 0);
		fcntl(ack[1], F_SETFD, 0);
		exec_perf(&plan);
	}
	close(control[0]);
	close(ack[1]);
	ret->control = control[1];
	ret->ack = ack[0];
	return 0;
}

static pid_t perf_pid; /* for the handler */

static void pass_signal(int signal)
{
	kill(perf_pid, signal);
}

/* Copies some data; returns false at the end of from. */
static bool copy(int from, int to)
{
	char buf[512];
	ssize_t n = read(from, buf, sizeof(buf));

	return n > 0 ? write(to, buf, (size_t)n) == n : n < 0 && errno == EINTR;
}

/* Relays messages until perf ends; if the caller has gone away, tells perf to end. */
static void relay(const struct perf_plan *plan, const struct perf *perf)
{
	struct pollfd fds[] = {
		{ .fd = plan->control_fd, .events = POLLIN },
		{ .fd = perf->ack, .events = POLLIN },
	};

	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents && !copy(perf->ack, plan->ack_fd))
			return;
		if (fds[0].revents && !copy(plan->control_fd, perf->control)) {
			kill(perf->pid, SIGTERM);
			fds[0].fd = -1;
		}
	}
}

/* When perf answers, its events are open, but disabled. */
static bool is_ready(const struct perf *perf)
{
	char buf[16];

	return write(perf->control, "disable\n", 8) == 8 && read(perf->ack, buf, sizeof(buf)) > 0;
}

/* Ends with perf's exit status. */
static int finish(const struct perf *perf)
{
	int status = 0;

	while (waitpid(perf->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

static int record(char *const *words, struct error *err)
{
	struct perf_plan plan;
	struct perf perf = { 0 };
	int watched;

	if (perfwords_parse(&plan, words, err) < 0)
		return -1;
	watched = watch(plan.pid, err);
	if (watched < 0 || start_perf(&perf, plan, err) < 0 || caps_set(false, false, false) < 0)
		return -1;
	perf_pid = perf.pid;
	signal(SIGTERM, pass_signal);
	signal(SIGINT, pass_signal);
	signal(SIGPIPE, SIG_IGN);
	if (is_ready(&perf)) {
		if (!has_stayed(watched)) {
			kill(perf.pid, SIGKILL);
			return error_set(err, EPERM, "process %d was replaced by another one",
			                 (int)plan.pid);
		}
		relay(&plan, &perf);
	}
	return finish(&perf);
}

/* ---- questions */

static int tracepoint_id(uint64_t *ret, const char *event)
{
	char path[256], text[32] = "";
	const char *colon = strchr(event, ':');
	int fd, n;

	if (!colon || strpbrk(event, "/."))
		return -EINVAL;
	n = snprintf(path, sizeof(path), TRACING "/events/%.*s/%s/id", (int)(colon - event), event,
	             colon + 1);
	fd = n < (int)sizeof(path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return -errno;
	close(fd);
	*ret = strtoull(text, NULL, 10);
	return 0;
}

static int try_event(const char *event)
{
	uint64_t id = 0;
	int failed = 0;
	int fd;

	if (!strcmp(event, "self"))
		fd = open_event(perf_attr_self(), 0);
	else if (!strcmp(event, "inherited"))
		fd = open_event(perf_attr_inherited(), 0);
	else if ((failed = tracepoint_id(&id, event)) == 0)
		fd = open_event(perf_attr_tracepoint(id), 0);
	return failed ? -failed : fd < 0 ? errno : 0;
}

int main(int argc, char **argv)
{
	struct error err = { 0 };
	int status;

	if (argc == 3 && !strcmp(argv[1], "try"))
		return try_event(argv[2]);
	if (argc < 3 || strcmp(argv[1], "record") != 0) {
		fputs("usage: giltracer-perf record WORD... | try EVENT\n", stderr);
		return 125;
	}
	status = record(argv + 2, &err);
	if (status >= 0)
		return status;
	fprintf(stderr, "giltracer-perf: %s\n", err.text);
	return 125;
}

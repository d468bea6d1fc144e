/* SPDX-License-Identifier: MIT */
/* A process that reports the signals of its process group. */
#include "record/group_signals.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/procfs.h"
#include "base/str.h"

/* The kernel signals the processes of a group one after the other; ours may come first. */
#define WAIT_MS 10

/* A pending signal is reported as soon as the process gets a CPU. */
#define PENDING_MS 1000

/* A report for which we got no signal in that time is of one that was merged with another before we
 * took it. */
#define STALE_NS NS_PER_SECOND

/* Writes one byte per signal. It ends when giltracer does, even if killed before this call. */
static void watch(pid_t parent, int fd) __attribute__((noreturn));

static void watch(pid_t parent, int fd)
{
	sigset_t set;
	unsigned char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (getppid() == parent) {
		int signal = sigwaitinfo(&set, NULL);

		byte = (unsigned char)signal;
		if (signal > 0 && write(fd, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

int group_signals_start(struct group_signals *ret, struct error *err)
{
	pid_t parent = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_errno(err, "pipe");
	ret->fd = fds[0];
	ret->child.pid = fork();
	if (ret->child.pid == 0) {
		/* A reader of our output sees end-of-file only if this process keeps none of our
		 * streams open. */
		for (int fd = 0; fd <= 2; fd++)
			close(fd);
		watch(parent, fds[1]);
	}
	close(fds[1]);
	if (ret->child.pid > 0)
		return 0;
	ret->child.pid = 0;
	return error_errno(err, "fork");
}

/* Whether the process was sent the signal but has not handled it yet: ShdPnd in proc(5). */
static bool is_pending(const struct group_signals *group, int signal)
{
	CLEANUP(free) char *status = procfs_read(group->child.pid, 0, "status", NULL);
	const char *pending = status ? strstr(status, "\nShdPnd:") : NULL;

	return pending && strtoull(pending + strlen("\nShdPnd:"), NULL, 16) >> (signal - 1) & 1;
}

/* Of several pending signals, we take that of the lowest number first, so all reports are kept. */
static void read_reports(struct group_signals *group)
{
	unsigned char signal;

	while (read(group->fd, &signal, 1) == 1) {
		if (signal >= NSIG)
			continue;
		group->seen[signal].count++;
		group->seen[signal].at_ns = clock_now_ns();
	}
}

static bool was_reported(struct group_signals *group, int signal, int timeout_ms)
{
	struct pollfd ready = { .fd = group->fd, .events = POLLIN };
	struct group_signal *seen = &group->seen[signal];

	do {
		read_reports(group);
		if (clock_now_ns() - seen->at_ns > STALE_NS)
			seen->count = 0;
		if (seen->count) {
			seen->count--;
			return true;
		}
	} while (poll(&ready, 1, timeout_ms) > 0 && ready.revents & POLLIN);
	return false;
}

/* A signal that is not pending any more may be about to be reported. */
bool group_signals_saw(struct group_signals *group, int signal)
{
	return was_reported(group, signal, WAIT_MS) ||
	       was_reported(group, signal, is_pending(group, signal) ? PENDING_MS : WAIT_MS);
}

void group_signals_done(struct group_signals *group)
{
	child_done(&group->child);
	if (group->fd >= 0)
		close(take_fd(&group->fd));
}

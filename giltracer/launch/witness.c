/* SPDX-License-Identifier: MIT */
/* Says which signals the whole group got. */
#include "witness.h"

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
#include "base/str.h"

/* The kernel signals a group in one go, and we may have been first. */
#define WAIT_MS 10

/* A signal that is on its way is told as soon as the witness has a CPU. */
#define TOLD_MS 1000

/* One byte for each signal. It ends with us, also if we are killed before it says so. */
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

int witness_start(struct witness *ret, struct error *err)
{
	pid_t parent = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_errno(err, "pipe");
	ret->fd = fds[0];
	ret->child.pid = fork();
	if (ret->child.pid == 0) {
		/* Who waits for the end of our output must not wait for the witness. */
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

/* Whether it got the signal and has had no CPU yet to say so: ShdPnd in proc(5). */
static bool is_on_its_way(const struct witness *witness, int signal)
{
	CLEANUP(free) char *path = xasprintf("/proc/%d/status", (int)witness->child.pid);
	CLEANUP(fclose) FILE *f = fopen(path, "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (str_has_prefix(line, "ShdPnd:") &&
		    strtoull(line + strlen("ShdPnd:"), NULL, 16) >> (signal - 1) & 1)
			return true;
	return false;
}

static bool is_told(struct witness *witness, int signal, int timeout_ms)
{
	struct pollfd ready = { .fd = witness->fd, .events = POLLIN };
	unsigned char byte;

	while (poll(&ready, 1, timeout_ms) > 0 && read(witness->fd, &byte, 1) == 1)
		if (byte == signal)
			return true;
	return false;
}

bool witness_saw(struct witness *witness, int signal)
{
	return is_told(witness, signal, WAIT_MS) ||
	       (is_on_its_way(witness, signal) && is_told(witness, signal, TOLD_MS));
}

void witness_done(struct witness *witness)
{
	child_done(&witness->child);
	if (witness->fd >= 0)
		close(take_fd(&witness->fd));
}

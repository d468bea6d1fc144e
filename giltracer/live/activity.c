/* SPDX-License-Identifier: MIT */
#include "live/activity.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* The text is "running", "-1 SP PC" if the thread sleeps outside of a system call, or "NUMBER
 * 0xARGUMENT…". */
struct activity activity_of(const char *text, pid_t pid)
{
	struct activity ret = { SAMPLE_UNKNOWN, 0 };
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
	argument = strtoull(end, NULL, 16);
	ret.activity = number < 0 ? SAMPLE_OTHER : of_call(number);
	if (number >= 0 && is_transfer(number))
		ret.activity = is_socket(pid, argument) ? SAMPLE_NETWORK : SAMPLE_FILE;
	if (ret.activity == SAMPLE_LOCK && number == SYS_futex)
		ret.futex = argument;
	return ret;
}

/* SPDX-License-Identifier: MIT */
/*
 * What the holder of a GIL has done since it was asked to release it. Only proven time counts as
 * keeping the GIL: the time of its CPU clock, and voluntary sleep.
 *
 * That a thread was not on a CPU proves nothing: it may have been runnable, or stopped by a signal.
 * A waiting thread asks again at the end of each interval, and then examines the holder. A holder
 * that is asleep in two examinations and got no CPU in between has slept from one to the other,
 * because it would have needed a CPU to be stopped or to continue. If it sleeps for the GIL's
 * mutex, it is about to release the GIL, and another waiting thread without a CPU holds the mutex.
 */
#include "preload/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The shortest interval, because many threads may wait and examine the holder. */
#define LOOK_EVERY_NS 2000000

/* Reads /proc/self/task/TID/NAME. False: it cannot be read. */
static bool read_file(char *text, size_t size, pid_t tid, const char *name)
{
	static const char start[] = "/proc/self/task/";
	char path[64], *at = path + sizeof(start) - 1;
	long fd, n;

	memcpy(path, start, sizeof(start));
	at = process_put_number(at, (uint64_t)tid);
	memcpy(at, name, strlen(name) + 1);
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = syscall(SYS_read, fd, text, size - 1);
	syscall(SYS_close, fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* "TIME-ON-CPU RUN-DELAY SLICES"; the first is only updated at clock ticks. */
static void read_slices(struct holder_look *ret, pid_t tid)
{
	char text[80], *number;

	ret->delay_ns = ret->slices = 0;
	if (!read_file(text, sizeof(text), tid, "/schedstat"))
		return;
	number = strchr(text, ' ');
	if (!number)
		return;
	ret->delay_ns = strtoull(number, &number, 10);
	ret->slices = strtoull(number, NULL, 10);
}

/* Whether the thread waits for this mutex, or that is unknown. A mutex begins with its futex. */
static bool may_wait_for(pid_t tid, const pthread_mutex_t *mutex)
{
	char text[256], *argument;

	if (!read_file(text, sizeof(text), tid, "/syscall"))
		return true;
	if (strtol(text, &argument, 10) != SYS_futex)
		return false;
	return strtoull(argument, NULL, 16) == (uintptr_t)mutex;
}

/* Whether the thread sleeps voluntarily: it neither runs, nor is stopped, nor waits for the
 * GIL's mutex to release the GIL. Its name may contain anything. */
static bool sleeps(pid_t tid, const pthread_mutex_t *mutex)
{
	char text[256];
	const char *name_end;

	if (!read_file(text, sizeof(text), tid, "/stat"))
		return false;
	name_end = strrchr(text, ')');
	return name_end && name_end[1] == ' ' && (name_end[2] == 'S' || name_end[2] == 'D') &&
	       !may_wait_for(tid, mutex);
}

static uint64_t cpu_time(pid_t tid)
{
	const clockid_t clock = (clockid_t)(~(unsigned)tid << 3 | 6); /* clock_getcpuclockid(3) */
	struct timespec ts;

	if (syscall(SYS_clock_gettime, clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void look(struct holder_look *ret, pid_t tid, const pthread_mutex_t *mutex)
{
	uint64_t slices;

	read_slices(ret, tid);
	slices = ret->slices;
	ret->before_ns = clock_ns();
	ret->asleep = slices && sleeps(tid, mutex);
	/* The thread may have run and slept again before its state was read. */
	read_slices(ret, tid);
	ret->asleep &= ret->slices == slices;
	ret->at_ns = clock_ns();
}

/* An unknown thread is not examined: to the kernel, thread 0 would be the calling thread. */
void holder_asked(struct holder *h, pid_t tid, const pthread_mutex_t *mutex)
{
	int saved = errno;

	*h = (struct holder){ .tid = tid, .asked_ns = clock_ns() };
	if (!tid)
		return;
	look(&h->look, tid, mutex);
	h->asked_ns = clock_ns();
	h->cpu_ns = cpu_time(tid);
	errno = saved;
}

void holder_asked_again(struct holder *h, pid_t tid, const pthread_mutex_t *mutex)
{
	struct holder_look now;
	int saved = errno;

	if (h->tid != tid || !tid || clock_ns() - h->look.at_ns < LOOK_EVERY_NS)
		return;
	look(&now, tid, mutex);
	if (h->look.asleep && now.asleep && now.slices == h->look.slices)
		h->slept_ns += now.before_ns - h->look.at_ns;
	h->look = now;
	errno = saved;
}

/* Since the last examination, it has slept if it got one CPU, on which it still is. */
static uint64_t slept_since(const struct holder_look *last, pid_t tid, uint64_t cpu_ns)
{
	struct holder_look now = { .at_ns = clock_ns() };
	uint64_t ns = now.at_ns - last->at_ns, off_ns;

	read_slices(&now, tid);
	if (!last->asleep || now.slices != last->slices + 1)
		return 0;
	off_ns = now.delay_ns - last->delay_ns + cpu_ns;
	return ns > off_ns ? ns - off_ns : 0;
}

uint64_t holder_excused(const struct holder *h, pid_t tid)
{
	int saved = errno;
	uint64_t ns = clock_ns() - h->asked_ns, cpu_ns, kept_ns;

	if (h->tid != tid || !tid)
		return ns;
	cpu_ns = cpu_time(tid) - h->cpu_ns;
	kept_ns = cpu_ns + h->slept_ns + slept_since(&h->look, tid, cpu_ns);
	errno = saved;
	return ns > kept_ns ? ns - kept_ns : 0;
}

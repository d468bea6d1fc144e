/* SPDX-License-Identifier: MIT */
/* Reads time from the processor's own counter if that can measure time, else from the kernel. */
#include "preload/internal.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

bool clock_is_tsc;

static int (*real_clock_gettime)(clockid_t, struct timespec *);

#if defined(__x86_64__)
/* The kernel does not use a counter that differs between CPUs. */
static bool kernel_trusts_tsc(void)
{
	static const char path[] =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	char text[16] = "";
	long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (syscall(SYS_read, fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	syscall(SYS_close, fd);
	return !strncmp(text, "tsc", 3) || !strncmp(text, "kvm-clock", 9) ||
	       !strncmp(text, "hyperv", 6);
}

/* The counter must be constant and nonstop, so that its rate never changes, and rdtscp must
 * exist. */
static bool is_tsc_time(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1 << 8))
		return false;
	if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !(d & 1 << 27))
		return false;
	return kernel_trusts_tsc();
}
#endif

/* Uses libc's clock_gettime, because a library preloaded before ours may fake the time. */
void clock_begin(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	if (real_clock_gettime)
		return;
	if (libc)
		*(void **)&real_clock_gettime = dlsym(libc, "clock_gettime");
	if (!real_clock_gettime)
		*(void **)&real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
#if defined(__x86_64__)
	clock_is_tsc = is_tsc_time();
#endif
}

uint64_t clock_ns(void)
{
	struct timespec ts = { 0 };

	if (real_clock_gettime)
		real_clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void clock_look(uint64_t *stamp, uint64_t *ns)
{
	uint64_t narrowest = UINT64_MAX;

	/* A thread may be preempted between reading the two clocks, so the closest pair is used. */
	for (int i = 0; i < 5; i++) {
		uint64_t before = clock_stamp(), now = clock_ns(), after = clock_stamp();

		if (after - before >= narrowest)
			continue;
		narrowest = after - before;
		*stamp = before + narrowest / 2;
		*ns = now;
	}
}

/* SPDX-License-Identifier: MIT */
/* Breakpoints in the executable segments of a file that this process has mapped. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "python/probes.h"
#include "system/uprobes.h"

#include "built.h"
#include "tap.h"

#define PAGE       4096u
#define BREAKPOINT "\xcc"

/* Pages 0 and 2 are executable segments, page 1 is not mapped. */
static bool write_file(const char *path, off_t second)
{
	CLEANUP(close) int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	return fd >= 0 && ftruncate(fd, 3 * PAGE) == 0 && pwrite(fd, BREAKPOINT, 1, 16) == 1 &&
	       pwrite(fd, BREAKPOINT, 1, second) == 1;
}

/* As a loader does, in one range, so that nothing else is mapped between the segments. */
static bool map(const char *path)
{
	CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *at = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at != MAP_FAILED &&
	       mmap(at, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == at &&
	       mmap(at + 2 * PAGE, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd,
	            2 * PAGE) == at + 2 * PAGE;
}

static int verify(const char *path, struct error *err)
{
	struct probe_set set = { .path = xstrdup(path) };
	int ret;

	image_identify(&set.identity, path);
	vec_push(&set.probes)->offset = 16;
	vec_push(&set.probes)->offset = 2 * PAGE + 8;
	ret = probe_verify_process(getpid(), &set, err);
	vec_done(&set.probes);
	free(set.path);
	return ret;
}

static void test_all(void)
{
	struct error err;

	ok(write_file("whole", 2 * PAGE + 8) && write_file("half", PAGE), "files are made");
	ok(verify("half", &err) < 0 && strstr(err.text, "does not run"),
	   "a file that the process does not run is noticed");
	ok(map("half"), "a file is mapped in two segments");
	ok(verify("half", &err) < 0 && err.code == ESTALE &&
	           strstr(err.text, "has not inserted the probes"),
	   "a probe that is missing in one of the segments is noticed");
	ok(map("whole"), "another file as well");
	ok(verify("whole", &err) == 0, "probes in two executable segments are in place");
}

int main(void)
{
#ifndef __x86_64__
	printf("1..0 # SKIP x86-64 only\n");
	return 0;
#endif
	return built_main(test_all);
}

/* SPDX-License-Identifier: MIT */
#include "base/report_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/vec.h"

#define PREFIX "giltracer-"
#define SUFFIX ".html"

/* The folder's descriptor in a process that writes a report. */
#define FOLDER_FD 3

/* A report, oldest first by name. */
struct report {
	char *path;
	uint64_t bytes;
};

static int compare(const void *a, const void *b)
{
	const struct report *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static bool is_report(const char *name)
{
	return str_has_prefix(name, PREFIX) && str_has_suffix(name, SUFFIX);
}

char *report_folder_path(const char *name)
{
	return xasprintf("/proc/self/fd/%d/%s", FOLDER_FD, name);
}

int report_folder_spawn(struct child *ret, int folder, const char *const argv[], struct error *err)
{
	CLEANUP(close) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const struct child_fd fds[] = { { null, 0 }, { null, 1 }, { folder, FOLDER_FD } };
	sigset_t none;
	const struct child_spec spec = {
		.file = "/proc/self/exe",
		.argv = (char *const *)(uintptr_t)argv,
		.fds = fds,
		.fd_count = 3,
		.own_group = true,
		.mask = &none,
	};

	sigemptyset(&none);
	return null < 0 ? error_errno(err, "/dev/null") : child_spawn(ret, &spec, err);
}

void report_folder_trim(int folder, unsigned limit_mib)
{
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(closedir) DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	VEC(struct report) reports = { 0 };
	uint64_t limit = (uint64_t)limit_mib << 20, sum = 0;
	struct dirent *entry;
	struct stat st;

	while (dir && (entry = readdir(dir))) {
		if (!is_report(entry->d_name) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		*vec_push(&reports) = (struct report){ xstrdup(entry->d_name),
			                               (uint64_t)st.st_size };
		sum += (uint64_t)st.st_size;
	}
	vec_sort(&reports, compare);
	for (size_t i = 0; i < reports.n; i++) {
		if (sum > limit && i + 1 < reports.n &&
		    unlinkat(dirfd(dir), reports.v[i].path, 0) == 0)
			sum -= reports.v[i].bytes;
		free(reports.v[i].path);
	}
	vec_done(&reports);
}

int report_folder_open(int *ret, const char *path, struct error *err)
{
	CLEANUP(close) int fd = -1;
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return error_errno(err, "%s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_errno(err, "%s", path);
	if (st.st_uid != geteuid())
		return error_set(
			err, EPERM,
			"%s: belongs to another user; choose another folder with --reports", path);
	if (faccessat(fd, ".", W_OK | X_OK, 0) < 0)
		return error_errno(err, "%s", path);
	*ret = take_fd(&fd);
	return 0;
}

char *report_folder_name(pid_t pid)
{
	char when[32];
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	return xasprintf(PREFIX "%s-%d" SUFFIX, when, (int)pid);
}

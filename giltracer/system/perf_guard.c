/* SPDX-License-Identifier: MIT */
/* Finds giltracer-perf and asks what it permits. */
#include "system/perf_guard.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/capture.h"
#include "base/cleanup.h"
#include "base/str.h"

#define PROGRAM   "giltracer-perf"
#define INSTALLED "perf-for-members"

char *perf_guard_path(void)
{
	const char *dir = secure_getenv("GILTRACER_LIBEXECDIR");

	return xasprintf("%s/" INSTALLED, dir && *dir ? dir : PKGLIBEXECDIR);
}

/* In giltracer's folder for the build tree, else where make install puts it. */
int perf_guard_find_program(char **ret, struct error *err)
{
	CLEANUP(free) char *installed = xstrdup(PKGLIBEXECDIR "/" PROGRAM);
	CLEANUP(free) char *beside = NULL;
	char exe[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	exe[len > 0 ? len : 0] = '\0';
	if (strrchr(exe, '/'))
		*strrchr(exe, '/') = '\0';
	beside = xasprintf("%s/" PROGRAM, exe);
	*ret = access(beside, R_OK) == 0      ? take(beside)
	       : access(installed, R_OK) == 0 ? take(installed)
	                                      : NULL;
	if (*ret)
		return 0;
	return error_set(err, ENOENT, PROGRAM ": not found in %s or " PKGLIBEXECDIR, exe);
}

char *perf_guard_group(void)
{
	CLEANUP(free) char *path = perf_guard_path();
	const struct group *group;
	struct stat st;

	if (stat(path, &st) < 0 || !(st.st_mode & S_IXGRP) || access(path, X_OK) == 0)
		return NULL;
	group = getgrgid(st.st_gid);
	return group ? xstrdup(group->gr_name) : NULL;
}

bool perf_guard_permits(const char *event)
{
	CLEANUP(free) char *path = perf_guard_path();
	const char *const argv[] = { path, "try", event, NULL };
	struct captured out = { .status = -1 };
	struct error ignored;

	if (access(path, X_OK) < 0 ||
	    capture_run(&out, &(struct capture){ .argv = argv, .max = 4096 }, &ignored) < 0)
		return false;
	free(out.text);
	return out.status == 0;
}

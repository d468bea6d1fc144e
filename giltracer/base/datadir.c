/* SPDX-License-Identifier: MIT */
/* Finds share/ and probes/ in the build tree or where they are installed. */
#include "datadir.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc.h"
#include "cleanup.h"
#include "file.h"
#include "str.h"

/* The file "build-tree" next to the binary, written by make, names the build folder and the source
 * folder. */
#define BUILD_TREE "build-tree"

static int try_path(char **ret, struct str *tried, const char *dir, const char *name)
{
	CLEANUP(free) char *path = xasprintf("%s/%s", dir, name);

	if (access(path, R_OK) == 0) {
		*ret = take(path);
		return 1;
	}
	str_addf(tried, "%s%s", tried->len ? ", " : "", path);
	return 0;
}

static int try_build_tree(char **ret, struct str *tried, const char *exe_dir, const char *name)
{
	CLEANUP(free) char *path = xasprintf("%s/" BUILD_TREE, exe_dir);
	CLEANUP(free) char *text = NULL;
	char *line, *rest;
	struct error err;

	if (file_read(&text, NULL, path, 2 * PATH_MAX, &err) < 0)
		return 0;
	rest = text;
	while ((line = strsep(&rest, "\n")))
		if (*line && try_path(ret, tried, line, name))
			return 1;
	return 0;
}

int datadir_find_library(char **ret, const char *name, struct error *err)
{
	const char *installed = str_base(name);
	CLEANUP(str_done) struct str tried = { 0 };
	CLEANUP(free) char *beside = NULL;
	char exe[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (len > 0) {
		exe[len] = '\0';
		*strrchr(exe, '/') = '\0';
		if (try_build_tree(ret, &tried, exe, name))
			return 0;
		beside = xasprintf("%s/../lib/giltracer", exe);
		if (try_path(ret, &tried, beside, installed))
			return 0;
	}
	if (try_path(ret, &tried, PKGLIBDIR, installed))
		return 0;
	return error_set(err, ENOENT, "%s: not found, looked at %s", installed, str_get(&tried));
}

int datadir_find(char **ret, const char *name, struct error *err)
{
	const char *installed = str_has_prefix(name, "share/") ? name + strlen("share/") : name;
	const char *env = secure_getenv("GILTRACER_DATADIR");
	CLEANUP(str_done) struct str tried = { 0 };
	CLEANUP(free) char *beside = NULL;
	char exe[PATH_MAX];
	ssize_t len;

	if (env && *env && try_path(ret, &tried, env, installed))
		return 0;
	len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (len > 0) {
		exe[len] = '\0';
		*strrchr(exe, '/') = '\0';
		if (try_build_tree(ret, &tried, exe, name))
			return 0;
		beside = xasprintf("%s/../share/giltracer", exe);
		if (try_path(ret, &tried, beside, installed))
			return 0;
	}
	if (try_path(ret, &tried, PKGDATADIR, installed))
		return 0;
	return error_set(err, ENOENT, "%s: not found in %s", name, str_get(&tried));
}

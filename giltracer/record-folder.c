/* SPDX-License-Identifier: MIT */
/* The folder of a session: made, recognised, removed. */
#include "record.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

/* Everything that a session ever consists of: perf renames a file that it finds to .old. */
static const char *const SESSION_FILES[] = {
	"session.json",
	"gil.perf.data",
	"gil.perf.data.old",
	"gil.viztracer.json",
	"gil.codes",
	"gil.children",
	"stacks.perf.data",
	"stacks.perf.data.old",
	"stacks.viztracer.json",
	"stacks.children",
	"gil.wakeups.perf.data",
	"gil.wakeups.perf.data.old",
	"stacks.wakeups.perf.data",
	"stacks.wakeups.perf.data.old",
};

void record_remove_folder(const char *dir)
{
	for (size_t i = 0; i < sizeof(SESSION_FILES) / sizeof(*SESSION_FILES); i++) {
		CLEANUP(free) char *path = xasprintf("%s/%s", dir, SESSION_FILES[i]);

		unlink(path);
	}
	rmdir(dir);
}

static bool is_session_file(const char *name)
{
	for (size_t i = 0; i < sizeof(SESSION_FILES) / sizeof(*SESSION_FILES); i++)
		if (!strcmp(name, SESSION_FILES[i]))
			return true;
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* A folder of somebody's is not ours to fill, nor to clear. */
static bool is_ours(const char *dir)
{
	CLEANUP(closedir) DIR *entries = opendir(dir);
	struct dirent *entry;

	while (entries && (entry = readdir(entries)))
		if (!is_session_file(entry->d_name))
			return false;
	return entries;
}

static int make_folder(const char *dir, struct error *err)
{
	if (mkdir(dir, 0777) == 0)
		return 0;
	if (errno != EEXIST)
		return error_errno(err, "%s", dir);
	if (!is_ours(dir))
		return error_set(err, EEXIST, "%s: is there, and more than a session is in it",
		                 dir);
	record_remove_folder(dir);
	return mkdir(dir, 0777) < 0 ? error_errno(err, "%s", dir) : 0;
}

int record_make_folder(char **ret, const char *dir, struct error *err)
{
	if (make_folder(dir, err) < 0)
		return -1;
	*ret = realpath(dir, NULL);
	return *ret ? 0 : error_errno(err, "%s", dir);
}

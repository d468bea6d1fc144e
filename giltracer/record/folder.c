/* SPDX-License-Identifier: MIT */
/* Makes, recognizes and removes the folder of a session. */
#include "record/record.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "record/preloading.h"
#include "session/session.h"
#include "session/sources.h"

/* All files of a session; perf renames an existing output to .old. */
static const char *const SESSION_FILES[] = {
	SESSION_FILE,
	SOURCES_FILE,
	"gil.perf.data",
	"gil.perf.data.old",
	"gil.viztracer.json",
	"gil.codes",
	"gil.codes.part",
	"gil.children",
	"gil.samples",
	RECORD_PRELOAD,
	RECORD_STACKS_PRELOAD,
	"stacks.perf.data",
	"stacks.perf.data.old",
	"stacks.viztracer.json",
	"stacks.children",
	"stacks.samples",
	RECORD_SWITCHES,
	RECORD_SWITCHES ".old",
	"gil.wakeups.perf.data",
	"gil.wakeups.perf.data.old",
	"stacks.wakeups.perf.data",
	"stacks.wakeups.perf.data.old",
};

static void remove_files(const char *dir)
{
	struct error ignored;

	for (size_t i = 0; i < sizeof(SESSION_FILES) / sizeof(*SESSION_FILES); i++) {
		CLEANUP(free) char *path = xasprintf("%s/%s", dir, SESSION_FILES[i]);

		if (str_has_suffix(SESSION_FILES[i], ".preload"))
			file_remove_tree(path, &ignored);
		else
			unlink(path);
	}
}

void record_remove_folder(const char *dir)
{
	remove_files(dir);
	rmdir(dir);
}

static bool is_session_file(const char *name)
{
	for (size_t i = 0; i < sizeof(SESSION_FILES) / sizeof(*SESSION_FILES); i++)
		if (!strcmp(name, SESSION_FILES[i]))
			return true;
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* A folder with other files is neither written to nor cleared. */
static bool is_ours(const char *dir)
{
	CLEANUP(closedir) DIR *entries = opendir(dir);
	struct dirent *entry;

	while (entries && (entry = readdir(entries)))
		if (!is_session_file(entry->d_name))
			return false;
	return entries;
}

/* A session contains arguments, code and stacks. */
static int make_private(const char *dir, struct error *err)
{
	struct stat st;

	if (stat(dir, &st) < 0)
		return error_errno(err, "%s", dir);
	if (st.st_uid != geteuid())
		return error_set(err, EEXIST, "%s: exists and belongs to another user", dir);
	return chmod(dir, 0700) < 0 ? error_errno(err, "%s", dir) : 0;
}

/* An existing folder is emptied and kept: it may be a mount point, or a link to a folder. */
static int make_folder(const char *dir, struct error *err)
{
	if (mkdir(dir, 0700) == 0)
		return 0;
	if (errno != EEXIST)
		return error_errno(err, "%s", dir);
	if (!is_ours(dir))
		return error_set(err, EEXIST,
		                 "%s: exists and contains files that are not part of a session",
		                 dir);
	if (make_private(dir, err) < 0)
		return -1;
	remove_files(dir);
	return 0;
}

int record_make_folder(char **ret, const char *dir, struct error *err)
{
	if (make_folder(dir, err) < 0)
		return -1;
	*ret = realpath(dir, NULL);
	return *ret ? 0 : error_errno(err, "%s", dir);
}

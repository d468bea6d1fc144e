/* SPDX-License-Identifier: MIT */
#include "base/procfs.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"

#define READ_MAX (16u << 20)

char *procfs_path(pid_t pid, pid_t tid, const char *name)
{
	const char *slash = *name ? "/" : "";

	return tid ? xasprintf("/proc/%d/task/%d%s%s", (int)pid, (int)tid, slash, name)
	           : xasprintf("/proc/%d%s%s", (int)pid, slash, name);
}

char *procfs_read(pid_t pid, pid_t tid, const char *name, size_t *ret_len)
{
	CLEANUP(free) char *path = procfs_path(pid, tid, name);
	struct error ignored;
	char *text;

	return file_read(&text, ret_len, path, READ_MAX, &ignored) < 0 ? NULL : text;
}

char *procfs_comm(pid_t pid, pid_t tid)
{
	char *text = procfs_read(pid, tid, "comm", NULL);

	if (text)
		text[strcspn(text, "\n")] = '\0';
	return text;
}

/* "PID (NAME) STATE PARENT …": the name may contain anything, so the last parenthesis ends it. */
bool procfs_stat(struct procfs_stat *ret, pid_t pid, pid_t tid)
{
	CLEANUP(free) char *text = procfs_read(pid, tid, "stat", NULL);
	const char *name = text ? strchr(text, '(') : NULL;
	const char *end = text ? strrchr(text, ')') : NULL;
	int parent;

	*ret = (struct procfs_stat){ .state = '\0' };
	if (!name || !end || end < name)
		return false;
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(end - name - 1), name + 1);
	/* Fields 3, 4, 9 and 22. */
	if (sscanf(end,
	           ") %c %d %*d %*d %*d %*d %lu %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
	           "%*d %" SCNu64,
	           &ret->state, &parent, &ret->flags, &ret->start_time) != 4)
		return false;
	ret->parent = (pid_t)parent;
	return true;
}

/* "NSpid:	NUMBER	…	NUMBER", from our PID namespace to its own. */
uint32_t procfs_own_number(pid_t pid, pid_t tid)
{
	CLEANUP(free) char *text = procfs_read(pid, tid, "status", NULL);
	const char *line = text ? strstr(text, "\nNSpid:") : NULL;
	const char *end = line ? strchr(line + 1, '\n') : NULL;

	if (!line || !end)
		return (uint32_t)(tid ? tid : pid);
	while (end > line && end[-1] != '\t')
		end--;
	return (uint32_t)strtoul(end, NULL, 10);
}

static bool is_same(pid_t pid, pid_t other, const char *name)
{
	CLEANUP(free) char *one = procfs_path(pid, 0, name);
	CLEANUP(free) char *two = procfs_path(other, 0, name);
	struct stat a, b;

	return stat(one, &a) == 0 && stat(two, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

bool procfs_is_elsewhere(pid_t pid)
{
	return !is_same(getpid(), pid, "root") || !is_same(getpid(), pid, "ns/mnt");
}

bool procfs_is_beside(pid_t pid, pid_t other)
{
	return is_same(pid, other, "root") && is_same(pid, other, "ns/mnt") &&
	       is_same(pid, other, "ns/pid");
}

bool procfs_threads(struct procfs_threads *ret, pid_t pid)
{
	CLEANUP(free) char *path = procfs_path(pid, 0, "task");
	CLEANUP(closedir) DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0)
			*vec_push(&ret->v) = tid;
	}
	return dir != NULL;
}

bool procfs_next_mapping(struct procfs_mapping *ret, char **text)
{
	char *line;

	while ((line = strsep(text, "\n"))) {
		int path = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
		           &ret->start, &ret->end, ret->rights, &ret->offset, &ret->major,
		           &ret->minor, &ret->inode, &path) < 7)
			continue;
		ret->path = line + (path ? path : (int)strlen(line));
		return true;
	}
	return false;
}

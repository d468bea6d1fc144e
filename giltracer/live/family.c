/* SPDX-License-Identifier: MIT */
#include "live/family.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"

#define CHILDREN_MAX (1u << 20) /* bytes of the list */
#define DEPTH_MAX    64

static void read_family(struct family *ret, pid_t pid, unsigned depth);

/* Reads the file with one thread's children, "CHILD CHILD …". */
static void read_children(struct family *ret, pid_t pid, const char *tid, unsigned depth)
{
	CLEANUP(free) char *path = xasprintf("/proc/%d/task/%s/children", (int)pid, tid);
	CLEANUP(free) char *text = NULL;
	struct error ignored;
	char *rest, *word;

	if (file_read(&text, NULL, path, CHILDREN_MAX, &ignored) < 0)
		return;
	rest = text;
	while ((word = strsep(&rest, " \n"))) {
		pid_t child = (pid_t)strtol(word, NULL, 10);

		if (child <= 0)
			continue;
		*vec_push(&ret->v) = child;
		read_family(ret, child, depth - 1);
	}
}

static void read_family(struct family *ret, pid_t pid, unsigned depth)
{
	CLEANUP(free) char *path = xasprintf("/proc/%d/task", (int)pid);
	CLEANUP(closedir) DIR *dir = depth ? opendir(path) : NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (*entry->d_name != '.')
			read_children(ret, pid, entry->d_name, depth);
}

void family_read(struct family *ret, pid_t pid)
{
	read_family(ret, pid, DEPTH_MAX);
}

/* SPDX-License-Identifier: MIT */
#include "live/family.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/procfs.h"
#include "base/str.h"
#include "python/process.h"

#define DEPTH_MAX   64
#define PYTHONS_MAX 20

/* Adds one thread's children, "CHILD CHILD …". */
static void read_children_of(struct family *ret, pid_t pid, pid_t tid)
{
	CLEANUP(free) char *text = procfs_read(pid, tid, "children", NULL);
	char *rest = text, *word;

	while ((word = strsep(&rest, " \n"))) {
		pid_t child = (pid_t)strtol(word, NULL, 10);

		if (child > 0)
			*vec_push(&ret->v) = child;
	}
}

static void read_children(struct family *ret, pid_t pid)
{
	struct procfs_threads threads = { 0 };

	procfs_threads(&threads, pid);
	for (size_t i = 0; i < threads.v.n; i++)
		read_children_of(ret, pid, threads.v.v[i]);
	vec_done(&threads.v);
}

static void read_family(struct family *ret, pid_t pid, unsigned depth)
{
	struct family children = { 0 };

	if (depth)
		read_children(&children, pid);
	for (size_t i = 0; i < children.v.n; i++) {
		*vec_push(&ret->v) = children.v.v[i];
		read_family(ret, children.v.v[i], depth - 1);
	}
	vec_done(&children.v);
}

void family_read(struct family *ret, pid_t pid)
{
	read_family(ret, pid, DEPTH_MAX);
}

bool family_is_python(pid_t pid)
{
	struct process_python process;
	struct error ignored;

	if (process_python_find(&process, pid, &ignored) < 0)
		return false;
	process_python_done(&process);
	return true;
}

/* Adds the descendants that run CPython, but not those of such a process. */
static void find_pythons(struct family *ret, pid_t pid, unsigned depth)
{
	struct family children = { 0 };

	if (depth)
		read_children(&children, pid);
	for (size_t i = 0; i < children.v.n && ret->v.n < PYTHONS_MAX; i++) {
		if (family_is_python(children.v.v[i]))
			*vec_push(&ret->v) = children.v.v[i];
		else
			find_pythons(ret, children.v.v[i], depth - 1);
	}
	vec_done(&children.v);
}

int family_python(pid_t *ret, pid_t pid, struct error *err)
{
	CLEANUP(str_done) struct str list = { 0 };
	struct process_python process;
	struct family found = { 0 };
	size_t n;

	*ret = pid;
	if (process_python_find(&process, pid, err) == 0) {
		process_python_done(&process);
		return 0;
	}
	if (err->code != ENOTSUP)
		return 0;
	find_pythons(&found, pid, DEPTH_MAX);
	n = found.v.n;
	for (size_t i = 0; i < n; i++)
		str_addf(&list, " %d", (int)found.v.v[i]);
	if (n == 1)
		*ret = found.v.v[0];
	vec_done(&found.v);
	if (n <= 1)
		return 0;
	return error_set(err, EINVAL,
	                 "process %d is not CPython, but several of its descendants are: give one "
	                 "of%s",
	                 (int)pid, str_get(&list));
}

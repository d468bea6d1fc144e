/* SPDX-License-Identifier: MIT */
#include "live/tasks.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

#define FILE_MAX 65536

static char *read_file(pid_t pid, uint32_t tid, const char *name)
{
	CLEANUP(free) char *path = xasprintf("/proc/%d/task/%u/%s", (int)pid, tid, name);
	struct error ignored;
	char *text;

	return file_read(&text, NULL, path, FILE_MAX, &ignored) < 0 ? NULL : text;
}

/* "TID (NAME) STATE …": the name may have anything in it but ends at the last parenthesis. */
static void read_stat(struct task *task, pid_t pid)
{
	CLEANUP(free) char *text = read_file(pid, task->tid, "stat");
	const char *name = text ? strchr(text, '(') : NULL;
	const char *end = text ? strrchr(text, ')') : NULL;

	task->state = '?';
	if (!name || !end || end < name)
		return;
	snprintf(task->name, sizeof(task->name), "%.*s", (int)(end - name - 1), name + 1);
	if (end[1] == ' ' && end[2])
		task->state = end[2];
}

/* "NSpid:	here	…	in its own namespace" */
static void read_own_tid(struct task *task, pid_t pid)
{
	CLEANUP(free) char *text = read_file(pid, task->tid, "status");
	const char *line = text ? strstr(text, "\nNSpid:") : NULL;
	const char *end = line ? strchr(line + 1, '\n') : NULL;

	task->own_tid = task->tid;
	if (!line || !end)
		return;
	while (end > line && end[-1] != '\t')
		end--;
	task->own_tid = (uint32_t)strtoul(end, NULL, 10);
}

static void read_activity(struct task *task, pid_t pid)
{
	CLEANUP(free) char *text = read_file(pid, task->tid, "syscall");
	const struct activity a = activity_of(text ? text : "", pid);

	task->activity = a.activity;
	task->futex = a.futex;
	/* That file may not be read: the state tells as much. */
	if (a.activity == SAMPLE_UNKNOWN && task->state == 'R')
		task->activity = SAMPLE_RUNNING;
}

static int compare(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

int tasks_read(struct tasks *ret, pid_t pid, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("/proc/%d/task", (int)pid);
	DIR *dir = opendir(path);
	struct dirent *entry;

	*ret = (struct tasks){ 0 };
	if (!dir)
		return error_set(err, ESRCH, "process %d has ended", (int)pid);
	while ((entry = readdir(dir))) {
		uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
		struct task *task;

		if (!tid)
			continue;
		task = vec_push(&ret->v);
		*task = (struct task){ .tid = tid };
		read_stat(task, pid);
		read_own_tid(task, pid);
		read_activity(task, pid);
	}
	closedir(dir);
	qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), compare);
	return 0;
}

void tasks_done(struct tasks *tasks)
{
	vec_done(&tasks->v);
}

const struct task *tasks_find(const struct tasks *tasks, uint32_t own_tid)
{
	for (size_t i = 0; i < tasks->v.n; i++)
		if (tasks->v.v[i].own_tid == own_tid)
			return &tasks->v.v[i];
	return NULL;
}

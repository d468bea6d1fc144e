/* SPDX-License-Identifier: MIT */
/* Finds processes with pages of totals. */
#include "metrics/watch.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

/* A longer chain of parents is a circle, which may appear because processes end while it is
 * followed. */
#define GENERATIONS 100

void watch_add_folder(struct watch *watch, const char *path)
{
	*vec_push(&watch->folders) = (struct watch_folder){ .path = xstrdup(path), .ours = true };
}

static void add_process(struct watch *watch, struct metrics_process *process)
{
	if (watch->label_arguments)
		metrics_process_label_arguments(process);
	*vec_push(&watch->processes) = process;
}

/* The folder of its page, as a path that is valid here. */
static char *folder_of(pid_t pid, struct error *err)
{
	CLEANUP(free) char *path = NULL;

	if (totals_find(&path, pid, err) < 0)
		return NULL;
	*strrchr(path, '/') = '\0';
	return take(path);
}

int watch_add_totals(struct watch *watch, struct totals *totals, pid_t pid, struct error *err)
{
	struct metrics_process *process = metrics_process_new(totals, pid);

	if (!process)
		return error_set(err, ESRCH, "process %d has ended", (int)pid);
	add_process(watch, process);
	return 0;
}

int watch_add_process(struct watch *watch, pid_t pid, struct error *err)
{
	CLEANUP(totals_close) struct totals *page = NULL;
	char *folder;

	if (totals_open_process(&page, pid, err) < 0 || !(folder = folder_of(pid, err)))
		return -1;
	*vec_push(&watch->folders) = (struct watch_folder){ .path = folder, .root = pid };
	return watch_add_totals(watch, take(page), pid, err);
}

/* ---- processes */

static pid_t parent_of(pid_t pid)
{
	CLEANUP(free) char *path = xasprintf("/proc/%d/stat", (int)pid);
	CLEANUP(free) char *text = NULL;
	struct error ignored;
	const char *end;

	/* "PID (NAME) STATE PARENT", with anything in the name */
	if (file_read(&text, NULL, path, 4096, &ignored) < 0 || !(end = strrchr(text, ')')) ||
	    strlen(end) < 4)
		return 0;
	return (pid_t)strtol(end + 3, NULL, 10);
}

static bool is_below(pid_t pid, pid_t root)
{
	for (int i = 0; i < GENERATIONS && pid > 0; i++) {
		if (pid == root)
			return true;
		pid = parent_of(pid);
	}
	return false;
}

static void forget(struct watch *watch, size_t i)
{
	metrics_process_free(watch->processes.v[i]);
	watch->processes.n--;
	memmove(&watch->processes.v[i], &watch->processes.v[i + 1],
	        (watch->processes.n - i) * sizeof(*watch->processes.v));
}

/* Replaces the page of a process that called exec. */
static bool replaces(struct watch *watch, const struct totals *page, pid_t pid)
{
	for (size_t i = 0; i < watch->processes.n; i++) {
		const struct metrics_process *known = watch->processes.v[i];

		if (known->pid != pid)
			continue;
		if (totals_stamp(known->page) >= totals_stamp(page))
			return false;
		forget(watch, i);
		return true;
	}
	return true;
}

static void add(struct watch *watch, const struct watch_folder *folder, const char *path, pid_t pid)
{
	CLEANUP(totals_close) struct totals *page = NULL;
	struct metrics_process *process;
	struct error ignored;

	if (totals_open(&page, path, &ignored) < 0)
		return; /* not ready yet, or another user's */
	if (!totals_alive(page, pid)) {
		if (folder->ours)
			unlink(path);
		return;
	}
	if ((folder->root && !is_below(pid, folder->root)) || !replaces(watch, page, pid))
		return;
	if (watch->processes.n >= METRICS_PROCESSES) {
		watch->left_out++;
		return;
	}
	process = metrics_process_new(take(page), pid);
	if (process)
		add_process(watch, process);
}

/* The pages are named PID.STAMP.totals. */
static bool is_known(const struct watch *watch, pid_t pid, uint64_t stamp)
{
	for (size_t i = 0; i < watch->processes.n; i++)
		if (watch->processes.v[i]->pid == pid &&
		    totals_stamp(watch->processes.v[i]->page) >= stamp)
			return true;
	return false;
}

static void look_into(struct watch *watch, const struct watch_folder *folder)
{
	CLEANUP(closedir) DIR *dir = opendir(folder->path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		CLEANUP(free) char *path = NULL;
		char *end;
		long pid = strtol(entry->d_name, &end, 10);
		uint64_t stamp = *end == '.' ? strtoull(end + 1, &end, 10) : 0;

		if (pid <= 0 || strcmp(end, TOTALS_SUFFIX) != 0 ||
		    is_known(watch, (pid_t)pid, stamp))
			continue;
		path = xasprintf("%s/%s", folder->path, entry->d_name);
		add(watch, folder, path, (pid_t)pid);
	}
}

/* One poll for all processes: /proc would be slow for a process with many threads. */
static void forget_ended(struct watch *watch)
{
	size_t n = watch->processes.n;
	CLEANUP(free) struct pollfd *fds = xcalloc(n + 1, sizeof(*fds));

	for (size_t i = 0; i < n; i++)
		fds[i] = (struct pollfd){ watch->processes.v[i]->pidfd, POLLIN, 0 };
	if (poll(fds, n, 0) < 0)
		return;
	for (size_t i = n; i-- > 0;) {
		const struct metrics_process *p = watch->processes.v[i];

		if (p->pidfd < 0 ? !totals_alive(p->page, p->pid) : fds[i].revents != 0)
			forget(watch, i);
	}
}

void watch_update(struct watch *watch)
{
	watch->left_out = 0;
	forget_ended(watch);
	for (size_t i = 0; i < watch->folders.n; i++)
		look_into(watch, &watch->folders.v[i]);
	for (size_t i = watch->processes.n; i-- > 0;)
		if (!metrics_process_read(watch->processes.v[i]))
			forget(watch, i);
}

void watch_done(struct watch *watch)
{
	for (size_t i = 0; i < watch->processes.n; i++)
		metrics_process_free(watch->processes.v[i]);
	for (size_t i = 0; i < watch->folders.n; i++)
		free(watch->folders.v[i].path);
	vec_done(&watch->processes);
	vec_done(&watch->folders);
}

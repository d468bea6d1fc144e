/* SPDX-License-Identifier: MIT */
#include "record/asleep.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"

#define THREADS_MAX 10000 /* of all processes: the state of further threads remains unknown */

static char *read_file(uint32_t pid, uint32_t tid, const char *name)
{
	CLEANUP(free) char *path = xasprintf("/proc/%u/task/%u/%s", pid, tid, name);
	struct error ignored;
	char *text;

	return file_read(&text, NULL, path, 65536, &ignored) < 0 ? NULL : text;
}

/* "TID (NAME) STATE …"; 0: unknown */
static char state_of(uint32_t pid, uint32_t tid)
{
	CLEANUP(free) char *text = read_file(pid, tid, "stat");
	const char *end = text ? strrchr(text, ')') : NULL;
	char state = end && end[1] == ' ' ? end[2] : '\0';

	return state == 't' ? 'T' : state;
}

/* How often it was given a CPU; 0: unknown */
static uint64_t slices_of(uint32_t pid, uint32_t tid)
{
	CLEANUP(free) char *text = read_file(pid, tid, "schedstat");
	uint64_t slices;

	return text && sscanf(text, "%*u %*u %" SCNu64, &slices) == 1 ? slices : 0;
}

/* The number is read before the state: a thread that sleeps then and has the same number at the end
 * has not run since. */
static void add_thread(struct asleep *asleep, uint32_t pid, uint32_t tid)
{
	uint64_t slices = slices_of(pid, tid);
	char state = state_of(pid, tid);

	if (slices && state && strchr("SDT", state) && asleep->v.n < THREADS_MAX)
		*vec_push(&asleep->v) = (struct asleep_thread){
			.slept = { .pid = pid, .tid = tid, .state = state }, .slices = slices
		};
}

/* The number of its threads. */
static size_t each_thread(struct asleep *asleep, pid_t pid,
                          void (*visit)(struct asleep *, uint32_t, uint32_t))
{
	CLEANUP(free) char *path = xasprintf("/proc/%d/task", (int)pid);
	CLEANUP(closedir) DIR *dir = opendir(path);
	struct dirent *entry;
	size_t n = 0;

	while (dir && (entry = readdir(dir))) {
		uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (!tid)
			continue;
		n++;
		if (visit)
			visit(asleep, (uint32_t)pid, tid);
	}
	return n;
}

bool asleep_begin(struct asleep *asleep, pid_t pid)
{
	size_t before = asleep->v.n;

	return each_thread(asleep, pid, add_thread) == asleep->v.n - before;
}

/* A thread that is not in the snapshot has no thread state, so it is without the GIL, unless one in it
 * has no known number. */
static enum gil_state gil_of(const struct snapshot *snapshot, uint32_t tid)
{
	enum gil_state gil = snapshot->gil_known ? GIL_NONE : GIL_NOT_KNOWN;

	for (size_t i = 0; i < snapshot->threads.n; i++) {
		const struct snapshot_thread *t = &snapshot->threads.v[i];

		if (t->tid == tid)
			return t->gil;
		if (!t->tid)
			gil = GIL_NOT_KNOWN;
	}
	return gil;
}

void asleep_look(struct asleep *asleep, pid_t pid, const struct snapshot *snapshot)
{
	size_t kept = 0;

	for (size_t i = 0; i < asleep->v.n; i++) {
		struct asleep_thread t = asleep->v.v[i];

		/* Whether a thread that is stopped waited for the GIL before is not visible. */
		if (t.slept.pid == (uint32_t)pid && t.slept.state != 'T') {
			enum gil_state gil = gil_of(snapshot, t.slept.tid);

			if (gil == GIL_HOLDS || gil == GIL_WAITS)
				continue;
			t.slept.no_gil = gil == GIL_NONE;
		}
		asleep->v.v[kept++] = t;
	}
	asleep->v.n = kept;
}

bool asleep_end(struct asleep *asleep, pid_t pid)
{
	size_t kept = 0, stopped = 0;

	for (size_t i = 0; i < asleep->v.n; i++) {
		const struct asleep_thread *t = &asleep->v.v[i];

		if (slices_of(t->slept.pid, t->slept.tid) != t->slices ||
		    state_of(t->slept.pid, t->slept.tid) != t->slept.state)
			continue;
		stopped += t->slept.state == 'T' && t->slept.pid == (uint32_t)pid;
		asleep->v.v[kept++] = *t;
	}
	asleep->v.n = kept;
	return stopped && stopped == each_thread(asleep, pid, NULL);
}

bool asleep_is_all(const struct asleep *asleep, pid_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < asleep->v.n; i++)
		n += asleep->v.v[i].slept.pid == (uint32_t)pid;
	return n == each_thread(NULL, pid, NULL);
}

void asleep_done(struct asleep *asleep)
{
	vec_done(&asleep->v);
}

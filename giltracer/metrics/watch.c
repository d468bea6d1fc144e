/* SPDX-License-Identifier: MIT */
/* Finds processes with pages of totals. */
#include "metrics/watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/procfs.h"
#include "base/str.h"
#include "base/utf8.h"

#define ARGUMENTS_MAX 256

char *metrics_label_value(const char *text)
{
	CLEANUP(str_done) struct str safe = { 0 };
	struct str ret = { 0 };

	utf8_add_safe(&safe, text, UINT32_MAX);
	for (const char *s = str_get(&safe); *s; s++) {
		if (*s == '\\' || *s == '"')
			str_addc(&ret, '\\');
		str_addc(&ret, *s);
	}
	return str_take(&ret);
}

/* ---- a process */

static char *find_command(pid_t pid)
{
	CLEANUP(free) char *text = procfs_comm(pid, 0);

	return metrics_label_value(text ? text : "");
}

void metrics_process_label_arguments(struct metrics_process *p)
{
	CLEANUP(free) char *path = xasprintf("/proc/%d/cmdline", (int)p->pid);
	CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[ARGUMENTS_MAX + 1];
	ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	while (len > 0 && !text[len - 1])
		len--;
	for (ssize_t i = 0; i < len; i++)
		if (!text[i])
			text[i] = ' ';
	text[len > 0 ? len : 0] = '\0';
	free(p->arguments);
	p->arguments = metrics_label_value(text);
}

static uint64_t unix_ms(uint64_t monotonic_ns)
{
	struct timespec ts;
	uint64_t now = clock_now_ns(), ms;

	clock_gettime(CLOCK_REALTIME, &ts);
	ms = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / NS_PER_MS;
	return monotonic_ns < now ? ms - (now - monotonic_ns) / NS_PER_MS : ms;
}

struct metrics_process *metrics_process_new(struct totals *page, pid_t pid)
{
	struct metrics_process *p = xcalloc(1, sizeof(*p));

	p->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (!totals_alive(page, pid)) {
		totals_close(page);
		close(p->pidfd);
		free(p);
		return NULL;
	}
	p->pid = pid;
	p->parent = totals_parent(page);
	p->page = page;
	p->command = find_command(pid);
	p->created_ms = unix_ms(totals_began_ns(page));
	return p;
}

static void free_group(struct metrics_group *group)
{
	free(group->name);
	free(group->labels);
}

void metrics_process_free(struct metrics_process *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->groups.n; i++)
		free_group(&p->groups.v[i]);
	vec_done(&p->groups);
	vec_done(&p->group_of);
	totals_snapshot_done(&p->snapshot);
	totals_close(p->page);
	free(p->command);
	free(p->arguments);
	close(p->pidfd);
	free(p);
}

/* ---- groups */

static uint32_t gil_of(const struct totals_thread *t)
{
	return t->gil < METRICS_GILS ? t->gil : METRICS_GILS;
}

/* The label of the first GIL, which is nearly always the only one, is omitted. */
static char *labels_of(const char *value, uint32_t gil)
{
	if (gil == 0)
		return xasprintf("thread=\"%s\"", value);
	if (gil == METRICS_GILS)
		return xasprintf("thread=\"%s\",gil=\"" METRICS_OTHER "\"", value);
	return xasprintf("thread=\"%s\",gil=\"%u\"", value, (unsigned)gil);
}

static uint16_t find_group(const struct metrics_process *p, const char *labels)
{
	for (size_t i = 0; i < p->groups.n; i++)
		if (!strcmp(p->groups.v[i].labels, labels))
			return (uint16_t)(i + 1);
	return 0;
}

static uint16_t add_group(struct metrics_process *p, const char *name, char *labels, uint32_t gil)
{
	*vec_push(&p->groups) =
		(struct metrics_group){ .name = xstrdup(name), .labels = labels, .gil = gil };
	return (uint16_t)p->groups.n;
}

/* The name of a slot changes in digits only, so the slot stays in its group. Slots are in the
 * order of their first use, so another reader of the page forms the same groups. */
static uint16_t choose_group(struct metrics_process *p, const struct totals_thread *t)
{
	CLEANUP(str_done) struct str pattern = { 0 };
	CLEANUP(free) char *labels = NULL;
	CLEANUP(free) char *name = NULL;
	CLEANUP(free) char *other = labels_of(METRICS_OTHER, 0);
	uint16_t group;

	str_add_pattern(&pattern, t->name);
	name = metrics_label_value(str_get(&pattern));
	labels = labels_of(name, gil_of(t));
	group = find_group(p, labels);
	if (group)
		return group;
	if (p->groups.n < METRICS_GROUPS && strcmp(name, METRICS_NONE) != 0)
		return add_group(p, name, take(labels), gil_of(t));
	group = find_group(p, other);
	return group ? group : add_group(p, METRICS_OTHER, take(other), 0);
}

/* Any group that a thread has waited for has a thread in the same snapshot. */
static void find_groups(struct metrics_process *p)
{
	while (p->group_of.n < p->snapshot.threads.n)
		*vec_push(&p->group_of) = 0;
	for (size_t i = 0; i < p->snapshot.threads.n; i++) {
		const struct totals_thread *t = &p->snapshot.threads.v[i];

		if (!t->used || p->group_of.v[i])
			continue;
		p->group_of.v[i] = choose_group(p, t);
		if (t->gil < TOTALS_WAITED && !p->holders[t->gil][t->group])
			p->holders[t->gil][t->group] = (uint8_t)p->group_of.v[i];
	}
}

/* The index in wait_for_ns of a waiting group for a group of the page's GIL. A group with
 * another GIL label may have the same name; waits for it are counted for "other". */
static unsigned holder_of(const struct metrics_process *p, const struct metrics_group *waiting,
                          uint32_t gil, unsigned group)
{
	unsigned holder = gil < TOTALS_WAITED ? p->holders[gil][group] : 0;

	if (group == TOTALS_NOBODY)
		return METRICS_NOBODY;
	if (group == TOTALS_OTHERS || !holder || p->groups.v[holder - 1].gil != waiting->gil ||
	    !strcmp(p->groups.v[holder - 1].name, METRICS_OTHER))
		return METRICS_OTHERS;
	return holder;
}

static void add_to_group(const struct metrics_process *p, struct metrics_group *group,
                         const struct totals_thread *t)
{
	group->hold_ns += t->hold_ns;
	group->wait_ns += t->wait_ns + t->switch_ns;
	for (unsigned i = 0; i < TOTALS_GROUPS; i++)
		group->wait_for_ns[holder_of(p, group, t->gil, i)] += t->wait_for_ns[i];
	group->wait_for_ns[METRICS_NOBODY] += t->switch_ns;
	for (unsigned i = 0; i < TOTALS_LOCKS; i++)
		group->lock_wait_ns[i] += t->lock_wait_ns[i];
	group->kept_ns += t->kept_ns;
	group->life_ns += t->life_ns;
	group->threads += t->state != TOTALS_ENDED;
}

static void add_longest(struct metrics_histogram *h, const struct totals_thread *t, uint64_t ns,
                        uint64_t end_ns)
{
	if (ns <= h->longest_ns)
		return;
	h->longest_ns = ns;
	h->longest_end_ns = end_ns;
	h->longest = t;
}

static void add_durations(struct metrics_process *p, const struct totals_thread *t)
{
	for (unsigned i = 0; i < TOTALS_BUCKETS; i++) {
		p->holds.buckets[i] += t->holds[i];
		p->waits.buckets[i] += t->waits[i];
	}
	p->holds.sum_ns += t->held_ns;
	p->waits.sum_ns += t->waited_ns;
	add_longest(&p->holds, t, t->longest_hold_ns, t->longest_hold_end_ns);
	add_longest(&p->waits, t, t->longest_wait_ns, t->longest_wait_end_ns);
}

/* ---- reading */

static void clear(struct metrics_process *p)
{
	for (size_t i = 0; i < p->groups.n; i++)
		p->groups.v[i] = (struct metrics_group){ .name = p->groups.v[i].name,
			                                 .labels = p->groups.v[i].labels,
			                                 .gil = p->groups.v[i].gil };
	memset(p->gils, 0, sizeof(p->gils));
	p->holds = p->waits = (struct metrics_histogram){ .sum_ns = 0 };
}

static void add_gils(struct metrics_process *p)
{
	for (unsigned i = 0; i < TOTALS_GILS; i++)
		p->gils[i < METRICS_GILS ? i : METRICS_GILS].watched_ns +=
			p->snapshot.gils[i].age_ns;
}

/* If the process has ended, the value stays. */
static void read_cpu(struct metrics_process *p)
{
	struct timespec ts;
	clockid_t clock;
	uint64_t ns;

	if (clock_getcpuclockid(p->pid, &clock) != 0 || clock_gettime(clock, &ts) != 0)
		return;
	ns = (uint64_t)ts.tv_sec * NS_PER_SECOND + (uint64_t)ts.tv_nsec;
	if (ns > p->cpu_ns)
		p->cpu_ns = ns;
}

bool metrics_process_read(struct metrics_process *p)
{
	if (!totals_read(p->page, &p->snapshot))
		return false;
	clear(p);
	add_gils(p);
	find_groups(p);
	read_cpu(p);
	for (size_t i = 0; i < p->snapshot.threads.n; i++) {
		const struct totals_thread *t = &p->snapshot.threads.v[i];

		if (!t->used)
			continue;
		add_to_group(p, &p->groups.v[p->group_of.v[i] - 1], t);
		add_durations(p, t);
		p->gils[gil_of(t)].waiters += t->state == TOTALS_WAIT;
	}
	return true;
}

/* ---- the processes */

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

void watch_add_observed(struct watch *watch, pid_t pid, const char *path, uint32_t own)
{
	*vec_push(&watch->folders) =
		(struct watch_folder){ .path = xstrdup(path), .root = pid, .own = (pid_t)own };
}

int watch_add_process(struct watch *watch, pid_t pid, struct error *err)
{
	CLEANUP(totals_close) struct totals *page = NULL;
	struct metrics_process *process;
	bool joined;
	char *folder;

	if (totals_open_process(&page, pid, err) < 0 || !(folder = folder_of(pid, err)))
		return -1;
	*vec_push(&watch->folders) = (struct watch_folder){ .path = folder, .root = pid };
	joined = totals_is_joined(page);
	process = metrics_process_new(take(page), pid);
	if (!process)
		return error_set(err, ESRCH, "process %d has ended", (int)pid);
	add_process(watch, process);
	return joined;
}

/* ---- processes */

static bool is_below(pid_t pid, pid_t root)
{
	for (int i = 0; i < GENERATIONS && pid > 0; i++) {
		struct procfs_stat stat;

		if (pid == root)
			return true;
		pid = procfs_stat(&stat, pid, 0) ? stat.parent : 0;
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

	if (totals_open(&page, path, &ignored) < 0 || totals_is_over(page))
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

		if (folder->own)
			pid = pid == folder->own ? folder->root : 0;
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

/* SPDX-License-Identifier: MIT */
/* Adds up the threads of a process by group, GIL and duration. */
#include "metrics/process.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "base/utf8.h"

#define OTHER "other"

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
	CLEANUP(free) char *path = xasprintf("/proc/%d/comm", (int)pid);
	CLEANUP(free) char *text = NULL;
	struct error ignored;

	if (file_read(&text, NULL, path, 256, &ignored) < 0)
		return xstrdup("");
	text[strcspn(text, "\n")] = '\0';
	return metrics_label_value(text);
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

void metrics_process_free(struct metrics_process *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->groups.n; i++)
		free(p->groups.v[i].labels);
	vec_done(&p->groups);
	vec_done(&p->group_of);
	totals_snapshot_done(&p->snapshot);
	totals_close(p->page);
	free(p->command);
	close(p->pidfd);
	free(p);
}

/* ---- groups */

static uint32_t gil_of(const struct totals_thread *t)
{
	return t->gil < METRICS_GILS ? t->gil : METRICS_GILS;
}

/* The first GIL is nearly always the only one: that it is this one is not said. */
static char *labels_of(const char *pattern, uint32_t gil)
{
	CLEANUP(free) char *value = metrics_label_value(pattern);

	if (gil == 0)
		return xasprintf("thread=\"%s\"", value);
	if (gil == METRICS_GILS)
		return xasprintf("thread=\"%s\",gil=\"" OTHER "\"", value);
	return xasprintf("thread=\"%s\",gil=\"%u\"", value, (unsigned)gil);
}

static uint16_t find_group(const struct metrics_process *p, const char *labels)
{
	for (size_t i = 0; i < p->groups.n; i++)
		if (!strcmp(p->groups.v[i].labels, labels))
			return (uint16_t)(i + 1);
	return 0;
}

static uint16_t add_group(struct metrics_process *p, char *labels, uint32_t gil)
{
	*vec_push(&p->groups) = (struct metrics_group){ .labels = labels, .gil = gil };
	return (uint16_t)p->groups.n;
}

/* A slot's name changes in digits only, so it stays in its group; and slots are in the order of
 * their first use, so another reader of the page puts the same ones together. */
static uint16_t choose_group(struct metrics_process *p, const struct totals_thread *t)
{
	CLEANUP(str_done) struct str pattern = { 0 };
	CLEANUP(free) char *labels = NULL;
	CLEANUP(free) char *other = labels_of(OTHER, 0);
	uint16_t group;

	str_add_pattern(&pattern, t->name);
	labels = labels_of(str_get(&pattern), gil_of(t));
	group = find_group(p, labels);
	if (group)
		return group;
	if (p->groups.n < METRICS_GROUPS)
		return add_group(p, take(labels), gil_of(t));
	group = find_group(p, other);
	return group ? group : add_group(p, take(other), 0);
}

static void add_to_group(struct metrics_group *group, const struct totals_thread *t)
{
	group->hold_ns += t->hold_ns;
	group->wait_ns += t->wait_ns + t->switch_ns;
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
		p->groups.v[i] = (struct metrics_group){ .labels = p->groups.v[i].labels,
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

bool metrics_process_read(struct metrics_process *p)
{
	if (!totals_read(p->page, &p->snapshot))
		return false;
	clear(p);
	add_gils(p);
	while (p->group_of.n < p->snapshot.threads.n)
		*vec_push(&p->group_of) = 0;
	for (size_t i = 0; i < p->snapshot.threads.n; i++) {
		const struct totals_thread *t = &p->snapshot.threads.v[i];

		if (!t->used)
			continue;
		if (!p->group_of.v[i])
			p->group_of.v[i] = choose_group(p, t);
		add_to_group(&p->groups.v[p->group_of.v[i] - 1], t);
		add_durations(p, t);
		p->gils[gil_of(t)].waiters += t->state == TOTALS_WAIT;
	}
	return true;
}

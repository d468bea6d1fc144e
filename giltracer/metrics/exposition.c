/* SPDX-License-Identifier: MIT */
/* Renders metrics as text. All samples of a family follow each other, as OpenMetrics demands. */
#include "metrics/exposition.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

const char *exposition_type(enum exposition format)
{
	return format == EXPOSITION_OPENMETRICS
	               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
	               : "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- writing */

struct writer {
	struct str *out;
	const struct watch *watch;
	bool open;       /* OpenMetrics */
	int64_t unix_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC */
};

static void add_seconds(struct str *out, uint64_t ns)
{
	str_addf(out, "%" PRIu64 ".%09" PRIu64, ns / NS_PER_SECOND, ns % NS_PER_SECOND);
}

/* @unit: NULL: none. A counter's family is called NAME in OpenMetrics, and NAME_total else. */
static void begin_family(const struct writer *w, const char *name, const char *type,
                         const char *unit, const char *help)
{
	bool counter = !strcmp(type, "counter"), info = !strcmp(type, "info");
	const char *suffix = w->open ? "" : counter ? "_total" : info ? "_info" : "";

	str_addf(w->out, "# TYPE %s%s %s\n", name, suffix, info && !w->open ? "gauge" : type);
	if (unit && w->open)
		str_addf(w->out, "# UNIT %s %s\n", name, unit);
	str_addf(w->out, "# HELP %s%s %s\n", name, suffix, help);
}

/* NAME{pid="…"[,LABELS]} */
static void add_name(const struct writer *w, const char *name, const struct metrics_process *p,
                     const char *labels)
{
	str_addf(w->out, "%s{pid=\"%d\"%s%s} ", name, (int)p->pid, *labels ? "," : "", labels);
}

static void add_created(const struct writer *w, const char *name, const struct metrics_process *p,
                        const char *labels)
{
	if (!w->open)
		return;
	add_name(w, name, p, labels);
	str_addf(w->out, "%" PRIu64 ".%03u\n", p->created_ms / 1000,
	         (unsigned)(p->created_ms % 1000));
}

static void add_count(const struct writer *w, const char *name, const struct metrics_process *p,
                      const char *labels, uint64_t count)
{
	add_name(w, name, p, labels);
	str_addf(w->out, "%" PRIu64 "\n", count);
}

/* ---- of groups of threads */

static void write_group_seconds(const struct writer *w, const char *name, size_t offset,
                                const char *help)
{
	CLEANUP(str_done) struct str total = { 0 };
	CLEANUP(str_done) struct str created = { 0 };

	str_addf(&total, "%s_total", name);
	str_addf(&created, "%s_created", name);
	begin_family(w, name, "counter", "seconds", help);
	for (size_t i = 0; i < w->watch->processes.n; i++) {
		const struct metrics_process *p = w->watch->processes.v[i];

		for (size_t g = 0; g < p->groups.n; g++) {
			const struct metrics_group *group = &p->groups.v[g];
			uint64_t ns;

			memcpy(&ns, (const char *)group + offset, sizeof(ns));
			add_name(w, str_get(&total), p, group->labels);
			add_seconds(w->out, ns);
			str_addc(w->out, '\n');
			add_created(w, str_get(&created), p, group->labels);
		}
	}
}

static void write_threads(const struct writer *w)
{
	begin_family(w, "giltracer_threads", "gauge", NULL,
	             "Threads that are there and have used the GIL.");
	for (size_t i = 0; i < w->watch->processes.n; i++) {
		const struct metrics_process *p = w->watch->processes.v[i];

		for (size_t g = 0; g < p->groups.n; g++)
			add_count(w, "giltracer_threads", p, p->groups.v[g].labels,
			          p->groups.v[g].threads);
	}
}

/* ---- of GILs */

static void gil_label(char *ret, size_t size, unsigned gil)
{
	if (gil == 0)
		*ret = '\0';
	else if (gil == METRICS_GILS)
		snprintf(ret, size, "gil=\"other\"");
	else
		snprintf(ret, size, "gil=\"%u\"", gil);
}

static void write_watched(const struct writer *w)
{
	static const char name[] = "giltracer_gil_watched_seconds";

	begin_family(w, name, "counter", "seconds", "How long the GIL has been counted.");
	for (size_t i = 0; i < w->watch->processes.n; i++) {
		const struct metrics_process *p = w->watch->processes.v[i];

		for (unsigned g = 0; g <= METRICS_GILS; g++) {
			char label[24];

			if (!p->gils[g].watched_ns)
				continue;
			gil_label(label, sizeof(label), g);
			add_name(w, "giltracer_gil_watched_seconds_total", p, label);
			add_seconds(w->out, p->gils[g].watched_ns);
			str_addc(w->out, '\n');
			add_created(w, "giltracer_gil_watched_seconds_created", p, label);
		}
	}
}

static void write_waiters(const struct writer *w)
{
	begin_family(w, "giltracer_gil_waiters", "gauge", NULL,
	             "Threads that wait for the GIL now.");
	for (size_t i = 0; i < w->watch->processes.n; i++) {
		const struct metrics_process *p = w->watch->processes.v[i];

		for (unsigned g = 0; g <= METRICS_GILS; g++) {
			char label[24];

			if (!p->gils[g].watched_ns)
				continue;
			gil_label(label, sizeof(label), g);
			add_count(w, "giltracer_gil_waiters", p, label, p->gils[g].waiters);
		}
	}
}

/* ---- histograms */

/* Bits of the upper bounds in ns: 131 us to 8.6 s, closest about the switch interval of 5 ms. */
static const unsigned char bounds[] = { 17, 20, 22, 23, 24, 25, 26, 28, 30, 33 };
#define BOUNDS (sizeof(bounds) / sizeof(*bounds))

static void add_exemplar(const struct writer *w, const struct metrics_histogram *h, uint64_t above,
                         uint64_t below)
{
	CLEANUP(free) char *name = NULL;

	if (!w->open || !h->longest_ns || h->longest_ns < above || h->longest_ns >= below)
		return;
	name = metrics_label_value(h->longest->name);
	str_addf(w->out, " # {thread=\"%s\",tid=\"%" PRIu32 "\"} ", name, h->longest->tid);
	add_seconds(w->out, h->longest_ns);
	str_addc(w->out, ' ');
	add_seconds(w->out, h->longest_end_ns + (uint64_t)w->unix_ns);
}

static void add_bucket(const struct writer *w, const char *name, const struct metrics_process *p,
                       const char *le, uint64_t count)
{
	str_addf(w->out, "%s_bucket{pid=\"%d\",le=\"%s\"} %" PRIu64, name, (int)p->pid, le, count);
}

static void write_histogram(const struct writer *w, const char *name,
                            const struct metrics_process *p, const struct metrics_histogram *h)
{
	uint64_t count = 0, above = 0;
	unsigned bucket = 0;

	for (size_t i = 0; i < BOUNDS; i++) {
		CLEANUP(str_done) struct str le = { 0 };
		uint64_t bound = UINT64_C(1) << bounds[i];

		while (bucket + TOTALS_BUCKET_BITS <= bounds[i])
			count += h->buckets[bucket++];
		add_seconds(&le, bound);
		add_bucket(w, name, p, str_get(&le), count);
		add_exemplar(w, h, above, bound);
		str_addc(w->out, '\n');
		above = bound;
	}
	while (bucket < TOTALS_BUCKETS)
		count += h->buckets[bucket++];
	add_bucket(w, name, p, "+Inf", count);
	add_exemplar(w, h, above, UINT64_MAX);
	str_addf(w->out, "\n%s_sum{pid=\"%d\"} ", name, (int)p->pid);
	add_seconds(w->out, h->sum_ns);
	str_addf(w->out, "\n%s_count{pid=\"%d\"} %" PRIu64 "\n", name, (int)p->pid, count);
	if (w->open)
		str_addf(w->out, "%s_created{pid=\"%d\"} %" PRIu64 ".%03u\n", name, (int)p->pid,
		         p->created_ms / 1000, (unsigned)(p->created_ms % 1000));
}

static void write_histograms(const struct writer *w)
{
	static const char holds[] = "giltracer_gil_hold_duration_seconds";
	static const char waits[] = "giltracer_gil_wait_duration_seconds";

	begin_family(w, holds, "histogram", "seconds",
	             "How long threads held the GIL at a time; holds that are over.");
	for (size_t i = 0; i < w->watch->processes.n; i++)
		write_histogram(w, holds, w->watch->processes.v[i],
		                &w->watch->processes.v[i]->holds);
	begin_family(w, waits, "histogram", "seconds",
	             "How long threads waited for the GIL at a time; waits that are over.");
	for (size_t i = 0; i < w->watch->processes.n; i++)
		write_histogram(w, waits, w->watch->processes.v[i],
		                &w->watch->processes.v[i]->waits);
}

/* ---- of processes */

static void write_processes(const struct writer *w)
{
	begin_family(w, "giltracer_process", "info", NULL, "The process.");
	for (size_t i = 0; i < w->watch->processes.n; i++) {
		const struct metrics_process *p = w->watch->processes.v[i];

		str_addf(w->out,
		         "giltracer_process_info{pid=\"%d\",parent=\"%d\",command=\"%s\"} 1\n",
		         (int)p->pid, (int)p->parent, p->command);
	}
	begin_family(w, "giltracer_threads_left_out", "gauge", NULL,
	             "Threads that are not counted, since there are too many.");
	for (size_t i = 0; i < w->watch->processes.n; i++)
		add_count(w, "giltracer_threads_left_out", w->watch->processes.v[i], "",
		          w->watch->processes.v[i]->snapshot.left_out);
	begin_family(w, "giltracer_processes", "gauge", NULL, "Processes that are counted.");
	str_addf(w->out, "giltracer_processes %zu\n", w->watch->processes.n);
	begin_family(w, "giltracer_processes_left_out", "gauge", NULL,
	             "Processes without series, since there are too many.");
	str_addf(w->out, "giltracer_processes_left_out %u\n", w->watch->left_out);
}

static int64_t unix_offset(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * (int64_t)NS_PER_SECOND + ts.tv_nsec - (int64_t)clock_now_ns();
}

void exposition_write(struct str *out, const struct watch *watch, enum exposition format)
{
	const struct writer w = { out, watch, format == EXPOSITION_OPENMETRICS, unix_offset() };

	write_group_seconds(&w, "giltracer_gil_hold_seconds",
	                    offsetof(struct metrics_group, hold_ns),
	                    "Time in which threads of the group held the GIL.");
	write_group_seconds(&w, "giltracer_gil_wait_seconds",
	                    offsetof(struct metrics_group, wait_ns),
	                    "Time in which threads of the group waited for the GIL.");
	write_group_seconds(&w, "giltracer_gil_kept_seconds",
	                    offsetof(struct metrics_group, kept_ns),
	                    "Time in which they held the GIL after they were asked to release it.");
	write_group_seconds(&w, "giltracer_thread_lifetime_seconds",
	                    offsetof(struct metrics_group, life_ns),
	                    "Lifetime of the group's threads since they first used the GIL.");
	write_threads(&w);
	write_watched(&w);
	write_waiters(&w);
	write_histograms(&w);
	write_processes(&w);
	if (w.open)
		str_adds(out, "# EOF\n");
}

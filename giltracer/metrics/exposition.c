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

enum family {
#define FAMILY(name, ...) FAMILY_##name,
#include "metrics/families.def"
#undef FAMILY
};

/* @unit: NULL: there is none */
static const struct {
	const char *name, *type, *unit, *help;
} families[] = {
#define FAMILY(id, name, type, unit, help) { name, type, unit, help },
#include "metrics/families.def"
#undef FAMILY
};

/* The name of its samples begins with what is returned. A counter's family is called NAME in OpenMetrics, and NAME_total else. */
static const char *begin_family(const struct writer *w, enum family family)
{
	const char *name = families[family].name, *type = families[family].type;
	bool counter = !strcmp(type, "counter"), info = !strcmp(type, "info");
	const char *suffix = w->open ? "" : counter ? "_total" : info ? "_info" : "";

	str_addf(w->out, "# TYPE %s%s %s\n", name, suffix, info && !w->open ? "gauge" : type);
	if (families[family].unit && w->open)
		str_addf(w->out, "# UNIT %s %s\n", name, families[family].unit);
	str_addf(w->out, "# HELP %s%s %s\n", name, suffix, families[family].help);
	return name;
}

/* NAME SUFFIX{pid="…"[,LABELS]} */
static void add_name(const struct writer *w, const char *name, const char *suffix,
                     const struct metrics_process *p, const char *labels)
{
	str_addf(w->out, "%s%s{pid=\"%d\"%s%s} ", name, suffix, (int)p->pid, *labels ? "," : "",
	         labels);
}

/* A counter, and when it was 0. */
static void add_counter(const struct writer *w, const char *name, const struct metrics_process *p,
                        const char *labels, uint64_t ns)
{
	add_name(w, name, "_total", p, labels);
	add_seconds(w->out, ns);
	str_addc(w->out, '\n');
	if (!w->open)
		return;
	add_name(w, name, "_created", p, labels);
	str_addf(w->out, "%" PRIu64 ".%03u\n", p->created_ms / 1000,
	         (unsigned)(p->created_ms % 1000));
}

static void add_count(const struct writer *w, const char *name, const struct metrics_process *p,
                      const char *labels, uint64_t count)
{
	add_name(w, name, "", p, labels);
	str_addf(w->out, "%" PRIu64 "\n", count);
}

/* ---- of groups of threads */

static void write_group_seconds(const struct writer *w, enum family family, size_t offset)
{
	const char *name = begin_family(w, family);

	for (size_t i = 0; i < w->watch->processes.n; i++) {
		const struct metrics_process *p = w->watch->processes.v[i];

		/* Unknown is not 0. */
		for (size_t g = 0; g < p->groups.n && (family != FAMILY_KEPT || !p->observed);
		     g++) {
			const struct metrics_group *group = &p->groups.v[g];
			uint64_t ns;

			memcpy(&ns, (const char *)group + offset, sizeof(ns));
			add_counter(w, name, p, group->labels, ns);
		}
	}
}

/* Without _created, which is that of the group's other counters. */
static void add_wait_for(const struct writer *w, const char *name, const struct metrics_process *p,
                         const struct metrics_group *group, unsigned holder)
{
	const char *who = holder == METRICS_NOBODY   ? METRICS_NONE
	                  : holder == METRICS_OTHERS ? METRICS_OTHER
	                                             : p->groups.v[holder - 1].name;

	str_addf(w->out, "%s_total{pid=\"%d\",%s,holder=\"%s\"} ", name, (int)p->pid, group->labels,
	         who);
	add_seconds(w->out, group->wait_for_ns[holder]);
	str_addc(w->out, '\n');
}

/* All groups of the same GIL, also those that nobody has waited for yet: a series that began with its first
 * wait would be without it in a rate. */
static void write_wait_for(const struct writer *w)
{
	const char *name = begin_family(w, FAMILY_WAIT_FOR);

	for (size_t i = 0; i < w->watch->processes.n; i++) {
		const struct metrics_process *p = w->watch->processes.v[i];

		for (size_t g = 0; g < p->groups.n; g++) {
			const struct metrics_group *group = &p->groups.v[g];

			add_wait_for(w, name, p, group, METRICS_NOBODY);
			for (unsigned h = 0; h < p->groups.n && h < METRICS_GROUPS; h++)
				if (p->groups.v[h].gil == group->gil &&
				    strcmp(p->groups.v[h].name, METRICS_OTHER) != 0)
					add_wait_for(w, name, p, group, h + 1);
			add_wait_for(w, name, p, group, METRICS_OTHERS);
		}
	}
}

static void write_threads(const struct writer *w)
{
	const char *name = begin_family(w, FAMILY_THREADS);

	for (size_t i = 0; i < w->watch->processes.n; i++) {
		const struct metrics_process *p = w->watch->processes.v[i];

		for (size_t g = 0; g < p->groups.n; g++)
			add_count(w, name, p, p->groups.v[g].labels, p->groups.v[g].threads);
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

static void write_gils(const struct writer *w, enum family family)
{
	const char *name = begin_family(w, family);

	for (size_t i = 0; i < w->watch->processes.n; i++) {
		const struct metrics_process *p = w->watch->processes.v[i];

		for (unsigned g = 0; g <= METRICS_GILS; g++) {
			char label[24];

			if (!p->gils[g].watched_ns)
				continue;
			gil_label(label, sizeof(label), g);
			if (family == FAMILY_WATCHED)
				add_counter(w, name, p, label, p->gils[g].watched_ns);
			else
				add_count(w, name, p, label, p->gils[g].waiters);
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

static void write_histograms(const struct writer *w, enum family family)
{
	const char *name = begin_family(w, family);

	for (size_t i = 0; i < w->watch->processes.n; i++) {
		const struct metrics_process *p = w->watch->processes.v[i];

		write_histogram(w, name, p, family == FAMILY_HOLD_DURATION ? &p->holds : &p->waits);
	}
}

/* ---- of processes */

static void write_processes(const struct writer *w)
{
	const struct watch *watch = w->watch;
	const char *name = begin_family(w, FAMILY_CPU);

	for (size_t i = 0; i < watch->processes.n; i++)
		add_counter(w, name, watch->processes.v[i], "", watch->processes.v[i]->cpu_ns);
	name = begin_family(w, FAMILY_PROCESS);
	for (size_t i = 0; i < watch->processes.n; i++) {
		const struct metrics_process *p = watch->processes.v[i];

		str_addf(w->out, "%s_info{pid=\"%d\",parent=\"%d\",command=\"%s\"", name,
		         (int)p->pid, (int)p->parent, p->command);
		if (p->arguments)
			str_addf(w->out, ",arguments=\"%s\"", p->arguments);
		str_adds(w->out, "} 1\n");
	}
	name = begin_family(w, FAMILY_THREADS_LEFT_OUT);
	for (size_t i = 0; i < watch->processes.n; i++)
		add_count(w, name, watch->processes.v[i], "",
		          watch->processes.v[i]->snapshot.left_out);
	name = begin_family(w, FAMILY_EVENTS_LOST);
	for (size_t i = 0; i < watch->processes.n; i++)
		if (watch->processes.v[i]->observed) {
			add_name(w, name, "_total", watch->processes.v[i], "");
			str_addf(w->out, "%" PRIu64 "\n", watch->processes.v[i]->snapshot.lost);
		}
	name = begin_family(w, FAMILY_PROCESSES);
	str_addf(w->out, "%s %zu\n", name, watch->processes.n);
	name = begin_family(w, FAMILY_PROCESSES_LEFT_OUT);
	str_addf(w->out, "%s %u\n", name, watch->left_out);
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

	write_group_seconds(&w, FAMILY_HOLD, offsetof(struct metrics_group, hold_ns));
	write_group_seconds(&w, FAMILY_WAIT, offsetof(struct metrics_group, wait_ns));
	write_wait_for(&w);
	write_group_seconds(&w, FAMILY_KEPT, offsetof(struct metrics_group, kept_ns));
	write_group_seconds(&w, FAMILY_LIFETIME, offsetof(struct metrics_group, life_ns));
	write_threads(&w);
	write_gils(&w, FAMILY_WATCHED);
	write_gils(&w, FAMILY_WAITERS);
	write_histograms(&w, FAMILY_HOLD_DURATION);
	write_histograms(&w, FAMILY_WAIT_DURATION);
	write_processes(&w);
	if (w.open)
		str_adds(out, "# EOF\n");
}

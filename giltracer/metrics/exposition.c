/* SPDX-License-Identifier: MIT */
/* Renders metrics as text. All samples of a family are adjacent, as OpenMetrics requires. */
#include "metrics/exposition.h"

#include <inttypes.h>
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

enum family {
#define FAMILY(name, ...) FAMILY_##name,
#include "metrics/families.def"
#undef FAMILY
	FAMILIES,
};

/* @unit: NULL: none */
static const struct {
	const char *name, *type, *unit, *help;
} families[] = {
#define FAMILY(id, name, type, unit, help) { name, type, unit, help },
#include "metrics/families.def"
#undef FAMILY
};

/**
 * @open: OpenMetrics
 * @unix_ns: CLOCK_REALTIME minus CLOCK_MONOTONIC
 * @family: the one being written; @name: with which the names of its samples begin
 */
struct writer {
	struct str *out;
	bool open;
	int64_t unix_ns;
	enum family family;
	const char *name;
};

static void add_seconds(struct str *out, uint64_t ns)
{
	str_addf(out, "%" PRIu64 ".%09" PRIu64, ns / NS_PER_SECOND, ns % NS_PER_SECOND);
}

/* A counter's family is called NAME in OpenMetrics, and NAME_total in Prometheus' format. */
static void begin_family(struct writer *w, enum family family)
{
	const char *name = families[family].name, *type = families[family].type;
	bool counter = !strcmp(type, "counter"), info = !strcmp(type, "info");
	const char *suffix = w->open ? "" : counter ? "_total" : info ? "_info" : "";

	str_addf(w->out, "# TYPE %s%s %s\n", name, suffix, info && !w->open ? "gauge" : type);
	if (families[family].unit && w->open)
		str_addf(w->out, "# UNIT %s %s\n", name, families[family].unit);
	str_addf(w->out, "# HELP %s%s %s\n", name, suffix, families[family].help);
	w->family = family;
	w->name = name;
}

/* NAME SUFFIX{pid="…"[,LABELS]} */
static void add_name(const struct writer *w, const char *suffix, const struct metrics_process *p,
                     const char *labels)
{
	str_addf(w->out, "%s%s{pid=\"%d\"%s%s} ", w->name, suffix, (int)p->pid, *labels ? "," : "",
	         labels);
}

/* The time at which a counter was 0. */
static void add_created(const struct writer *w, const struct metrics_process *p, const char *labels)
{
	if (!w->open)
		return;
	add_name(w, "_created", p, labels);
	str_addf(w->out, "%" PRIu64 ".%03u\n", p->created_ms / 1000,
	         (unsigned)(p->created_ms % 1000));
}

static void add_counter(const struct writer *w, const struct metrics_process *p, const char *labels,
                        uint64_t ns)
{
	add_name(w, "_total", p, labels);
	add_seconds(w->out, ns);
	str_addc(w->out, '\n');
	add_created(w, p, labels);
}

static void add_count(const struct writer *w, const struct metrics_process *p, const char *suffix,
                      const char *labels, uint64_t count)
{
	add_name(w, suffix, p, labels);
	str_addf(w->out, "%" PRIu64 "\n", count);
}

/* ---- metrics of groups of threads */

static uint64_t group_ns(enum family family, const struct metrics_group *group)
{
	switch (family) {
	case FAMILY_HOLD:
		return group->hold_ns;
	case FAMILY_WAIT:
		return group->wait_ns;
	case FAMILY_KEPT:
		return group->kept_ns;
	default:
		return group->life_ns;
	}
}

static void put_group_seconds(const struct writer *w, const struct metrics_process *p)
{
	for (size_t g = 0; g < p->groups.n; g++)
		add_counter(w, p, p->groups.v[g].labels, group_ns(w->family, &p->groups.v[g]));
}

/* Without _created, which is the same as that of the group's other counters. */
static void add_wait_for(const struct writer *w, const struct metrics_process *p,
                         const struct metrics_group *group, unsigned holder)
{
	const char *who = holder == METRICS_NOBODY   ? METRICS_NONE
	                  : holder == METRICS_OTHERS ? METRICS_OTHER
	                                             : p->groups.v[holder - 1].name;

	str_addf(w->out, "%s_total{pid=\"%d\",%s,holder=\"%s\"} ", w->name, (int)p->pid,
	         group->labels, who);
	add_seconds(w->out, group->wait_for_ns[holder]);
	str_addc(w->out, '\n');
}

/* Writes all groups of the same GIL, also those that nobody has waited for yet: if a series
 * began with the first wait, its rate would not include that wait. */
static void put_wait_for(const struct writer *w, const struct metrics_process *p)
{
	for (size_t g = 0; g < p->groups.n; g++) {
		const struct metrics_group *group = &p->groups.v[g];

		add_wait_for(w, p, group, METRICS_NOBODY);
		for (unsigned h = 0; h < p->groups.n && h < METRICS_GROUPS; h++)
			if (p->groups.v[h].gil == group->gil &&
			    strcmp(p->groups.v[h].name, METRICS_OTHER) != 0)
				add_wait_for(w, p, group, h + 1);
		add_wait_for(w, p, group, METRICS_OTHERS);
	}
}

/* Only waits that there were: a group may wait in few of the lines. */
static void put_lock_waits(const struct writer *w, const struct metrics_process *p)
{
	for (size_t g = 0; g < p->groups.n; g++)
		for (unsigned i = 0; i < TOTALS_LOCKS; i++) {
			const struct metrics_group *group = &p->groups.v[g];
			CLEANUP(free) char *line = NULL;

			if (!group->lock_wait_ns[i])
				continue;
			line = metrics_label_value(i == TOTALS_LOCK_OTHER
			                                   ? METRICS_OTHER
			                                   : p->snapshot.locks[i].where);
			str_addf(w->out, "%s_total{pid=\"%d\",%s,line=\"%s\"} ", w->name,
			         (int)p->pid, group->labels, line);
			add_seconds(w->out, group->lock_wait_ns[i]);
			str_addc(w->out, '\n');
		}
}

static void put_threads(const struct writer *w, const struct metrics_process *p)
{
	for (size_t g = 0; g < p->groups.n; g++)
		add_count(w, p, "", p->groups.v[g].labels, p->groups.v[g].threads);
}

/* ---- metrics of GILs */

static void gil_label(char *ret, size_t size, unsigned gil)
{
	if (gil == 0)
		*ret = '\0';
	else if (gil == METRICS_GILS)
		snprintf(ret, size, "gil=\"other\"");
	else
		snprintf(ret, size, "gil=\"%u\"", gil);
}

static void put_gils(const struct writer *w, const struct metrics_process *p)
{
	for (unsigned g = 0; g <= METRICS_GILS; g++) {
		char label[24];

		if (!p->gils[g].watched_ns)
			continue;
		gil_label(label, sizeof(label), g);
		if (w->family == FAMILY_WATCHED)
			add_counter(w, p, label, p->gils[g].watched_ns);
		else
			add_count(w, p, "", label, p->gils[g].waiters);
	}
}

/* ---- histograms */

/* Upper bounds as powers of two in ns: 131 us to 8.6 s, densest around the switch interval of 5
 * ms. */
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

static void add_bucket(const struct writer *w, const struct metrics_process *p, const char *le,
                       uint64_t count)
{
	str_addf(w->out, "%s_bucket{pid=\"%d\",le=\"%s\"} %" PRIu64, w->name, (int)p->pid, le,
	         count);
}

static void put_durations(const struct writer *w, const struct metrics_process *p)
{
	const struct metrics_histogram *h = w->family == FAMILY_HOLD_DURATION ? &p->holds
	                                                                      : &p->waits;
	uint64_t count = 0, above = 0;
	unsigned bucket = 0;

	for (size_t i = 0; i < BOUNDS; i++) {
		CLEANUP(str_done) struct str le = { 0 };
		uint64_t bound = UINT64_C(1) << bounds[i];

		while (bucket + TOTALS_BUCKET_BITS <= bounds[i])
			count += h->buckets[bucket++];
		add_seconds(&le, bound);
		add_bucket(w, p, str_get(&le), count);
		add_exemplar(w, h, above, bound);
		str_addc(w->out, '\n');
		above = bound;
	}
	while (bucket < TOTALS_BUCKETS)
		count += h->buckets[bucket++];
	add_bucket(w, p, "+Inf", count);
	add_exemplar(w, h, above, UINT64_MAX);
	str_addc(w->out, '\n');
	add_name(w, "_sum", p, "");
	add_seconds(w->out, h->sum_ns);
	str_addc(w->out, '\n');
	add_count(w, p, "_count", "", count);
	add_created(w, p, "");
}

/* ---- metrics of processes */

static void put_cpu(const struct writer *w, const struct metrics_process *p)
{
	add_counter(w, p, "", p->cpu_ns);
}

static void put_process(const struct writer *w, const struct metrics_process *p)
{
	str_addf(w->out, "%s_info{pid=\"%d\",parent=\"%d\",command=\"%s\"", w->name, (int)p->pid,
	         (int)p->parent, p->command);
	if (p->arguments)
		str_addf(w->out, ",arguments=\"%s\"", p->arguments);
	str_adds(w->out, "} 1\n");
}

static void put_threads_left_out(const struct writer *w, const struct metrics_process *p)
{
	add_count(w, p, "", "", p->snapshot.left_out);
}

static void (*const put[FAMILIES])(const struct writer *, const struct metrics_process *) = {
	[FAMILY_HOLD] = put_group_seconds,
	[FAMILY_WAIT] = put_group_seconds,
	[FAMILY_WAIT_FOR] = put_wait_for,
	[FAMILY_KEPT] = put_group_seconds,
	[FAMILY_LOCK_WAIT] = put_lock_waits,
	[FAMILY_LIFETIME] = put_group_seconds,
	[FAMILY_THREADS] = put_threads,
	[FAMILY_WATCHED] = put_gils,
	[FAMILY_WAITERS] = put_gils,
	[FAMILY_HOLD_DURATION] = put_durations,
	[FAMILY_WAIT_DURATION] = put_durations,
	[FAMILY_CPU] = put_cpu,
	[FAMILY_PROCESS] = put_process,
	[FAMILY_THREADS_LEFT_OUT] = put_threads_left_out,
};

/* ---- all metrics */

static int64_t unix_offset(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * (int64_t)NS_PER_SECOND + ts.tv_nsec - (int64_t)clock_now_ns();
}

void exposition_write(struct str *out, const struct watch *watch, enum exposition format)
{
	struct writer w = { .out = out,
		            .open = format == EXPOSITION_OPENMETRICS,
		            .unix_ns = unix_offset() };

	for (enum family family = 0; family < FAMILIES; family++) {
		begin_family(&w, family);
		for (size_t i = 0; put[family] && i < watch->processes.n; i++)
			put[family](&w, watch->processes.v[i]);
		if (family == FAMILY_PROCESSES)
			str_addf(out, "%s %zu\n", w.name, watch->processes.n);
		else if (family == FAMILY_PROCESSES_LEFT_OUT)
			str_addf(out, "%s %u\n", w.name, watch->left_out);
	}
	if (w.open)
		str_adds(out, "# EOF\n");
}

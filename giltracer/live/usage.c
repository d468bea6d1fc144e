/* SPDX-License-Identifier: MIT */
#include "live/usage.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/procfs.h"
#include "base/str.h"
#include "live/lock_waits.h"
#include "live/snapshot.h"
#include "live/totals.h"

/* The number of code objects kept in memory; if there are more, all are dropped. */
#define CODES_MAX 20000

/* A majority vote: the value in more than half of the samples, if there is one; otherwise any of
 * the values. */
struct vote {
	uint64_t key;
	unsigned lead;
};

/* What samples tell about a thread in the current interval. @code, @line: for function's key */
struct seen {
	uint32_t tid, gil_of;
	char name[PYTHREAD_NAME];
	unsigned has, waits, runs, sleeps;
	struct vote holder, function;
	const struct live_code *code;
	uint32_t line;
	bool with_gil; /* whether function ran with the GIL */
};

/* A GIL in the current interval. @of: see gil_of of struct usage_thread; @samples: in which it was
 * held */
struct held {
	uint32_t of;
	unsigned samples;
};

struct usage_source {
	pid_t pid;
	struct target *target;
	struct snapshots *snapshots;
	struct snapshot last;  /* of the interval */
	struct keep *keep;     /* NULL: samples are not kept */
	struct totals *totals; /* NULL: the program keeps none now */
	bool elsewhere;        /* it has its own numbers of threads */
	struct totals_snapshot before, now;
	VEC(struct seen) seen;
	VEC(struct held) held;
	unsigned samples;
	uint32_t gils;
	uint64_t began_ns;
};

static bool vote(struct vote *v, uint64_t key)
{
	if (v->lead && v->key == key) {
		v->lead++;
		return false;
	}
	if (v->lead) {
		v->lead--;
		return false;
	}
	*v = (struct vote){ key, 1 };
	return true;
}

/* ---- samples */

static struct seen *seen_of(struct usage_source *u, const struct snapshot_thread *t)
{
	struct seen *seen = NULL;

	for (size_t i = 0; i < u->seen.n; i++)
		if (u->seen.v[i].tid == t->tid)
			seen = &u->seen.v[i];
	if (!seen) {
		seen = vec_push(&u->seen);
		*seen = (struct seen){ .tid = t->tid };
	}
	memcpy(seen->name, t->name, sizeof(seen->name)); /* the newest */
	return seen;
}

/* A function that runs with the GIL takes precedence over one that runs without it. */
static void add_function(struct seen *seen, const struct snapshot_thread *t)
{
	bool with_gil = t->gil == GIL_HOLDS;

	if (!t->frames.n || (seen->with_gil && !with_gil))
		return;
	if (with_gil && !seen->with_gil)
		seen->function.lead = 0;
	seen->with_gil = with_gil;
	if (vote(&seen->function, (uint64_t)(uintptr_t)t->frames.v[0].code)) {
		seen->code = t->frames.v[0].code;
		seen->line = t->frames.v[0].line;
	}
}

static void add_thread(struct usage_source *u, const struct snapshot *snapshot,
                       const struct snapshot_thread *t)
{
	const struct snapshot_thread *holder = snapshot_holder(snapshot, t->gil_address);
	struct seen *seen = seen_of(u, t);

	seen->has += t->gil == GIL_HOLDS;
	seen->waits += t->gil == GIL_WAITS;
	seen->gil_of = t->gil_of;
	if (t->gil == GIL_WAITS && holder)
		vote(&seen->holder, holder->tid);
	if (t->gil != GIL_HOLDS && t->gil != GIL_WAITS) {
		seen->runs += t->activity == SAMPLE_RUNNING;
		seen->sleeps += t->activity > SAMPLE_RUNNING;
	}
	add_function(seen, t);
}

static void add_held(struct usage_source *u, uint32_t gil_of)
{
	size_t i = 0;

	while (i < u->held.n && u->held.v[i].of != gil_of)
		i++;
	if (i == u->held.n)
		*vec_push(&u->held) = (struct held){ .of = gil_of };
	u->held.v[i].samples++;
}

int usage_sample(struct usage_source *u, struct error *err)
{
	struct snapshot snapshot;

	if (snapshot_take(&snapshot, u->snapshots, err) < 0)
		return -1;
	for (size_t i = 0; i < snapshot.threads.n; i++) {
		const struct snapshot_thread *t = &snapshot.threads.v[i];

		if (t->tid)
			add_thread(u, &snapshot, t);
		if (t->gil == GIL_HOLDS)
			add_held(u, t->gil_of);
	}
	u->gils = snapshot.gils;
	if (u->keep)
		keep_add(u->keep, u->pid, &snapshot);
	snapshot_done(&u->last);
	u->last = snapshot;
	u->samples++;
	return 0;
}

/* ---- an interval */

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

static void fill_seen(const struct usage_source *u, const struct seen *seen,
                      struct usage_thread *ret)
{
	ret->has = percent(seen->has, u->samples);
	ret->waits = percent(seen->waits, u->samples);
	ret->runs = percent(seen->runs, u->samples);
	ret->sleeps = percent(seen->sleeps, u->samples);
	ret->gil_of = seen->gil_of;
	ret->for_tid = seen->holder.lead ? (uint32_t)seen->holder.key : 0;
	if (seen->code) {
		ret->function = xstrdup(seen->code->name);
		ret->file = xstrdup(seen->code->file);
		ret->line = seen->line;
	}
}

static void add_sampled(const struct usage_source *u, struct usage *ret)
{
	unsigned held = 0;

	for (size_t i = 0; i < u->seen.n; i++) {
		struct usage_thread *t = vec_push(&ret->threads);

		*t = (struct usage_thread){ .tid = u->seen.v[i].tid, .own_tid = u->seen.v[i].tid };
		if (u->elsewhere)
			t->own_tid = procfs_own_number(u->pid, (pid_t)t->tid);
		memcpy(t->name, u->seen.v[i].name, sizeof(u->seen.v[i].name));
		fill_seen(u, &u->seen.v[i], t);
	}
	for (size_t i = 0; i < u->held.n; i++)
		held = u->held.v[i].samples > held ? u->held.v[i].samples : held;
	ret->free = u->samples > held ? percent(u->samples - held, u->samples) : 0;
}

/* By its number in the program's own namespace. */
static struct usage_thread *find_thread(const struct usage *usage, uint32_t own)
{
	for (size_t i = 0; i < usage->threads.n; i++)
		if (usage->threads.v[i].own_tid == own)
			return &usage->threads.v[i];
	return NULL;
}

static struct usage_holder *holder_of(struct usage_thread *t, enum usage_holder_kind kind,
                                      const char *name)
{
	struct usage_holder *holder;

	for (size_t i = 0; i < t->holders.n; i++)
		if (t->holders.v[i].kind == kind && !strcmp(t->holders.v[i].name, name))
			return &t->holders.v[i];
	holder = vec_push(&t->holders);
	*holder = (struct usage_holder){ .kind = kind };
	snprintf(holder->name, sizeof(holder->name), "%s", name);
	return holder;
}

static void add_holder(const struct usage_source *u, struct usage_thread *t, uint32_t gil,
                       uint32_t group, double share)
{
	const struct totals_thread *first = totals_first_of_group(&u->now, gil, group);
	enum usage_holder_kind kind = first                    ? USAGE_GROUP
	                              : group == TOTALS_NOBODY ? USAGE_NOBODY
	                                                       : USAGE_OTHERS;
	CLEANUP(str_done) struct str name = { 0 };

	if (first)
		str_add_pattern(&name, first->name);
	holder_of(t, kind, str_get(&name))->percent += share;
}

/* Switch wait counts as waiting for nobody: the thread has released the GIL on request, and no
 * other thread has taken it yet. */
static void add_wait(const struct usage_source *u, struct usage_thread *t,
                     const struct totals_thread *now, const struct totals_thread *was,
                     uint64_t interval_ns)
{
	for (uint32_t i = 0; i < TOTALS_GROUPS; i++) {
		uint64_t ns = now->wait_for_ns[i] - was->wait_for_ns[i];

		if (i == TOTALS_NOBODY)
			ns += now->switch_ns - was->switch_ns;
		if (!ns)
			continue;
		t->waits += percent(ns, interval_ns);
		add_holder(u, t, now->gil, i, percent(ns, interval_ns));
	}
}

static int compare_holders(const void *a, const void *b)
{
	const struct usage_holder *x = a, *y = b;

	return (x->percent < y->percent) - (x->percent > y->percent);
}

/* Drops the samples' estimates for threads that are in the page, and adds threads that were not
 * sampled, unless they have ended. */
static void drop_estimates(const struct usage_source *u, struct usage *ret)
{
	for (size_t i = 0; i < u->now.threads.n; i++) {
		const struct totals_thread *now = &u->now.threads.v[i];
		struct usage_thread *t = now->used ? find_thread(ret, now->tid) : NULL;

		if (!now->used || (!t && now->state == TOTALS_ENDED))
			continue;
		if (!t) {
			t = vec_push(&ret->threads);
			*t = (struct usage_thread){ .tid = now->tid, .own_tid = now->tid };
		}
		t->has = t->waits = 0;
		if (now->state != TOTALS_ENDED)
			snprintf(t->name, sizeof(t->name), "%s", now->name);
	}
}

/* A renamed thread has left one slot and taken another, so it gets the sum of both. */
static void add_exact(const struct usage_source *u, struct usage *ret)
{
	const struct totals_thread none = { 0 };
	uint64_t held[TOTALS_GILS] = { 0 }, most = 0;

	ret->exact = true;
	drop_estimates(u, ret);
	for (size_t i = 0; i < u->now.threads.n; i++) {
		const struct totals_thread *now = &u->now.threads.v[i];
		const struct totals_thread *was = i < u->before.threads.n ? &u->before.threads.v[i]
		                                                          : &none;
		struct usage_thread *t = now->used ? find_thread(ret, now->tid) : NULL;

		held[now->gil] += now->hold_ns - was->hold_ns;
		if (!t)
			continue;
		t->has += percent(now->hold_ns - was->hold_ns, ret->interval_ns);
		add_wait(u, t, now, was, ret->interval_ns);
	}
	for (size_t i = 0; i < ret->threads.n; i++)
		vec_sort(&ret->threads.v[i].holders, compare_holders);
	for (unsigned i = 0; i < TOTALS_GILS; i++)
		most = held[i] > most ? held[i] : most;
	ret->free = most < ret->interval_ns ? percent(ret->interval_ns - most, ret->interval_ns)
	                                    : 0;
}

static void add_locks(const struct usage_source *u, struct usage *ret)
{
	struct lock_waits locks;

	lock_waits_find(&locks, u->target, &u->last);
	for (size_t i = 0; i < locks.waits.n; i++) {
		struct lock_wait *wait = &locks.waits.v[i];
		struct usage_thread *t = wait->expression
		                                 ? find_thread(ret, u->last.threads.v[i].tid)
		                                 : NULL;

		if (!t || t->lock)
			continue;
		t->lock = take(wait->expression);
		if (wait->holder != SIZE_MAX)
			t->lock_tid = u->last.threads.v[wait->holder].tid;
		t->lock_inferred = wait->inferred;
	}
	lock_waits_done(&locks);
}

static int compare(const void *a, const void *b)
{
	const struct usage_thread *x = a, *y = b;
	double by = y->has + y->waits - x->has - x->waits, runs = y->runs - x->runs;

	if (by > 0 || by < 0)
		return by > 0 ? 1 : -1;
	if (runs > 0 || runs < 0)
		return runs > 0 ? 1 : -1;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

static void swap_totals(struct usage_source *u)
{
	struct totals_snapshot before = u->before;

	u->before = u->now;
	u->now = before;
}

static void empty(struct usage *usage)
{
	for (size_t i = 0; i < usage->threads.n; i++) {
		free(usage->threads.v[i].function);
		free(usage->threads.v[i].file);
		free(usage->threads.v[i].lock);
		vec_done(&usage->threads.v[i].holders);
	}
	usage->threads.n = 0;
}

void usage_done(struct usage *usage)
{
	empty(usage);
	vec_done(&usage->threads);
}

/* Bounds our memory if the program creates code objects without end. */
static void forget_codes(struct usage_source *u)
{
	struct target *target;
	struct error ignored;

	if (!target_code_at(u->target, CODES_MAX) || target_open(&target, u->pid, &ignored) < 0)
		return;
	snapshots_free(u->snapshots);
	target_close(u->target);
	if (u->keep)
		keep_forget_codes(u->keep);
	u->target = target;
	u->snapshots = snapshots_new(target);
}

static void forget_totals(struct usage_source *u)
{
	totals_close(u->totals);
	u->totals = NULL;
}

/* The program may have begun to count, again. */
static void find_totals(struct usage_source *u)
{
	CLEANUP(free) char *path = totals_path(u->pid);
	struct error ignored;

	if (path && totals_open(&u->totals, path, &ignored) == 0 &&
	    !totals_read(u->totals, &u->before))
		forget_totals(u);
}

/* A GIL that a subinterpreter had before the program was made to count is not in the page. */
static bool knows_gils(const struct usage_source *u)
{
	uint32_t known = 0;

	for (unsigned i = 0; i < TOTALS_GILS; i++)
		known += u->now.gils[i].age_ns && !u->now.gils[i].gone;
	return u->gils <= known;
}

void usage_end(struct usage_source *u, struct usage *ret)
{
	uint64_t began_ns = u->began_ns;
	bool counted = u->totals && totals_read(u->totals, &u->now);
	bool exact = counted && knows_gils(u);

	empty(ret);
	ret->exact = false;
	ret->samples = u->samples;
	ret->gils = u->gils;
	ret->time_ns = u->began_ns = counted ? u->now.at_ns : clock_now_ns();
	if (counted)
		began_ns = u->before.at_ns;
	ret->interval_ns = ret->time_ns > began_ns ? ret->time_ns - began_ns : 1;
	add_sampled(u, ret);
	if (exact)
		add_exact(u, ret);
	if (counted) {
		swap_totals(u);
	} else {
		forget_totals(u);
		find_totals(u);
	}
	add_locks(u, ret);
	snapshot_done(&u->last);
	u->last = (struct snapshot){ 0 };
	vec_sort(&ret->threads, compare);
	u->seen.n = u->held.n = 0;
	u->samples = 0;
	forget_codes(u);
}

/* ---- the whole */

int usage_open(struct usage_source **ret, pid_t pid, struct error *err)
{
	CLEANUP(usage_close) struct usage_source *u = xcalloc(1, sizeof(*u));

	u->pid = pid;
	if (target_open(&u->target, pid, err) < 0)
		return -1;
	u->snapshots = snapshots_new(u->target);
	u->elsewhere = procfs_is_elsewhere(pid);
	find_totals(u);
	u->began_ns = u->totals ? u->before.at_ns : clock_now_ns();
	*ret = take(u);
	return 0;
}

void usage_keep(struct usage_source *u, const struct keep_plan *plan)
{
	u->keep = keep_new(plan, clock_now_ns());
}

struct keep *usage_kept(const struct usage_source *u)
{
	return u->keep;
}

const struct python *usage_python(const struct usage_source *u)
{
	return u->target->process.python;
}

void usage_close(struct usage_source *u)
{
	if (!u)
		return;
	keep_free(u->keep);
	totals_close(u->totals);
	totals_snapshot_done(&u->before);
	totals_snapshot_done(&u->now);
	snapshot_done(&u->last);
	snapshots_free(u->snapshots);
	target_close(u->target);
	vec_done(&u->seen);
	vec_done(&u->held);
	free(u);
}

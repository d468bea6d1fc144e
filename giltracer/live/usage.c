/* SPDX-License-Identifier: MIT */
#include "live/usage.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "live/snapshot.h"
#include "live/totals.h"

/* A majority vote: what was seen in more than half of the samples, else something that was seen. */
struct vote {
	uint64_t key;
	unsigned lead;
};

/* What samples tell of a thread in the interval at hand. @code, @line: go with function's key */
struct seen {
	uint32_t tid;
	char name[16];
	unsigned has, waits, runs, sleeps;
	struct vote holder, function;
	const struct live_code *code;
	uint32_t line;
	bool with_gil; /* what function is about */
};

struct usage_source {
	pid_t pid;
	struct target *target;
	struct snapshots *snapshots;
	struct totals *totals; /* NULL: the program keeps none */
	struct totals_snapshot before, now;
	VEC(struct seen) seen;
	unsigned samples, held;
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
	struct seen *seen;

	for (size_t i = 0; i < u->seen.n; i++)
		if (u->seen.v[i].tid == t->tid)
			return &u->seen.v[i];
	seen = vec_push(&u->seen);
	*seen = (struct seen){ .tid = t->tid };
	memcpy(seen->name, t->name, sizeof(seen->name));
	return seen;
}

/* What it runs with the GIL counts for more than what it does without. */
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
	u->held += t->gil == GIL_HOLDS;
	if (t->gil == GIL_WAITS && holder)
		vote(&seen->holder, holder->tid);
	if (t->gil != GIL_HOLDS && t->gil != GIL_WAITS) {
		seen->runs += t->activity == SAMPLE_RUNNING;
		seen->sleeps += t->activity > SAMPLE_RUNNING;
	}
	add_function(seen, t);
}

int usage_sample(struct usage_source *u, struct error *err)
{
	struct snapshot snapshot;

	if (snapshot_take(&snapshot, u->snapshots, err) < 0)
		return -1;
	for (size_t i = 0; i < snapshot.threads.n; i++)
		if (snapshot.threads.v[i].tid)
			add_thread(u, &snapshot, &snapshot.threads.v[i]);
	snapshot_done(&snapshot);
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
	ret->for_tid = seen->holder.lead ? (uint32_t)seen->holder.key : 0;
	if (seen->code) {
		ret->function = seen->code->name;
		ret->file = seen->code->file;
		ret->line = seen->line;
	}
}

static void add_sampled(const struct usage_source *u, struct usage *ret)
{
	for (size_t i = 0; i < u->seen.n; i++) {
		struct usage_thread *t = vec_push(&ret->threads);

		*t = (struct usage_thread){ .tid = u->seen.v[i].tid };
		memcpy(t->name, u->seen.v[i].name, sizeof(u->seen.v[i].name));
		fill_seen(u, &u->seen.v[i], t);
	}
	ret->free = u->samples > u->held ? percent(u->samples - u->held, u->samples) : 0;
}

/* Exact times replace what samples say of the same thread. */
static void add_exact(struct usage_source *u, struct usage *ret)
{
	uint64_t held = 0;

	ret->exact = true;
	for (size_t i = 0; i < u->now.threads.n; i++) {
		const struct totals_thread *now = &u->now.threads.v[i];
		const struct totals_thread none = { 0 };
		const struct totals_thread *was = i < u->before.threads.n ? &u->before.threads.v[i]
		                                                          : &none;
		uint64_t wait = now->wait_ns + now->switch_ns - was->wait_ns - was->switch_ns;
		struct usage_thread *t = NULL;

		held += now->hold_ns - was->hold_ns;
		for (size_t j = 0; j < ret->threads.n; j++)
			if (ret->threads.v[j].tid == now->tid)
				t = &ret->threads.v[j];
		if (!now->used || (!t && now->state == TOTALS_ENDED))
			continue;
		if (!t) {
			t = vec_push(&ret->threads);
			*t = (struct usage_thread){ .tid = now->tid };
		}
		snprintf(t->name, sizeof(t->name), "%s", now->name);
		t->has = percent(now->hold_ns - was->hold_ns, ret->interval_ns);
		t->waits = percent(wait, ret->interval_ns);
	}
	ret->free = held < ret->interval_ns ? percent(ret->interval_ns - held, ret->interval_ns)
	                                    : 0;
}

static int compare(const void *a, const void *b)
{
	const struct usage_thread *x = a, *y = b;
	double by = y->has + y->waits - x->has - x->waits;

	if (by > 0 || by < 0)
		return by > 0 ? 1 : -1;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

static void swap_totals(struct usage_source *u)
{
	struct totals_snapshot before = u->before;

	u->before = u->now;
	u->now = before;
}

void usage_end(struct usage_source *u, struct usage *ret)
{
	uint64_t began_ns = u->began_ns;
	bool exact = u->totals && totals_read(u->totals, &u->now);

	ret->threads.n = 0;
	ret->exact = false;
	ret->samples = u->samples;
	ret->time_ns = u->began_ns = exact ? u->now.at_ns : clock_now_ns();
	if (exact)
		began_ns = u->before.at_ns;
	ret->interval_ns = ret->time_ns > began_ns ? ret->time_ns - began_ns : 1;
	add_sampled(u, ret);
	if (exact) {
		add_exact(u, ret);
		swap_totals(u);
	}
	if (ret->threads.n)
		qsort(ret->threads.v, ret->threads.n, sizeof(*ret->threads.v), compare);
	u->seen.n = 0;
	u->samples = u->held = 0;
}

/* ---- the whole */

int usage_open(struct usage_source **ret, pid_t pid, struct error *err)
{
	CLEANUP(usage_close) struct usage_source *u = xcalloc(1, sizeof(*u));
	struct error ignored;

	u->pid = pid;
	if (target_open(&u->target, pid, err) < 0)
		return -1;
	u->snapshots = snapshots_new(u->target);
	if (totals_open_process(&u->totals, pid, &ignored) == 0 &&
	    !totals_read(u->totals, &u->before)) {
		totals_close(u->totals);
		u->totals = NULL;
	}
	u->began_ns = u->totals ? u->before.at_ns : clock_now_ns();
	*ret = take(u);
	return 0;
}

void usage_close(struct usage_source *u)
{
	if (!u)
		return;
	totals_close(u->totals);
	totals_snapshot_done(&u->before);
	totals_snapshot_done(&u->now);
	snapshots_free(u->snapshots);
	target_close(u->target);
	vec_done(&u->seen);
	free(u);
}

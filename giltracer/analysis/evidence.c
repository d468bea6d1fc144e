/* SPDX-License-Identifier: MIT */
/* Gathers the numbers for the verdict and applies its rules. */
#include "analysis/evidence.h"

#include <stdlib.h>

#include "analysis/functions.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "model/span.h"

#define BURST_PARTS   200 /* of the recording */
#define BURST_WINDOW  10  /* maximum number of neighbouring parts that form a burst */
#define BURST_PERCENT 50  /* minimum share of the waiting in a burst */
#define BURST_TAIL    10  /* a neighbouring part with less than this fraction is not in it */
#define BURST_NS      VERDICT_SHORT_NS /* minimum of blocked_ns */

/* How long the thread ran on a CPU without the GIL. Walks both lanes in parallel. */
static uint64_t running_off_gil(const struct model_thread *t)
{
	uint64_t sum = 0;
	size_t g = 0, c = 0;

	while (g < t->gil.spans.n && c < t->cpu.spans.n) {
		const struct span *gil = &t->gil.spans.v[g], *cpu = &t->cpu.spans.v[c];
		uint64_t gil_end = lane_span_end(&t->gil, g), cpu_end = lane_span_end(&t->cpu, c);
		uint64_t from = gil->start_ns > cpu->start_ns ? gil->start_ns : cpu->start_ns;
		uint64_t to = gil_end < cpu_end ? gil_end : cpu_end;

		if (gil_state_is_without(gil->state) && cpu->state == CPU_RUNNING && to > from)
			sum += to - from;
		if (gil_end <= cpu_end)
			g++;
		if (cpu_end <= gil_end)
			c++;
	}
	return sum;
}

uint64_t evidence_gil_wait(const struct evidence *e, const struct model_thread *t)
{
	return e->recording->gil_detect ? model_thread_wait_ns(t) : t->cpu_ns[CPU_GIL_SLEEP];
}

static uint64_t life_of(const struct model_thread *t)
{
	return model_thread_life_ns(t);
}

static void look_at_thread(struct evidence *e, uint32_t i)
{
	const struct model_thread *t = &e->model->threads.v[i];
	double runnable = facts_percent(t->cpu_ns[CPU_RUNNABLE], life_of(t));

	e->wait_ns += evidence_gil_wait(e, t);
	e->lock_wait_ns += t->gil_ns[GIL_LOCK_WAIT];
	e->wanted_ns += evidence_gil_wait(e, t) +
	                (e->recording->gil_detect ? t->gil_ns[GIL_HOLD] : t->cpu_ns[CPU_RUNNING]);
	e->holders += t->gil_ns[GIL_HOLD] > 0;
	if (t->cpu_ns[CPU_RUNNING] > e->busiest_ns) {
		e->busiest = i;
		e->busiest_ns = t->cpu_ns[CPU_RUNNING];
	}
	if (life_of(t) >= e->wall_ns / 100 * VERDICT_LIFE && runnable > e->runnable_percent)
		e->runnable_percent = runnable;
}

/* The number of rules of the verdict that a share of a thread's life satisfies. */
static int victim_rank(double percent)
{
	return (percent >= VERDICT_MUCH) + (percent >= VERDICT_SOME);
}

/* Makes the thread or group v if it satisfies a stricter rule than the victim so far, or if it
 * satisfies the same rule and waited longer. */
static void look_for_victim(struct evidence_victim *v, const struct evidence_victim *other)
{
	int rank = victim_rank(other->percent) - victim_rank(v->percent);

	if (other->ns && rank >= 0 && (rank || other->ns > v->ns))
		*v = *other;
}

/* t: a thread, or the sum of a group. */
static void look_for_victims(struct evidence *e, const struct model_thread *t, uint32_t thread,
                             uint32_t group)
{
	uint64_t gil = evidence_gil_wait(e, t), lock = t->gil_ns[GIL_LOCK_WAIT];

	if (life_of(t) < e->wall_ns / 100 * VERDICT_LIFE)
		return;
	look_for_victim(&e->victim, &(struct evidence_victim){
					    thread, group, facts_percent(gil, life_of(t)), gil });
	look_for_victim(
		&e->lock_victim,
		&(struct evidence_victim){ thread, group, facts_percent(lock, life_of(t)), lock });
}

static void find_victims(struct evidence *e, const struct thread_groups *groups)
{
	for (uint32_t i = 0; i < groups->v.n; i++)
		if (groups->v.v[i].threads >= GROUP_MIN_THREADS)
			look_for_victims(e, &groups->v.v[i].sum, MODEL_NONE, i);
	for (uint32_t i = 0; i < e->model->threads.n; i++)
		if (groups->v.v[groups->of[i]].threads < GROUP_MIN_THREADS)
			look_for_victims(e, &e->model->threads.v[i], i, MODEL_NONE);
}

/* The lane that shows when the thread waits for the GIL, and whether it does in a span of that. */
static const struct lane *lane_of(const struct evidence *e, const struct model_thread *t)
{
	return e->recording->gil_detect ? &t->gil : &t->cpu;
}

static bool is_wait(const struct evidence *e, const struct span *s)
{
	return e->recording->gil_detect ? s->state == GIL_WAIT || s->state == GIL_SWITCH_WAIT
	                                : s->state == CPU_GIL_SLEEP;
}

struct sleep {
	uint64_t from_ns, to_ns;
};

struct sleeps {
	VEC(struct sleep) v;
};

static int by_start(const void *va, const void *vb)
{
	const struct sleep *a = va, *b = vb;

	return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

/* The time in which at least one thread was asleep for the GIL. */
static uint64_t any_asleep_for_gil(const struct evidence *e)
{
	struct sleeps list = { 0 };
	uint64_t ns = 0, until_ns = 0;

	for (size_t i = 0; i < e->model->threads.n; i++) {
		const struct lane *lane = &e->model->threads.v[i].cpu;

		for (size_t k = 0; k < lane->spans.n; k++)
			if (lane->spans.v[k].state == CPU_GIL_SLEEP)
				*vec_push(&list.v) = (struct sleep){ lane->spans.v[k].start_ns,
					                             lane_span_end(lane, k) };
	}
	if (list.v.n)
		qsort(list.v.v, list.v.n, sizeof(*list.v.v), by_start);
	for (size_t i = 0; i < list.v.n; i++) {
		const struct sleep *s = &list.v.v[i];

		if (s->to_ns <= until_ns)
			continue;
		ns += s->to_ns - (s->from_ns > until_ns ? s->from_ns : until_ns);
		until_ns = s->to_ns;
	}
	vec_done(&list.v);
	return ns;
}

static uint64_t blocked(const struct evidence *e)
{
	uint64_t most = 0;

	if (!e->recording->gil_detect)
		return any_asleep_for_gil(e);
	for (size_t i = 0; i < e->model->gils.n; i++)
		if (e->model->gils.v[i].wanted_ns > most)
			most = e->model->gils.v[i].wanted_ns;
	return most;
}

/* The share of the waiting during starts of threads, which perf makes slow. */
static double slow_starts(const struct evidence *e)
{
	const struct hogs *hogs = e->pass->hogs;
	uint64_t wait_ns = 0;

	for (size_t i = 0; hogs && i < hogs->v.n; i++)
		if (function_is_slow_start(e->pass, &hogs->v.v[i]))
			wait_ns += hogs->v.v[i].overdue_wait_ns;
	return facts_percent(wait_ns, e->totals.blamed_ns);
}

/* Adds the waiting of all threads to the parts of the recording in which it happened. */
static void add_waits(const struct evidence *e, uint64_t part_ns, uint64_t parts[BURST_PARTS])
{
	for (size_t i = 0; i < e->model->threads.n; i++) {
		const struct lane *lane = lane_of(e, &e->model->threads.v[i]);

		for (size_t k = 0; k < lane->spans.n; k++) {
			uint64_t from = lane->spans.v[k].start_ns - e->model->start_ns;
			uint64_t to = lane_span_end(lane, k) - e->model->start_ns;

			if (!is_wait(e, &lane->spans.v[k]))
				continue;
			for (uint64_t p = from / part_ns; from < to && p < BURST_PARTS; p++) {
				uint64_t end = (p + 1) * part_ns < to ? (p + 1) * part_ns : to;

				parts[p] += end - from;
				from = end;
			}
		}
	}
}

/* Finds the shortest part of the recording that has BURST_PERCENT of the waiting, or of equally
 * short ones the one with the most, and extends it by neighbouring parts that have much of it. */
static void find_burst(struct evidence *e)
{
	uint64_t part_ns = (e->model->end_ns - e->model->start_ns) / BURST_PARTS + 1;
	uint64_t parts[BURST_PARTS] = { 0 }, most = 0;
	size_t first = 0, n = 1;

	if (e->blocked_ns < BURST_NS)
		return;
	add_waits(e, part_ns, parts);
	for (; n <= BURST_WINDOW; n++) {
		for (size_t i = 0; i + n <= BURST_PARTS; i++) {
			uint64_t ns = 0;

			for (size_t k = i; k < i + n; k++)
				ns += parts[k];
			if (ns <= most)
				continue;
			most = ns;
			first = i;
		}
		if (facts_percent(most, e->wait_ns) >= BURST_PERCENT)
			break;
	}
	if (n > BURST_WINDOW)
		return;
	while (n < BURST_WINDOW) {
		uint64_t before = first ? parts[first - 1] : 0;
		uint64_t after = first + n < BURST_PARTS ? parts[first + n] : 0;
		uint64_t next = before > after ? before : after;

		if (next * BURST_TAIL < most / n)
			break;
		first -= before > after;
		most += next;
		n++;
	}
	e->burst = (struct evidence_burst){
		.percent = facts_percent(most, e->wait_ns),
		.from_ns = e->model->start_ns + first * part_ns,
		.to_ns = e->model->start_ns + (first + n) * part_ns,
	};
	for (size_t i = 0; i < e->model->threads.n; i++) {
		const struct model_thread *t = &e->model->threads.v[i];

		/* A thread starts right before it waits, and ends right after. */
		e->burst.started += t->start_ns > e->model->start_ns &&
		                    t->start_ns + part_ns > e->burst.from_ns &&
		                    t->start_ns < e->burst.to_ns;
		e->burst.ended += t->end_ns > e->burst.from_ns &&
		                  t->end_ns < e->burst.to_ns + part_ns &&
		                  t->end_ns < e->model->end_ns;
	}
}

static int by_pid(const void *va, const void *vb)
{
	const uint32_t *a = va, *b = vb;

	return (*a > *b) - (*a < *b);
}

/* Counts the processes in which Python ran. */
static unsigned count_processes(const struct model *m)
{
	CLEANUP(free) uint32_t *pids = xcalloc(m->gils.n + 1, sizeof(*pids));
	size_t n = 0;
	unsigned count = 0;

	for (size_t i = 0; i < m->gils.n; i++)
		if (m->gils.v[i].held_ns)
			pids[n++] = m->gils.v[i].pid;
	qsort(pids, n, sizeof(*pids), by_pid);
	for (size_t i = 0; i < n; i++)
		count += !i || pids[i] != pids[i - 1];
	return count;
}

/* Adds up unknown time. In a process in which a thread is known to have used the GIL, threads of
 * which nothing is known are those of C libraries, which never use it: nothing of them is
 * missing. */
static void find_unknown(struct evidence *e)
{
	const struct model *m = e->model;
	CLEANUP(free) uint32_t *known = xcalloc(m->threads.n + 1, sizeof(*known));
	size_t n = 0;

	for (size_t i = 0; i < m->threads.n; i++)
		if (m->threads.v[i].gil_ns[GIL_UNKNOWN] - m->threads.v[i].suspended_ns <
		    life_of(&m->threads.v[i]))
			known[n++] = m->threads.v[i].pid;
	qsort(known, n, sizeof(*known), by_pid);
	for (size_t i = 0; i < m->threads.n; i++) {
		const struct model_thread *t = &m->threads.v[i];
		uint64_t life = life_of(t);
		bool gil = e->recording->gil_detect;
		uint64_t unknown = (gil ? t->gil_ns[GIL_UNKNOWN] : t->cpu_ns[CPU_UNKNOWN]) -
		                   t->suspended_ns;

		if (gil && unknown == life && bsearch(&t->pid, known, n, sizeof(*known), by_pid))
			continue;
		e->unknown_ns += unknown;
		e->unknown_of_ns += life;
	}
}

struct evidence evidence_gather(const struct recording *recording,
                                const struct thread_groups *groups)
{
	struct evidence e = {
		.recording = recording,
		.pass = recording_main_pass(recording),
		.busiest = MODEL_NONE,
		.victim = { .thread = MODEL_NONE, .group = MODEL_NONE },
		.lock_victim = { .thread = MODEL_NONE, .group = MODEL_NONE },
	};

	e.model = e.pass->model;
	e.totals = facts_totals(e.model);
	e.wall_ns = e.model->end_ns - e.model->start_ns - e.model->suspended_ns;
	for (uint32_t i = 0; i < e.model->threads.n; i++)
		look_at_thread(&e, i);
	find_victims(&e, groups);
	e.blocked_ns = blocked(&e);
	e.slow_percent = slow_starts(&e);
	e.processes = count_processes(e.model);
	find_burst(&e);
	find_unknown(&e);
	return e;
}

uint64_t evidence_asleep(const struct evidence *e)
{
	return e->totals.cpu_ns[CPU_SLEEPING] + e->totals.cpu_ns[CPU_UNINTERRUPTIBLE];
}

uint64_t evidence_cpu_known(const struct evidence *e)
{
	return e->totals.life_ns - e->totals.cpu_ns[CPU_UNKNOWN];
}

bool evidence_is_starved(const struct evidence *e)
{
	uint64_t runnable = e->totals.cpu_ns[CPU_RUNNABLE];

	return facts_percent(runnable, runnable + e->totals.cpu_ns[CPU_RUNNING]) >=
	               VERDICT_STARVED &&
	       e->runnable_percent >= VERDICT_LINE;
}

bool evidence_is_blind(const struct evidence *e)
{
	return !e->recording->gil_detect && e->model->caveats[CAVEAT_NO_TRACEPOINTS];
}

bool evidence_is_single(const struct evidence *e)
{
	return facts_percent(e->busiest_ns, e->totals.cpu_ns[CPU_RUNNING]) >= VERDICT_SINGLE;
}

bool evidence_is_throttled(const struct evidence *e)
{
	const struct cpu_quota *q = &e->pass->quota;

	return q->period_us && facts_percent(q->throttled, q->periods) >= VERDICT_THROTTLED;
}

bool evidence_is_lost(const struct evidence *e)
{
	return e->unknown_ns > e->wanted_ns && evidence_unknown_percent(e) >= VERDICT_LOST;
}

double evidence_unknown_percent(const struct evidence *e)
{
	return facts_percent(e->unknown_ns, e->unknown_of_ns);
}

/* Both shares are those of the waiting that tracing did not cause, nor a lack of CPUs that is a
 * problem of its own. */
enum verdict_kind evidence_gil(const struct evidence *e)
{
	uint64_t no_cpu_ns = evidence_is_starved(e) ? e->totals.no_cpu_ns : 0;
	double own = 1 - (e->slow_percent + facts_percent(no_cpu_ns, e->totals.blamed_ns)) / 100;
	double blocked = facts_percent(e->blocked_ns, e->wall_ns) * own;
	double share = facts_percent(e->wait_ns, e->wanted_ns) * own;

	if (e->victim.percent * own > share)
		share = e->victim.percent * own;
	if (e->blocked_ns < VERDICT_SHORT_NS)
		return VERDICT_GIL_NONE;
	if (blocked >= VERDICT_MUCH && share >= VERDICT_MUCH)
		return VERDICT_GIL_BOUND;
	return blocked >= VERDICT_SOME && share >= VERDICT_SOME ? VERDICT_GIL_SOME
	                                                        : VERDICT_GIL_NONE;
}

bool evidence_is_lock_bound(const struct evidence *e)
{
	return e->lock_victim.percent >= VERDICT_MUCH && e->lock_wait_ns >= VERDICT_SHORT_NS &&
	       e->lock_wait_ns > e->wait_ns && e->lock_wait_ns > e->totals.cpu_ns[CPU_RUNNABLE];
}

/* Called only if no simpler rule decides, because it walks all spans. */
static bool is_native(struct evidence *e)
{
	uint64_t running = e->totals.cpu_ns[CPU_RUNNING];

	if (!e->recording->gil_detect || running <= e->wall_ns / 10)
		return false;
	for (size_t i = 0; i < e->model->threads.n; i++)
		e->off_gil_running_ns += running_off_gil(&e->model->threads.v[i]);
	return facts_percent(e->off_gil_running_ns, running) >= VERDICT_NATIVE;
}

static bool is_nothing(const struct evidence *e)
{
	return !e->model->threads.n || (!e->model->gil_events && !evidence_cpu_known(e)) ||
	       (!e->model->gil_events && e->recording->gil_detect);
}

static bool has_samples(const struct evidence *e)
{
	return e->pass->samples && e->pass->samples->times.n;
}

enum verdict_kind evidence_judge(struct evidence *e)
{
	uint64_t running = e->totals.cpu_ns[CPU_RUNNING], cpu_known = evidence_cpu_known(e);

	if (e->recording->python.free_threaded && !e->model->gil_events)
		return VERDICT_FREE_THREADED;
	if (e->model->idle && !e->model->gil_events)
		return VERDICT_IDLE;
	if (is_nothing(e))
		return has_samples(e) ? VERDICT_SAMPLED : VERDICT_NOTHING;
	if (e->wall_ns < VERDICT_SHORT_NS)
		return VERDICT_TOO_SHORT;
	if (evidence_is_lock_bound(e))
		return VERDICT_LOCK_BOUND;
	if (evidence_is_starved(e) &&
	    (e->totals.cpu_ns[CPU_RUNNABLE] > e->wait_ns || evidence_gil(e) == VERDICT_GIL_NONE))
		return VERDICT_CPU_STARVED;
	if (!e->model->gil_events && has_samples(e))
		return VERDICT_SAMPLED;
	if (evidence_is_blind(e))
		return VERDICT_GIL_UNKNOWN;
	if (evidence_gil(e) != VERDICT_GIL_NONE)
		return evidence_gil(e);
	if (evidence_is_lost(e))
		return VERDICT_GIL_UNKNOWN;
	if (evidence_is_single(e) && facts_percent(running, e->wall_ns) >= VERDICT_BUSY)
		return VERDICT_SINGLE_THREADED;
	if (is_native(e))
		return VERDICT_NATIVE_WORK;
	if (cpu_known && facts_percent(evidence_asleep(e), cpu_known) >= VERDICT_ASLEEP)
		return VERDICT_IO_BOUND;
	if (e->recording->gil_detect && e->holders == 1)
		return VERDICT_SINGLE_THREADED;
	return VERDICT_GIL_NONE;
}

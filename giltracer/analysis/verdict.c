/* SPDX-License-Identifier: MIT */
/* The verdict: its evidence, its rules, and its sentences with their numbers. */
#include "analysis/verdict.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/functions.h"
#include "analysis/hogs.h"
#include "analysis/pystack.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "model/model.h"
#include "model/span.h"
#include "trace/names.h"
#include "trace/source.h"

struct reason *reasons_add(struct reasons *reasons, enum reason_code code)
{
	struct reason *r = vec_push(&reasons->v);

	*r = (struct reason){
		.code = code, .thread = MODEL_NONE, .other = MODEL_NONE, .group = MODEL_NONE
	};
	return r;
}

/* The evidence. */

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

		if (gil_state_is_without(gil->state) && cpu->state == CPU_RUNNING)
			sum += overlap_ns(gil->start_ns, gil_end, cpu->start_ns, cpu_end);
		if (gil_end <= cpu_end)
			g++;
		if (cpu_end <= gil_end)
			c++;
	}
	return sum;
}

/* How long a thread waited for the GIL: according to its GIL events or, if none were recorded, its
 * sleeps. */
static uint64_t evidence_gil_wait(const struct evidence *e, const struct model_thread *t)
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
	vec_sort(&list.v, by_start);
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
static void add_to_parts(const struct evidence *e, uint64_t part_ns, uint64_t parts[BURST_PARTS])
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
	add_to_parts(e, part_ns, parts);
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

/* groups: of the main pass, by name only. */
static struct evidence gather_evidence(const struct recording *recording,
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

/* Threads lack CPUs: the rule may hold in addition to another one. */
static bool evidence_is_starved(const struct evidence *e)
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

/* One thread does all the work. */
static bool evidence_is_single(const struct evidence *e)
{
	return facts_percent(e->busiest_ns, e->totals.cpu_ns[CPU_RUNNING]) >= VERDICT_SINGLE;
}

bool evidence_is_throttled(const struct evidence *e)
{
	const struct cpu_quota *q = &e->pass->quota;

	return q->period_us && facts_percent(q->throttled, q->periods) >= VERDICT_THROTTLED;
}

/* The unknown share of the lives of threads that may have used the GIL. */
static double evidence_unknown_percent(const struct evidence *e)
{
	return facts_percent(e->unknown_ns, e->unknown_of_ns);
}

bool evidence_is_lost(const struct evidence *e)
{
	return e->unknown_ns > e->wanted_ns && evidence_unknown_percent(e) >= VERDICT_LOST;
}

/* The smaller of the two shares that the rules of gil-bound and gil-some limit: of the waiting that was
 * caused neither by tracing nor by a lack of CPUs that is a problem of its own. */
static double evidence_gil_percent(const struct evidence *e)
{
	uint64_t no_cpu_ns = evidence_is_starved(e) ? e->totals.no_cpu_ns : 0;
	uint64_t not_own_ns = no_cpu_ns + e->totals.probed_handoff_ns;
	double own = 1 - (e->slow_percent + facts_percent(not_own_ns, e->totals.blamed_ns)) / 100;
	double blocked = facts_percent(e->blocked_ns, e->wall_ns) * own;
	double share = facts_percent(e->wait_ns, e->wanted_ns) * own;

	if (e->victim.percent * own > share)
		share = e->victim.percent * own;
	if (e->blocked_ns < VERDICT_SHORT_NS)
		return 0;
	return blocked < share ? blocked : share;
}

/* GIL_BOUND, GIL_SOME or GIL_NONE. */
static enum verdict_kind evidence_gil(const struct evidence *e)
{
	double percent = evidence_gil_percent(e);

	return percent >= VERDICT_MUCH   ? VERDICT_GIL_BOUND
	       : percent >= VERDICT_SOME ? VERDICT_GIL_SOME
	                                 : VERDICT_GIL_NONE;
}

/* The deadlock that lasted longest, as one does that lasts until the end; NULL: none. */
static const struct model_deadlock *main_deadlock(const struct model *m)
{
	const struct model_deadlock *most = NULL;

	for (size_t i = 0; i < m->deadlocks.n; i++) {
		const struct model_deadlock *d = &m->deadlocks.v[i];

		if (d->end_ns == m->end_ns)
			return d;
		if (!most || d->end_ns - d->start_ns > most->end_ns - most->start_ns)
			most = d;
	}
	return most;
}

/* Threads that block each other until the end never get further, however long that has lasted. */
static bool is_stuck(const struct evidence *e)
{
	const struct model_deadlock *d = main_deadlock(e->model);

	return d && d->end_ns == e->model->end_ns && d->end_ns - d->start_ns >= VERDICT_SHORT_NS;
}

static bool evidence_is_lock_bound(const struct evidence *e)
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

/* The thread that held the GIL throughout; MODEL_NONE: there is none, or that is not known. */
static uint32_t find_holder(const struct evidence *e)
{
	for (uint32_t i = 0; i < e->model->threads.n; i++)
		if (e->model->threads.v[i].held)
			return i;
	return MODEL_NONE;
}

/* The first rule that holds. Computes off_gil_running_ns if the rule needs it. */
static enum verdict_kind evidence_judge(struct evidence *e)
{
	uint64_t running = e->totals.cpu_ns[CPU_RUNNING], cpu_known = evidence_cpu_known(e);
	const bool sampled = !e->model->gil_events && e->pass->samples && e->pass->samples->times.n;

	if (e->recording->python.free_threaded && !e->model->gil_events &&
	    (!sampled || e->model->park_events))
		return VERDICT_FREE_THREADED;
	if (e->model->idle && !e->model->gil_events)
		return VERDICT_IDLE;
	if (!sampled && find_holder(e) != MODEL_NONE)
		return VERDICT_HELD;
	if (is_nothing(e))
		return sampled ? VERDICT_SAMPLED : VERDICT_NOTHING;
	if (is_stuck(e))
		return VERDICT_LOCK_BOUND;
	if (e->wall_ns < VERDICT_SHORT_NS)
		return VERDICT_TOO_SHORT;
	if (evidence_is_lock_bound(e))
		return VERDICT_LOCK_BOUND;
	if (evidence_is_starved(e) &&
	    (e->totals.cpu_ns[CPU_RUNNABLE] > e->wait_ns || evidence_gil(e) == VERDICT_GIL_NONE))
		return VERDICT_CPU_STARVED;
	if (sampled)
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

/* The parts of the verdict. */

#define CHAIN_MOST       50 /* percent of the waits for locks, or of the run: their cause */
#define WORTH_A_WORD     1  /* percent of a thread's life: worth reporting */
#define SLOW_STARTS_SOME 5  /* percent of all waiting: worth reporting */
#define SLOW_STARTS_MUCH 30
#define FEW              100 /* samples: with fewer, shares are off by 10 points and more */
#define TORN_SOME        5   /* percent: worth reporting */

/* The largest chain of the lock for which threads waited for half of the time or more; NULL: there is none. */
static const struct chain *main_chain(const struct analysis *a)
{
	for (size_t i = 0; i < a->chains.v.n; i++)
		if (facts_percent(a->chains.v.v[i].wait_ns, a->chains.ns) >= CHAIN_MOST)
			return &a->chains.v.v[i];
	return NULL;
}

/* Whether most of the waiting passed while threads did the same, and it is known what. */
static bool has_one_cause(const struct analysis *a, const struct chain *chain)
{
	return chain && facts_percent(chain->ns, a->chains.ns) >= CHAIN_MOST &&
	       (chain->end == CHAIN_HELD_GIL || chain->end == CHAIN_WITHOUT_GIL);
}

/* How long the thread waited for room in queues, which by made, and where it waited longest. */
static uint64_t waited_for_room(const struct analysis *a, uint32_t thread, uint32_t by,
                                uint32_t *ret_frame)
{
	const struct model_thread *t = &a->model->threads.v[thread];
	uint64_t sum = 0, longest = 0;

	for (size_t i = 0; i < t->signals.n; i++) {
		const struct model_signal *s = &t->signals.v[i];
		struct lock_name name = lock_name_of(a->recording, a->pass, s->waits_in);
		const char *dot = name.called ? strrchr(name.called, '.') : NULL;

		if (s->by != by || name.kind != LOCK_QUEUE || !name.called ||
		    strcmp(dot ? dot + 1 : name.called, "put"))
			continue;
		sum += s->to_ns - s->from_ns;
		if (s->to_ns - s->from_ns <= longest)
			continue;
		longest = s->to_ns - s->from_ns;
		*ret_frame = s->waits_in;
	}
	return sum;
}

/* The slowest stage of a pipeline: the critical path is mostly in one thread, and another one waits for
 * this one to make room in a queue. */
static bool find_stage(struct reasons *to, const struct analysis *a)
{
	const struct path_part *part = a->path.rows.n ? &a->path.rows.v[0] : NULL;
	double percent = part ? facts_percent(part->ns, a->path.ns) : 0, most = 0;
	uint32_t waiter = MODEL_NONE, frame = 0;
	struct reason *r;

	if (percent < CHAIN_MOST || part->thread == MODEL_NONE || part->reason > PATH_ASLEEP)
		return false;
	for (uint32_t i = 0; i < a->model->threads.n; i++) {
		const struct model_thread *t = &a->model->threads.v[i];
		uint32_t in = 0;
		double waited = i == part->thread
		                        ? 0
		                        : facts_percent(waited_for_room(a, i, part->thread, &in),
		                                        t->end_ns - t->start_ns);

		if (waited < CHAIN_MOST || waited <= most)
			continue;
		most = waited;
		waiter = i;
		frame = in;
	}
	if (waiter == MODEL_NONE)
		return false;
	r = reasons_add(to, REASON_STAGE);
	r->thread = part->thread;
	r->percent = percent;
	r->other = waiter;
	r->other_percent = most;
	r->frame = frame;
	r->part = part;
	return true;
}

/* Adds that the GIL of a free-threaded interpreter is on, and why; adds nothing if it is off. */
static void add_turned_on(struct reasons *to, const struct analysis *a)
{
	const struct recording_python *python = &a->recording->python;

	if (!python->free_threaded || !a->model->gil_events)
		return;
	if (python->gil && !strcmp(python->gil, "forced")) {
		reasons_add(to, REASON_GIL_FORCED);
		if (a->model->imports.n)
			reasons_add(to, REASON_GIL_NEEDED);
		else if (a->model->imports_known)
			reasons_add(to, REASON_GIL_NOT_NEEDED);
		return;
	}
	if (!python->gil && !a->model->imports.n) {
		reasons_add(to, REASON_GIL_IS_ON);
		return;
	}
	reasons_add(to, python->gil && !strcmp(python->gil, "off") ? REASON_GIL_TURNED_ON
	                                                           : REASON_GIL_ON);
	if (a->model->imports.n > 1)
		reasons_add(to, REASON_GIL_NEEDED);
}

static void judge_sampled(struct verdict *v, const struct analysis *a)
{
	const struct samples *s = a->pass->samples;
	double missed = facts_percent(s->missed, s->missed + s->times.n);
	double torn = facts_percent(s->torn, s->stacks_read);

	v->quality = a->sampled.samples < FEW || missed >= 50 || torn >= 50 ? QUALITY_POOR
	                                                                    : QUALITY_FAIR;
	reasons_add(&v->quality_why, QUALITY_SAMPLED)->count = s->times.n;
	if (missed >= TORN_SOME)
		reasons_add(&v->quality_why, QUALITY_MISSED)->percent = missed;
	if (torn >= TORN_SOME)
		reasons_add(&v->quality_why, QUALITY_TORN)->percent = torn;
}

static void add_percent(struct reasons *to, enum reason_code code, double percent)
{
	reasons_add(to, code)->percent = percent;
}

static void add_victim(struct reason *r, const struct evidence_victim *victim)
{
	r->thread = victim->thread;
	r->group = victim->group;
	r->percent = victim->percent;
	r->ns = victim->ns;
}

static void add_waits(struct reasons *to, const struct evidence *e, enum reason_code code)
{
	struct reason *r = reasons_add(to, code);

	r->ns = e->wait_ns;
	r->held_ns = e->wanted_ns - e->wait_ns;
	r->percent = facts_percent(e->wait_ns, e->wanted_ns);
	if (e->victim.percent < VERDICT_SOME)
		return;
	add_victim(r, &e->victim);
}

static void add_cpus(struct reasons *to, const struct evidence *e, enum reason_code code)
{
	uint64_t runnable = e->totals.cpu_ns[CPU_RUNNABLE];

	add_percent(to, code, facts_percent(runnable, runnable + e->totals.cpu_ns[CPU_RUNNING]));
}

static void find_headline(struct reasons *to, const struct analysis *a, enum verdict_kind kind)
{
	const struct evidence *e = &a->evidence;
	uint64_t running = e->totals.cpu_ns[CPU_RUNNING];
	double asleep = facts_percent(evidence_asleep(e), evidence_cpu_known(e));
	const struct sampled *sampled;
	struct reason *r;

	switch (kind) {
	case VERDICT_FREE_THREADED:
		reasons_add(to, REASON_NO_GIL);
		return;
	case VERDICT_IDLE:
		reasons_add(to, e->model->suspended_ns ? REASON_HALTED : REASON_IDLE)->ns =
			e->model->end_ns - e->model->start_ns;
		return;
	case VERDICT_HELD:
		r = reasons_add(to, REASON_HELD);
		r->thread = find_holder(e);
		r->ns = e->wall_ns;
		return;
	case VERDICT_NOTHING:
		reasons_add(to, REASON_NOTHING);
		return;
	case VERDICT_TOO_SHORT:
		reasons_add(to, REASON_TOO_SHORT)->ns = e->wall_ns;
		return;
	case VERDICT_LOCK_BOUND:
		if (main_deadlock(e->model)) {
			reasons_add(to, REASON_DEADLOCK)->deadlock = main_deadlock(e->model);
			return;
		}
		r = reasons_add(to, REASON_LOCK_BOUND);
		add_victim(r, &e->lock_victim);
		r->chain = main_chain(a);
		r->caused = has_one_cause(a, r->chain);
		if (r->chain)
			r->other_percent = facts_percent(
				r->caused ? r->chain->ns : r->chain->wait_ns, a->chains.ns);
		return;
	case VERDICT_CPU_STARVED:
		add_cpus(to, e,
		         evidence_gil(e) == VERDICT_GIL_NONE && !evidence_is_blind(e) &&
		                         !evidence_is_lost(e)
		                 ? REASON_CPUS_NOT_GIL
		                 : REASON_CPUS);
		return;
	case VERDICT_GIL_BOUND:
		add_waits(to, e, REASON_GIL_BOUND);
		return;
	case VERDICT_GIL_SOME:
		add_waits(to, e, REASON_GIL_SOME);
		return;
	case VERDICT_NATIVE_WORK:
		add_percent(to, REASON_NATIVE, facts_percent(e->off_gil_running_ns, running));
		return;
	case VERDICT_IO_BOUND:
		if (find_stage(to, a))
			return;
		add_percent(to,
		            e->totals.cpu_ns[CPU_UNINTERRUPTIBLE] > evidence_asleep(e) / 2
		                    ? REASON_ASLEEP_DISK
		                    : REASON_ASLEEP,
		            asleep);
		return;
	case VERDICT_SINGLE_THREADED:
		reasons_add(to, evidence_is_single(e) ? REASON_SINGLE : REASON_SINGLE_HOLDER);
		return;
	case VERDICT_SAMPLED:
		sampled = &a->sampled;
		r = reasons_add(to, sampled->held || sampled->what[SAMPLED_WAITS]
		                            ? REASON_SAMPLED
		                            : REASON_SAMPLED_NO_GIL);
		r->count = sampled->samples;
		r->number = (double)sampled->what[SAMPLED_WAITS] / (double)sampled->samples;
		return;
	case VERDICT_GIL_NONE:
		if (find_stage(to, a))
			return;
		add_percent(to, REASON_GIL_NONE, facts_percent(e->blocked_ns, e->wall_ns));
		return;
	case VERDICT_GIL_UNKNOWN:
		if (evidence_is_blind(e))
			add_percent(to, REASON_GIL_UNKNOWN,
			            facts_percent(running, evidence_cpu_known(e)));
		else
			add_percent(to, REASON_GIL_LOST, evidence_unknown_percent(e));
		return;
	}
}

/* Reports that most of the waiting happened at once. */
static void add_burst(struct verdict *v, const struct evidence *e)
{
	const struct evidence_burst *b = &e->burst;
	bool ended = b->ended >= b->started;
	uint32_t threads = ended ? b->ended : b->started;
	struct reason *r;

	if (!b->percent || v->kind == VERDICT_TOO_SHORT ||
	    (v->kind == VERDICT_LOCK_BOUND && evidence_gil(e) == VERDICT_GIL_NONE))
		return;
	r = reasons_add(&v->context, threads < GROUP_MIN_THREADS ? REASON_BURST
	                             : ended                     ? REASON_BURST_END
	                                                         : REASON_BURST_START);
	r->percent = b->percent;
	r->ns = b->from_ns - e->model->start_ns;
	r->longest_ns = b->to_ns - b->from_ns;
	r->count = threads;
}

static void add_busiest(struct verdict *v, const struct evidence *e)
{
	double percent = facts_percent(e->busiest_ns, e->wall_ns);
	struct reason *r;

	if (e->busiest == MODEL_NONE)
		return;
	r = reasons_add(&v->context, REASON_BUSIEST);
	r->percent = percent;
	r->thread = e->busiest;
	if (percent >= VERDICT_BUSY)
		reasons_add(&v->advice, ADVICE_BUSIEST);
}

/* Whether locks or stops of the interpreter kept a thread from running for a share of its life that is
 * worth reporting. */
static bool is_blocked_by_locks(const struct model *m)
{
	for (size_t i = 0; i < m->threads.n; i++) {
		const uint64_t *ns = m->threads.v[i].gil_ns;

		if (facts_percent(ns[GIL_LOCK_WAIT] + ns[GIL_SPINNING] + ns[GIL_STOPPING] +
		                          ns[GIL_STOPPED],
		                  life_of(&m->threads.v[i])) >= WORTH_A_WORD)
			return true;
	}
	return false;
}

/* What the verdict of this kind adds to its headline. */
static void add_context_of_kind(struct verdict *v, const struct analysis *a)
{
	const struct evidence *e = &a->evidence;

	switch (v->kind) {
	case VERDICT_CPU_STARVED:
		if (!evidence_is_throttled(e))
			reasons_add(&v->context,
			            a->cpu_users.list.n ? REASON_CPU_USERS : REASON_STATES);
		return;
	case VERDICT_SINGLE_THREADED:
		add_busiest(v, e);
		return;
	case VERDICT_IO_BOUND:
		reasons_add(&v->context, REASON_STATES);
		/* Without GIL events, it was the stacks that were recorded. */
		if (v->headline.v.v[0].code != REASON_STAGE && !a->recording->state_detect &&
		    a->recording->gil_detect)
			reasons_add(&v->advice, ADVICE_STATE_DETECT);
		return;
	case VERDICT_NATIVE_WORK:
	case VERDICT_GIL_UNKNOWN:
		reasons_add(&v->context, REASON_STATES);
		return;
	case VERDICT_TOO_SHORT:
		reasons_add(&v->advice, ADVICE_LONGER);
		return;
	case VERDICT_IDLE:
	case VERDICT_HELD:
		reasons_add(&v->advice, ADVICE_STACKS);
		return;
	case VERDICT_NOTHING:
		if (!recording_has_note(a->recording, "not-loaded"))
			reasons_add(&v->advice, e->model->caveats[CAVEAT_TRUNCATED]
			                                ? ADVICE_RECORD_AGAIN
			                        : e->pass->attached ? ADVICE_STACKS
			                                            : ADVICE_TRACE_IMPORTS);
		return;
	case VERDICT_FREE_THREADED:
		if (a->recording->gil_detect && !is_blocked_by_locks(e->model))
			reasons_add(&v->context, REASON_NO_LOCKS);
		return;
	case VERDICT_SAMPLED:
		if (!a->pass->gil_recorded)
			reasons_add(&v->advice, ADVICE_EXACT);
		return;
	case VERDICT_LOCK_BOUND:
	case VERDICT_GIL_BOUND:
	case VERDICT_GIL_SOME:
	case VERDICT_GIL_NONE:
		return;
	}
}

/* The first two locks that were taken in both orders; NULL: none. */
static const struct model_order *first_inversion(const struct model *m)
{
	for (size_t i = 0; i < m->orders.n; i++)
		if (model_order_is_inverted(m, i))
			return &m->orders.v[i];
	return NULL;
}

static void find_context(struct verdict *v, const struct analysis *a)
{
	const struct evidence *e = &a->evidence;
	double asleep = facts_percent(evidence_asleep(e), evidence_cpu_known(e));

	add_context_of_kind(v, a);
	if (v->kind == VERDICT_CPU_STARVED && evidence_is_single(e))
		reasons_add(&v->context, REASON_SINGLE_TOO);
	else if (v->kind == VERDICT_GIL_SOME && asleep >= VERDICT_ASLEEP)
		add_percent(&v->context, REASON_ASLEEP_TOO, asleep);
	/* Another run of the same program may have the other verdict. */
	if (e->recording->gil_detect && v->kind != VERDICT_TOO_SHORT &&
	    evidence_gil_percent(e) >= VERDICT_NEARLY && evidence_gil(e) == VERDICT_GIL_NONE)
		add_percent(&v->context, REASON_GIL_NEARLY, evidence_gil_percent(e));
	add_burst(v, e);
	if (v->kind != VERDICT_LOCK_BOUND && main_deadlock(e->model)) {
		reasons_add(&v->context, REASON_DEADLOCK)->deadlock = main_deadlock(e->model);
	} else if (!main_deadlock(e->model) && first_inversion(e->model)) {
		reasons_add(&v->context, REASON_ORDER)->order = first_inversion(e->model);
		reasons_add(&v->advice, ADVICE_DEADLOCK);
	}
	add_turned_on(&v->context, a);
}

static uint64_t lost_records(const struct recording *recording)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < recording->pass_count; i++)
		if (recording->passes[i].source)
			lost += recording->passes[i].source->stats.lost;
	return lost;
}

/* Flaws of the recording; shares that round to 0 are not reported. */
struct flaws {
	uint64_t lost;
	double starts, unknown, inferred;
};

static void add_flaws(struct reasons *to, const struct flaws *f, bool complete)
{
	if (f->starts >= SLOW_STARTS_SOME)
		add_percent(to, QUALITY_SLOW_STARTS, f->starts);
	if (f->lost)
		reasons_add(to, QUALITY_LOST)->count = f->lost;
	if (f->unknown >= FACTS_LEAST_PERCENT)
		add_percent(to, QUALITY_UNKNOWN, f->unknown);
	if (f->inferred >= FACTS_LEAST_PERCENT)
		add_percent(to, QUALITY_INFERRED, f->inferred);
	if (!to->v.n)
		reasons_add(to, complete ? QUALITY_COMPLETE : QUALITY_SEE_NOTES);
}

/* Whether nothing is shown to people that says otherwise. */
static bool is_complete(const struct analysis *a)
{
	for (size_t i = 0; i < a->caveats.n; i++)
		if (!a->caveats.v[i].minor)
			return false;
	for (size_t i = 0; i < a->tasks.v.n; i++)
		if (a->tasks.v.v[i].inferred_ns || a->tasks.v.v[i].unknown_ns)
			return false;
	return true;
}

static enum caveat_quality worst_caveat(const struct model *model)
{
	enum caveat_quality worst = QUALITY_KEEPS;

	for (unsigned code = 0; code < CAVEAT_CODES; code++)
		if (model->caveats[code] && caveat_kinds[code].quality > worst)
			worst = caveat_kinds[code].quality;
	return worst;
}

/* Good: everything is known. Poor: the missing data may change the verdict. */
static void judge_quality(struct verdict *v, const struct analysis *a)
{
	const struct evidence *e = &a->evidence;
	enum caveat_quality worst = worst_caveat(e->model);
	uint64_t releases = e->totals.releases_probed + e->totals.releases_inferred;
	struct flaws f = {
		.lost = lost_records(e->recording),
		.starts = e->slow_percent,
		.unknown = evidence_unknown_percent(e),
		.inferred = facts_percent(e->totals.releases_inferred, releases),
	};

	v->quality = QUALITY_GOOD;
	if (f.lost || f.starts >= SLOW_STARTS_SOME || f.unknown >= 1 || f.inferred >= 5 ||
	    worst >= QUALITY_FAIR_AT_MOST)
		v->quality = QUALITY_FAIR;
	if (f.unknown >= 10 || f.starts >= SLOW_STARTS_MUCH || worst >= QUALITY_POOR_AT_MOST)
		v->quality = QUALITY_POOR;
	add_flaws(&v->quality_why, &f, v->quality == QUALITY_GOOD && is_complete(a));
}

void verdict_find(struct verdict *ret, struct analysis *a)
{
	a->evidence = gather_evidence(a->recording, &a->groups);
	*ret = (struct verdict){ .kind = evidence_judge(&a->evidence) };
	find_headline(&ret->headline, a, ret->kind);
	find_context(ret, a);
	if (ret->kind == VERDICT_SAMPLED)
		judge_sampled(ret, a);
	else
		judge_quality(ret, a);
}

void verdict_done(struct verdict *verdict)
{
	vec_done(&verdict->headline.v);
	vec_done(&verdict->context.v);
	vec_done(&verdict->advice.v);
	vec_done(&verdict->quality_why.v);
}

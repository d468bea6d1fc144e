/* SPDX-License-Identifier: MIT */
/* The verdict: its evidence, its rules, and its reasons with their numbers. */
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

/* Appends a reason without numbers; borrowed until the next call. */
static struct reason *reasons_add(struct reasons *reasons, enum reason_code code)
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

/* The CPU limit of the program's control group kept it from running. */
static bool evidence_is_throttled(const struct evidence *e)
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

/* Locks and stops of the world: which thread is blocked most, where, and by which thread. */

#define WORTH_A_WORD 1  /* percent of a thread's life: worth reporting */
#define WORTH_ADVICE 10 /* likewise */

#define SHARED_FRAMES      64      /* the largest number that is compared */
#define CHAINS             2       /* the largest number that is reported */
#define CONVOY_THREADS     4       /* at the same time */
#define CONVOY_RELEASES    100     /* while threads wait */
#define CONVOY_NS          1000000 /* from one to the next */
#define CHAIN_MOST         50      /* percent of the waits for locks, or of the run: their cause */
#define CHAIN_WORTH_A_WORD 20      /* percent of the waiting for locks */

/* The thread that spent the largest share of its life in state, or MODEL_NONE. */
static uint32_t most_in(const struct model *model, enum gil_state state)
{
	uint32_t most = MODEL_NONE;
	double percent = 0;

	for (uint32_t i = 0; i < model->threads.n; i++) {
		const struct model_thread *t = &model->threads.v[i];
		double share = facts_percent(t->gil_ns[state], t->end_ns - t->start_ns);

		if (share > percent && share >= WORTH_A_WORD) {
			most = i;
			percent = share;
		}
	}
	return most;
}

/* Finds the place where the thread spent most time in state, and the type of object whose lock it
 * was. */
static void find_blocked_place(struct reason *r, const struct analysis *a, enum gil_state state)
{
	struct locks_places places = locks_places(a->pass, r->thread);

	for (size_t i = 0; i < places.v.n; i++) {
		if (places.v.v[i].state != state)
			continue;
		r->frame = places.v.v[i].frame;
		r->of = places.v.v[i].of;
		break;
	}
	vec_done(&places.v);
}

/* Finds the thread whose releases ended most of the thread's blocked time. */
static void find_releaser(struct reason *r, const struct model *model, enum gil_state state)
{
	const struct model_lock_blame *most = NULL;

	for (size_t i = 0; i < model->lock_blame.n; i++) {
		const struct model_lock_blame *b = &model->lock_blame.v[i];

		if (b->waiter == r->thread && b->state == state && b->by < MODEL_UNKNOWN &&
		    (!most || b->wait_ns > most->wait_ns))
			most = b;
	}
	if (!most)
		return;
	r->other = most->by;
	r->other_percent = facts_percent(most->wait_ns, r->ns);
}

/* Returns the share of its life, in percent, for which the most blocked thread is blocked. */
static double add_blocked(struct reasons *to, const struct analysis *a, enum gil_state state,
                          enum reason_code code)
{
	uint32_t thread = most_in(a->model, state);
	const struct model_thread *t;
	struct reason *r;

	if (thread == MODEL_NONE)
		return 0;
	t = &a->model->threads.v[thread];
	r = reasons_add(to, code);
	r->thread = thread;
	r->ns = t->gil_ns[state];
	r->percent = facts_percent(r->ns, t->end_ns - t->start_ns);
	if (state != GIL_STOPPING)
		find_releaser(r, a->model, state);
	if (state != GIL_STOPPED)
		find_blocked_place(r, a, state);
	return r->percent;
}

/* Time in which threads waited for one lock. @threads: those for which it matters; @life_ns: of these */
struct shared_lock {
	uint32_t lock, threads;
	uint64_t ns, life_ns, spin_ns;
	VEC(struct frame_time {
		uint32_t frame;
		uint64_t ns;
	})
	frames;
};

static inline void cleanup_shared_lock_done(struct shared_lock *shared)
{
	vec_done(&shared->frames);
}

static void add_to_frame(struct shared_lock *shared, uint32_t frame, uint64_t ns)
{
	for (size_t i = 0; i < shared->frames.n; i++)
		if (shared->frames.v[i].frame == frame) {
			shared->frames.v[i].ns += ns;
			return;
		}
	if (shared->frames.n < SHARED_FRAMES)
		*vec_push(&shared->frames) = (struct frame_time){ frame, ns };
}

static void add_waits_of_thread(struct shared_lock *shared, const struct model_thread *t)
{
	uint64_t ns = 0, spin_ns = 0;

	for (size_t i = 0; i < t->gil.spans.n; i++) {
		const struct span *s = &t->gil.spans.v[i];
		uint64_t span_ns = lane_span_end(&t->gil, i) - s->start_ns;

		if ((s->state != GIL_LOCK_WAIT && s->state != GIL_SPINNING) ||
		    s->gil.lock != shared->lock)
			continue;
		ns += span_ns;
		spin_ns += s->state == GIL_SPINNING ? span_ns : 0;
		add_to_frame(shared, s->gil.frame, span_ns);
	}
	if (facts_percent(ns, t->end_ns - t->start_ns) < WORTH_A_WORD)
		return;
	shared->threads++;
	shared->ns += ns;
	shared->spin_ns += spin_ns;
	shared->life_ns += t->end_ns - t->start_ns;
}

/* The lock for which threads waited longest, unless only one did. Returns the share of their lives. */
static double add_shared_lock(struct reasons *to, const struct analysis *a)
{
	const struct model *m = a->model;
	CLEANUP(shared_lock_done) struct shared_lock shared = { .lock = MODEL_NONE };
	uint64_t most_ns = 0;
	uint32_t frame = 0;
	struct reason *r;

	for (uint32_t i = 0; i < m->locks.n; i++)
		if (!m->locks.v[i].world &&
		    m->locks.v[i].wait_ns + m->locks.v[i].spin_ns > most_ns) {
			most_ns = m->locks.v[i].wait_ns + m->locks.v[i].spin_ns;
			shared.lock = i;
		}
	for (size_t i = 0; shared.lock != MODEL_NONE && i < m->threads.n; i++)
		add_waits_of_thread(&shared, &m->threads.v[i]);
	if (shared.threads < 2)
		return 0;
	most_ns = 0;
	for (size_t i = 0; i < shared.frames.n; i++)
		if (shared.frames.v[i].ns > most_ns) {
			most_ns = shared.frames.v[i].ns;
			frame = shared.frames.v[i].frame;
		}
	r = reasons_add(to, REASON_SHARED_LOCK);
	r->count = shared.threads;
	r->ns = shared.ns;
	r->percent = facts_percent(shared.ns, shared.life_ns);
	r->other_percent = facts_percent(shared.spin_ns, shared.ns);
	r->frame = frame;
	r->of = m->locks.v[shared.lock].of;
	r->variable = m->locks.v[shared.lock].name;
	return r->percent;
}

#define LATE_WORTH_A_WORD_NS 1000000

/* How often the world was stopped, and which thread stopped last where that took longest. */
static void add_stops(struct reasons *to, const struct model *m)
{
	struct locks_stops stops = locks_stops(m);
	struct reason *r;

	if (facts_percent(stops.ns, m->end_ns - m->start_ns) < WORTH_A_WORD)
		return;
	r = reasons_add(to, REASON_STOP_COUNT);
	r->count = stops.count;
	r->other_count = stops.collections;
	r->ns = stops.ns;
	r->longest_ns = stops.longest_ns;
	if (!stops.latest || locks_stop_waiting_ns(stops.latest) < LATE_WORTH_A_WORD_NS)
		return;
	r = reasons_add(to, REASON_STOP_LATE);
	r->ns = locks_stop_waiting_ns(stops.latest);
	r->thread = stops.latest->last;
	r->frame = stops.latest->last_frame;
}

/* Appends to the reasons and the advice what threads waited for without a GIL. */
static void find_locks(struct verdict *v, const struct analysis *a)
{
	double shared, blocked;

	if (!a->recording->gil_detect)
		return;
	shared = add_shared_lock(&v->because, a);
	blocked = add_blocked(&v->because, a, GIL_LOCK_WAIT, REASON_LOCKS);
	if (shared >= WORTH_ADVICE || blocked >= WORTH_ADVICE)
		reasons_add(&v->advice, ADVICE_LOCK);
	add_blocked(&v->because, a, GIL_STOPPING, REASON_STOPS);
	add_blocked(&v->because, a, GIL_STOPPED, REASON_STOPPED);
	add_stops(&v->because, a->model);
	if (!v->because.v.n)
		reasons_add(&v->because, REASON_NO_LOCKS);
}

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

/* Many threads queue for a lock that none of them has for long. */
static bool add_convoy(struct reasons *to, const struct analysis *a, const struct chain *chain)
{
	const struct model_lock *lock = chain->lock == MODEL_NONE ? NULL
	                                                          : &a->model->locks.v[chain->lock];
	struct reason *r;

	if (!lock || lock->most_waiters < CONVOY_THREADS || lock->releases < CONVOY_RELEASES ||
	    lock->wanted_ns / lock->releases > CONVOY_NS)
		return false;
	r = reasons_add(to, REASON_CONVOY);
	r->chain = chain;
	r->number = lock->most_waiters;
	r->ns = lock->wanted_ns / lock->releases;
	r->count = (uint64_t)((double)lock->releases * 1e9 / (double)lock->wanted_ns);
	return true;
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

/* Appends what was done while threads waited for locks of the program. told: has been said already */
static void add_chains(struct reasons *because, struct reasons *advice, const struct analysis *a,
                       const struct chain *told)
{
	for (size_t i = 0; i < a->chains.v.n && i < CHAINS; i++) {
		const struct chain *chain = &a->chains.v.v[i];
		double percent = facts_percent(chain->ns, a->chains.ns);
		struct reason *r;

		if (i && percent < CHAIN_WORTH_A_WORD)
			break;
		if (!i && chain->end == CHAIN_DEADLOCK) {
			reasons_add(advice, ADVICE_DEADLOCK);
			break;
		}
		if (chain != told) {
			r = reasons_add(because, REASON_CHAIN);
			r->chain = chain;
			r->percent = percent;
		}
		if (!i && add_convoy(because, a, chain))
			reasons_add(advice, ADVICE_CONVOY);
		else if (!i && chain->end != CHAIN_FREE && chain->end != CHAIN_UNKNOWN)
			reasons_add(advice, chain->end == CHAIN_WITHOUT_GIL ? ADVICE_LOCK_ASLEEP
			                                                    : ADVICE_LOCK);
	}
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

/* The verdict of a recording that consists of samples only. */

#define PLACE_SOME 5   /* percent of the samples: worth a sentence */
#define FEW        100 /* samples: with fewer, shares are off by 10 points and more */
#define TORN_SOME  5   /* percent: worth reporting */

static const struct sampled_place *find_sampled_place(const struct sampled *s, bool holds)
{
	for (size_t i = 0; i < s->places.n; i++) {
		enum sampled_what what = s->places.v[i].what;

		if (holds == (what == SAMPLED_HOLDS) && what != SAMPLED_WAITS)
			return &s->places.v[i];
	}
	return NULL;
}

static void add_sampled_place(struct reasons *to, enum reason_code code,
                              const struct sampled_place *place, uint64_t whole)
{
	double percent = facts_percent(place ? place->samples : 0, whole);
	struct reason *r;

	if (percent < PLACE_SOME)
		return;
	r = reasons_add(to, code);
	r->percent = percent;
	r->place = place;
}

static void find_sampled(struct verdict *v, const struct analysis *a)
{
	const struct sampled *s = &a->sampled;
	bool known = s->held || s->what[SAMPLED_WAITS];
	struct reason *r = reasons_add(&v->headline,
	                               known ? REASON_SAMPLED : REASON_SAMPLED_NO_GIL);

	r->count = s->samples;
	r->number = (double)s->what[SAMPLED_WAITS] / (double)s->samples;
	if (s->busiest != MODEL_NONE && s->threads.v[s->busiest].thread != MODEL_NONE) {
		const struct sampled_thread *t = &s->threads.v[s->busiest];

		r = reasons_add(&v->because, REASON_SAMPLED_HOLDER);
		r->thread = t->thread;
		r->percent = facts_percent(t->what[SAMPLED_HOLDS], s->samples);
	}
	add_sampled_place(&v->because, REASON_SAMPLED_HELD, find_sampled_place(s, true),
	                  s->what[SAMPLED_HOLDS]);
	add_sampled_place(&v->because, REASON_SAMPLED_PLACE, find_sampled_place(s, false),
	                  s->thread_samples);
	if (!a->pass->gil_recorded)
		reasons_add(&v->advice, ADVICE_EXACT);
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

/* Which threads, groups or functions to blame for the waiting for the GIL. */

#define FUNCTION_PERCENT 20       /* a function with a smaller share is not named */
#define LONG_HOLD_NS     10000000 /* twice the switch interval: holds of this length are reported */
#define PREEMPTED        20       /* percent of the longest hold: likewise */
#define SECOND_PERCENT   5        /* of the waiting: a second group that caused less is not named */
#define BETWEEN_PERCENT  10       /* likewise for waiting that is charged to no thread */

/**
 * All waiting, by the group it is charged to.
 * @ns: by group; @order: groups, the most charged first
 * @handoff_ns, @probed_ns, @no_cpu_ns, @total_ns: as in struct facts_totals
 */
struct charges {
	const struct thread_groups *groups;
	uint64_t *ns;
	uint32_t *order;
	uint64_t handoff_ns, probed_ns, no_cpu_ns, total_ns;
};

static int compare_charges(const void *a, const void *b, void *data)
{
	const uint64_t *ns = data;
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;

	if (ns[ia] != ns[ib])
		return ns[ia] < ns[ib] ? 1 : -1;
	return (ia > ib) - (ia < ib);
}

static void charge(struct charges *c, const struct analysis *a)
{
	const struct facts_totals *totals = &a->evidence.totals;
	uint32_t n = (uint32_t)a->groups.v.n;

	*c = (struct charges){
		.groups = &a->groups,
		.ns = xcalloc(n + 1, sizeof(*c->ns)),
		.order = xcalloc(n + 1, sizeof(*c->order)),
		.handoff_ns = totals->handoff_ns,
		.probed_ns = totals->probed_handoff_ns,
		.no_cpu_ns = totals->no_cpu_ns,
		.total_ns = totals->blamed_ns,
	};
	for (uint32_t i = 0; i < n; i++)
		c->order[i] = i;
	for (size_t i = 0; i < a->model->blame.n; i++) {
		const struct model_blame *blame = &a->model->blame.v[i];

		if (blame->holder < MODEL_UNKNOWN)
			c->ns[a->groups.of[blame->holder]] += blame->wait_ns;
	}
	qsort_r(c->order, n, sizeof(*c->order), compare_charges, c->ns);
}

/* Whether more passed while the next thread had no CPU than while any group held the GIL. */
static bool is_for_lack_of_cpus(const struct charges *c)
{
	uint64_t most = c->groups->v.n ? c->ns[c->order[0]] : 0;

	return facts_percent(c->no_cpu_ns, c->total_ns) >= VERDICT_HANDOVER && c->no_cpu_ns > most;
}

static void charges_done(struct charges *c)
{
	free(c->ns);
	free(c->order);
}

/* The function in which those holds of the group ended for which others waited most. Used if there
 * is no Python-side trace. */
static void find_probed_function(struct reason_function *f, const struct analysis *a,
                                 const struct charges *c, uint32_t group)
{
	struct function_rows rows = functions_rows(a->pass, false, c->groups, group);
	const struct function_row *top = rows.v.n ? &rows.v.v[0] : NULL;
	double percent = top ? facts_percent(top->wait_ns, c->ns[group]) : 0;

	if (percent >= FUNCTION_PERCENT)
		*f = (struct reason_function){
			.percent = percent,
			.hog = top->hog,
			.ended = top->hog->overdue_wait_ns * 2 < top->hog->wait_ns,
		};
	vec_done(&rows.v);
}

/* The function that ran most while others waited for a thread of the group, and the caller in its
 * heaviest stack. False: the calls of these threads are not known. */
static bool find_traced_function(struct reason_function *f, const struct analysis *a,
                                 uint32_t group)
{
	struct pystack_functions functions;
	struct pystack py;
	bool found = false;
	double percent;

	if (!a->pass->slices)
		return false;
	pystack_init(&py, a->pass->slices);
	for (uint32_t i = 0; i < a->model->threads.n; i++) {
		const struct slice_thread *st = pystack_find(a->pass, i);
		struct stretches stretches;

		if (a->groups.of[i] != group)
			continue;
		stretches = stretches_blamed(a->model, i, NULL);
		pystack_charge(&py, st, &stretches);
		vec_done(&stretches);
		found |= st != NULL;
	}
	functions = pystack_functions(&py);
	percent = functions.n ? facts_percent(functions.v[0].ns, functions.all_ns) : 0;
	if (found && percent >= FUNCTION_PERCENT)
		*f = (struct reason_function){
			.percent = percent,
			.name = pystack_name(&py, functions.v[0].stack),
			.caller = pystack_caller(&py, functions.v[0].stack),
		};
	vec_done(&functions);
	pystack_done(&py);
	return found;
}

/* The function that ran most while others waited for a thread of the group. */
static void find_function(struct reason_function *f, const struct analysis *a,
                          const struct charges *c, uint32_t group)
{
	if (!find_traced_function(f, a, group))
		find_probed_function(f, a, c, group);
}

/* Reports waiting that is charged to no thread, and is not the main cause. */
static void add_between(struct reasons *to, const struct charges *c)
{
	double handoff = facts_percent(c->handoff_ns, c->total_ns);
	double no_cpu = facts_percent(c->no_cpu_ns, c->total_ns);

	if (handoff >= BETWEEN_PERCENT)
		reasons_add(to, REASON_HANDOFF_TOO)->percent = handoff;
	if (no_cpu >= BETWEEN_PERCENT && !is_for_lack_of_cpus(c))
		reasons_add(to, REASON_NO_CPU_TOO)->percent = no_cpu;
}

/* What helps against a lack of CPUs: the advice depends on which programs had the CPUs. */
static enum reason_code cpu_advice(const struct analysis *a)
{
	double own = cpu_users_own_percent(&a->cpu_users);

	if (evidence_is_throttled(&a->evidence))
		return ADVICE_QUOTA;
	if (own >= 100 - VERDICT_OTHERS)
		return ADVICE_OWN_THREADS;
	return own >= 0 && own <= VERDICT_OTHERS ? ADVICE_OTHER_PROGRAMS : ADVICE_CPUS;
}

static enum reason_code python_advice(const struct analysis *a)
{
	return a->evidence.processes > 1 ? ADVICE_PYTHON_OF_PROCESS : ADVICE_PYTHON;
}

/* How long the holder was runnable without a CPU during the hold; 0 if that is a small share. */
static uint64_t preempted(const struct model *model, uint32_t thread, uint64_t from_ns, uint64_t ns)
{
	uint64_t runnable_ns, asleep_ns;

	hogs_off_cpu(&model->threads.v[thread], from_ns, from_ns + ns, &runnable_ns, &asleep_ns);
	return facts_percent(runnable_ns, ns) >= PREEMPTED ? runnable_ns : 0;
}

static void blame_thread(struct verdict *v, const struct analysis *a, const struct charges *c)
{
	uint32_t group = c->order[0], holder = c->groups->v.v[group].first;
	uint64_t longest = a->model->threads.v[holder].longest_hold_ns;
	double percent = facts_percent(c->ns[group], c->total_ns);
	struct reason *r = reasons_add(
		&v->because, percent >= VERDICT_CULPRIT ? REASON_THREAD_MOSTLY : REASON_THREAD);

	r->thread = holder;
	r->percent = percent;
	r->ns = c->ns[group];
	r->longest_ns = longest >= LONG_HOLD_NS ? longest : 0;
	if (r->longest_ns)
		r->preempted_ns = preempted(
			a->model, holder, a->model->threads.v[holder].longest_hold_at_ns, longest);
	find_function(&r->function, a, c, group);
	add_between(&v->because, c);
	reasons_add(&v->advice, python_advice(a));
}

static void blame_group(struct verdict *v, const struct analysis *a, const struct charges *c)
{
	struct reason *r = reasons_add(&v->because, REASON_GROUP);

	r->group = c->order[0];
	r->percent = facts_percent(c->ns[r->group], c->total_ns);
	find_function(&r->function, a, c, r->group);
	add_between(&v->because, c);
	reasons_add(&v->advice, python_advice(a));
}

static void blame_several(struct verdict *v, const struct analysis *a, const struct charges *c)
{
	struct reason *r = reasons_add(&v->because, REASON_GROUPS);

	r->group = c->order[0];
	r->other_group = c->order[1];
	r->percent = facts_percent(c->ns[r->group], c->total_ns);
	r->other_percent = facts_percent(c->ns[r->other_group], c->total_ns);
	add_between(&v->because, c);
	reasons_add(&v->advice, python_advice(a));
}

static enum reason_code call_advice(const struct analysis *a, const struct hog *hog)
{
	switch (function_cause(a->pass, hog)) {
	case CAUSE_COLLECTOR:
		return ADVICE_COLLECTOR;
	case CAUSE_IMPORT:
		return ADVICE_IMPORT;
	case CAUSE_DEALLOCATION:
		return ADVICE_DEALLOCATION;
	case CAUSE_CALL:
	case CAUSES:
		break;
	}
	return a->evidence.processes > 1 ? ADVICE_CALL_OF_PROCESS : ADVICE_CALL;
}

/* Reports slow starts of threads, and the function that caused most of the rest of the waiting. */
static void blame_slow_start(struct verdict *v, const struct analysis *a, const struct charges *c)
{
	uint64_t slow_ns = a->overdue.v.v[0].wait_ns;
	const struct function_row *next = a->overdue.v.n > 1 ? &a->overdue.v.v[1] : NULL;
	double percent = next ? facts_percent(next->wait_ns, c->total_ns - slow_ns) : 0;
	struct reason *r = reasons_add(&v->because, REASON_SLOW_START);

	r->percent = facts_percent(slow_ns, c->total_ns);
	if (percent >= VERDICT_CALL && next->hog->frame &&
	    !function_is_slow_start(a->pass, next->hog)) {
		r = reasons_add(&v->because, REASON_SLOW_START_REST);
		r->percent = percent;
		r->hog = next->hog;
	}
	reasons_add(&v->advice, ADVICE_RECORD_ALONE);
}

/* Reports the function that kept the GIL longest after release requests, in any number of
 * threads. */
static bool blame_call(struct verdict *v, const struct analysis *a, const struct charges *c)
{
	const struct function_row *top = a->overdue.v.n ? &a->overdue.v.v[0] : NULL;
	double percent = top ? facts_percent(top->wait_ns, c->total_ns) : 0;
	struct reason *r;

	if (percent < VERDICT_CALL || !top->hog->frame)
		return false;
	if (function_is_slow_start(a->pass, top->hog)) {
		blame_slow_start(v, a, c);
		return true;
	}
	r = reasons_add(&v->because, percent >= VERDICT_CULPRIT ? REASON_CALL_MOSTLY : REASON_CALL);
	r->percent = percent;
	r->hog = top->hog;
	r->count = top->threads;
	r->thread = top->hog->thread;
	r->ns = top->wait_ns;
	r->longest_ns = top->longest_ns;
	r->preempted_ns = preempted(a->model, top->longest_thread, top->longest_at_ns,
	                            top->longest_ns);
	reasons_add(&v->advice, call_advice(a, top->hog));
	return true;
}

/* Whether the GIL is released soon after it is acquired, judged by the mean hold. */
static bool is_given_up_often(const struct analysis *a)
{
	uint64_t holds = 0;

	for (size_t i = 0; i < a->model->threads.n; i++)
		holds += a->model->threads.v[i].holds;
	return holds && a->evidence.totals.hold_ns / holds < VERDICT_SHORT_HOLD_NS;
}

static void blame_handoff(struct verdict *v, const struct charges *c)
{
	reasons_add(&v->because, REASON_HANDOFF)->percent =
		facts_percent(c->handoff_ns - c->probed_ns, c->total_ns);
	reasons_add(&v->advice, ADVICE_HANDOFF);
}

/* Blames the threads or groups that held the GIL longest while others waited. lack: a lack of CPUs is
 * reported already. */
static void blame_holders(struct verdict *v, const struct analysis *a, const struct charges *c,
                          bool lack)
{
	uint64_t most = c->groups->v.n ? c->ns[c->order[0]] : 0;
	uint64_t second = c->groups->v.n > 1 ? c->ns[c->order[1]] : 0;

	if (!most) {
		if (!lack)
			reasons_add(&v->advice, a->recording->gil_detect ? python_advice(a)
			                                                 : ADVICE_GIL_DETECT);
		return;
	}
	if (facts_percent(most, c->total_ns - c->handoff_ns - c->no_cpu_ns) < VERDICT_CULPRIT &&
	    facts_percent(second, c->total_ns) >= SECOND_PERCENT)
		blame_several(v, a, c);
	else if (c->groups->v.v[c->order[0]].threads == 1)
		blame_thread(v, a, c);
	else
		blame_group(v, a, c);
}

/* Appends to the reasons and the advice of v. */
static void find_culprit(struct verdict *v, const struct analysis *a)
{
	struct charges c;
	uint64_t most;
	bool lack;

	charge(&c, a);
	most = c.groups->v.n ? c.ns[c.order[0]] : 0;
	lack = is_for_lack_of_cpus(&c);
	if (lack) {
		reasons_add(&v->because, REASON_NO_CPU)->percent = facts_percent(c.no_cpu_ns,
		                                                                 c.total_ns);
		if (v->kind != VERDICT_CPU_STARVED)
			reasons_add(&v->advice, cpu_advice(a));
	}
	if (facts_percent(c.handoff_ns - c.probed_ns, c.total_ns) >= VERDICT_HANDOVER &&
	    c.handoff_ns - c.probed_ns > most && is_given_up_often(a))
		blame_handoff(v, &c);
	else if (!blame_call(v, a, &c))
		blame_holders(v, a, &c, lack);
	charges_done(&c);
}

/* The parts of the verdict. */

#define LEAST_PERCENT    0.05 /* less would be printed as 0.0 % */
#define SLOW_STARTS_SOME 5    /* percent of all waiting: worth reporting */
#define SLOW_STARTS_MUCH 30

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
		return; /* find_sampled */
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

static void move_all(struct reasons *to, struct reasons *from)
{
	for (size_t i = 0; i < from->v.n; i++)
		*vec_push(&to->v) = from->v.v[i];
	vec_done(&from->v);
}

/* Adds the waiting for the GIL to a lack of CPUs: its causes, and the advice against it. */
static void add_gil_too(struct verdict *v, const struct analysis *a)
{
	struct verdict gil = { .kind = v->kind };

	add_waits(&v->also, &a->evidence,
	          evidence_gil(&a->evidence) == VERDICT_GIL_BOUND ? REASON_GIL_BOUND_TOO
	                                                          : REASON_GIL_SOME_TOO);
	find_culprit(&gil, a);
	move_all(&v->also, &gil.because);
	if (gil.advice.v.n)
		reasons_add(&v->advice, ADVICE_GIL_TOO);
	move_all(&v->advice, &gil.advice);
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
	r = reasons_add(&v->also, threads < GROUP_MIN_THREADS ? REASON_BURST
	                          : ended                     ? REASON_BURST_END
	                                                      : REASON_BURST_START);
	r->percent = b->percent;
	r->ns = b->from_ns - e->model->start_ns;
	r->longest_ns = b->to_ns - b->from_ns;
	r->count = threads;
}

/* Adds further problems. */
static void find_also(struct verdict *v, const struct analysis *a)
{
	const struct evidence *e = &a->evidence;
	double asleep = facts_percent(evidence_asleep(e), evidence_cpu_known(e));
	bool gil = v->kind == VERDICT_GIL_BOUND || v->kind == VERDICT_GIL_SOME;

	if ((v->kind == VERDICT_CPU_STARVED || v->kind == VERDICT_LOCK_BOUND) &&
	    evidence_gil(e) != VERDICT_GIL_NONE)
		add_gil_too(v, a);
	else if (v->kind == VERDICT_CPU_STARVED && evidence_is_single(e))
		reasons_add(&v->also, REASON_SINGLE_TOO);
	else if (v->kind == VERDICT_FREE_THREADED && evidence_is_starved(e))
		add_cpus(&v->also, e, REASON_CPUS_TOO_FEW);
	else if (gil && evidence_is_starved(e))
		add_cpus(&v->also, e, REASON_CPUS_TOO);
	else if (v->kind == VERDICT_GIL_SOME && asleep >= VERDICT_ASLEEP)
		add_percent(&v->also, REASON_ASLEEP_TOO, asleep);
	/* Another run of the same program may have the other verdict. */
	if (e->recording->gil_detect && v->kind != VERDICT_TOO_SHORT &&
	    evidence_gil_percent(e) >= VERDICT_NEARLY && evidence_gil(e) == VERDICT_GIL_NONE)
		add_percent(&v->also, REASON_GIL_NEARLY, evidence_gil_percent(e));
	add_burst(v, e);
}

static void add_busiest(struct verdict *v, const struct evidence *e)
{
	double percent = facts_percent(e->busiest_ns, e->wall_ns);

	if (e->busiest == MODEL_NONE)
		return;
	add_percent(&v->because, REASON_BUSIEST, percent);
	v->because.v.v[v->because.v.n - 1].thread = e->busiest;
	if (percent >= VERDICT_BUSY)
		reasons_add(&v->advice, ADVICE_BUSIEST);
}

/* Reports the limit of the program's control group. */
static void add_quota(struct reasons *to, struct verdict *v, const struct evidence *e)
{
	const struct cpu_quota *q = &e->pass->quota;
	struct reason *r;

	if (!evidence_is_throttled(e))
		return;
	r = reasons_add(to, REASON_QUOTA);
	r->number = (double)q->quota_us / (double)q->period_us;
	r->count = q->throttled;
	r->other_count = q->periods;
	for (size_t i = 0; i < v->advice.v.n; i++)
		if (v->advice.v.v[i].code == ADVICE_QUOTA)
			return;
	reasons_add(&v->advice, ADVICE_QUOTA);
}

static void find_because(struct verdict *v, const struct analysis *a)
{
	const struct evidence *e = &a->evidence;

	switch (v->kind) {
	case VERDICT_GIL_BOUND:
	case VERDICT_GIL_SOME:
		find_culprit(v, a);
		return;
	case VERDICT_LOCK_BOUND:
		add_chains(&v->because, &v->advice, a,
		           has_one_cause(a, main_chain(a)) ? main_chain(a) : NULL);
		return;
	case VERDICT_CPU_STARVED:
		if (!evidence_is_throttled(e)) {
			reasons_add(&v->because,
			            a->cpu_users.list.n ? REASON_CPU_USERS : REASON_STATES);
			reasons_add(&v->advice, cpu_advice(a));
		}
		return;
	case VERDICT_SINGLE_THREADED:
		add_busiest(v, e);
		return;
	case VERDICT_IO_BOUND:
		reasons_add(&v->because, REASON_STATES);
		/* Without GIL events, it was the stacks that were recorded. */
		if (v->headline.v.v[0].code != REASON_STAGE && !a->recording->state_detect &&
		    a->recording->gil_detect)
			reasons_add(&v->advice, ADVICE_STATE_DETECT);
		return;
	case VERDICT_NATIVE_WORK:
	case VERDICT_GIL_UNKNOWN:
		reasons_add(&v->because, REASON_STATES);
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
		find_locks(v, a);
		return;
	case VERDICT_SAMPLED:
		find_sampled(v, a);
		return;
	case VERDICT_GIL_NONE:
		return;
	}
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
	if (f->unknown >= LEAST_PERCENT)
		add_percent(to, QUALITY_UNKNOWN, f->unknown);
	if (f->inferred >= LEAST_PERCENT)
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

/* The first two locks that were taken in both orders; NULL: none. */
static const struct model_order *first_inversion(const struct model *m)
{
	for (size_t i = 0; i < m->orders.n; i++)
		if (model_order_is_inverted(m, i))
			return &m->orders.v[i];
	return NULL;
}

/* Adds waits for locks to another problem. */
static void find_locks_too(struct verdict *v, const struct analysis *a)
{
	const struct evidence *e = &a->evidence;

	if (v->kind != VERDICT_LOCK_BOUND && main_deadlock(e->model))
		reasons_add(&v->also, REASON_DEADLOCK)->deadlock = main_deadlock(e->model);
	else if (!main_deadlock(e->model) && first_inversion(e->model)) {
		reasons_add(&v->also, REASON_ORDER)->order = first_inversion(e->model);
		reasons_add(&v->advice, ADVICE_DEADLOCK);
	}
	if (v->kind == VERDICT_LOCK_BOUND || v->kind == VERDICT_FREE_THREADED ||
	    e->lock_victim.percent < VERDICT_SOME || e->lock_wait_ns < VERDICT_SHORT_NS)
		return;
	add_victim(reasons_add(&v->also, REASON_LOCK_BOUND_TOO), &e->lock_victim);
	add_chains(&v->also, &v->advice, a, NULL);
}

/* Whether the loop's thread was without the GIL for most of the time, outside of its selector: all other
 * tasks waited for a step that slept, waited for something else, or ran C code. */
static bool is_blocked(const struct model *m, const struct task_delay *d)
{
	const struct lane *lane = d->thread < m->threads.n ? &m->threads.v[d->thread].gil : NULL;
	uint64_t ns = 0;

	for (size_t i = lane ? lane_at(lane, d->start_ns) : 0;
	     lane && i < lane->spans.n && lane->spans.v[i].start_ns < d->end_ns; i++) {
		uint64_t from = later(lane->spans.v[i].start_ns, d->start_ns);
		uint64_t to = lane_span_end(lane, i);

		to = to < d->end_ns ? to : d->end_ns;
		if (gil_state_is_without(lane->spans.v[i].state) && to > from)
			ns += to - from;
	}
	return ns > d->slept_ns && (ns - d->slept_ns) * 2 > d->end_ns - d->start_ns;
}

enum reason_code verdict_loop_advice(const struct analysis *a, const struct task_delay *delay)
{
	if (is_blocked(a->model, delay))
		return ADVICE_LOOP_BLOCKED;
	return a->evidence.processes > 1 ? ADVICE_LOOP_OF_PROCESS : ADVICE_LOOP;
}

/* Reports the task with the longest delay, or if it is not known when tasks become ready, the longest
 * step. */
static void find_late_task(struct verdict *v, const struct analysis *a)
{
	const struct task_delay *late = NULL, *step = NULL, *worst;
	struct reason *r;

	for (size_t i = 0; i < a->tasks.v.n; i++) {
		const struct task_group *g = &a->tasks.v.v[i];

		if (!late || g->delay.end_ns - g->delay.start_ns > late->end_ns - late->start_ns)
			late = &g->delay;
		if (!aio_shows_ready(g->loop) &&
		    (!step || g->step.end_ns - g->step.start_ns > step->end_ns - step->start_ns))
			step = &g->step;
	}
	worst = late && late->end_ns - late->start_ns >= VERDICT_LATE_NS ? late : step;
	if (!worst || worst->end_ns - worst->start_ns < VERDICT_LATE_NS)
		return;
	r = reasons_add(&v->also, worst == late ? REASON_TASK_LATE : REASON_TASK_STEP);
	r->delay = worst;
	r->ns = worst->end_ns - worst->start_ns;
	r->thread = worst->thread;
	reasons_add(&v->advice, verdict_loop_advice(a, worst));
}

void verdict_find(struct verdict *ret, struct analysis *a)
{
	a->evidence = gather_evidence(a->recording, &a->groups);
	*ret = (struct verdict){ .kind = evidence_judge(&a->evidence) };
	find_headline(&ret->headline, a, ret->kind);
	if (ret->kind == VERDICT_CPU_STARVED)
		add_quota(&ret->because, ret, &a->evidence);
	find_because(ret, a);
	find_also(ret, a);
	if (ret->kind != VERDICT_CPU_STARVED)
		add_quota(&ret->also, ret, &a->evidence);
	find_locks_too(ret, a);
	add_turned_on(&ret->also, a);
	find_late_task(ret, a);
	if (ret->kind == VERDICT_SAMPLED)
		judge_sampled(ret, a);
	else
		judge_quality(ret, a);
}

void verdict_done(struct verdict *verdict)
{
	vec_done(&verdict->headline.v);
	vec_done(&verdict->because.v);
	vec_done(&verdict->also.v);
	vec_done(&verdict->advice.v);
	vec_done(&verdict->quality_why.v);
}

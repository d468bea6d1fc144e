/* SPDX-License-Identifier: MIT */
/* What-if estimates: which overdue holds release the GIL together, and how a gain is divided among
 * rows. */
#include "analysis/whatif.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "analysis/hogs.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/thread.h"
#include "base/vec.h"
#include "model/model.h"
#include "model/owners.h"
#include "model/span.h"

/* @turn: the owner's count when the timer was set; if the owner has another count, the timer is
 * obsolete */
struct timer {
	double at;
	uint32_t who, turn;
};

/* v.v[0] is the earliest timer. */
struct timers {
	VEC(struct timer) v;
};

void timers_pop(struct timers *timers); /* removes the earliest; there must be one */

/* The group of no overdue hold: replays the schedule unchanged. And of all holds: there is no GIL. */
#define REPLAY_NO_GROUP UINT32_MAX
#define REPLAY_NO_GIL   (UINT32_MAX - 1)

/* A replay is aborted after REPLAY_STEPS for each span plus REPLAY_MORE_STEPS; this happens with
 * holds that last for days. */
#define REPLAY_STEPS      64
#define REPLAY_MORE_STEPS 100000

/* Time in ns that all threads together lose by waiting for the GIL and by sharing CPUs. */
struct replayed {
	double waited, shared;
	bool aborted;
};

static bool is_before(const struct timer *a, const struct timer *b)
{
	return a->at < b->at || (!(a->at > b->at) && a->who < b->who);
}

static void timers_push(struct timers *timers, double at, uint32_t who, uint32_t turn)
{
	struct timer timer = { at, who, turn };
	size_t i;

	(void)vec_push(&timers->v);
	for (i = timers->v.n - 1; i && is_before(&timer, &timers->v.v[(i - 1) / 2]);
	     i = (i - 1) / 2)
		timers->v.v[i] = timers->v.v[(i - 1) / 2];
	timers->v.v[i] = timer;
}

void timers_pop(struct timers *timers)
{
	struct timer last = timers->v.v[--timers->v.n];
	size_t n = timers->v.n, i = 0;

	for (size_t child = 1; child < n; child = 2 * i + 1) {
		if (child + 1 < n && is_before(&timers->v.v[child + 1], &timers->v.v[child]))
			child++;
		if (!is_before(&timers->v.v[child], &last))
			break;
		timers->v.v[i] = timers->v.v[child];
		i = child;
	}
	if (n)
		timers->v.v[i] = last;
}

static void timers_done(struct timers *timers)
{
	vec_done(&timers->v);
}

/* An event-driven simulation of runners (threads) on CPUs, with GILs that have queues. */

/* What follows when the current piece of a runner is over: its next span; for a hold that releases
 * the GIL in this replay, its work without the GIL (FREE) and then taking the GIL again
 * (RETAKE). */
enum phase { PHASE_NEXT, PHASE_FREE, PHASE_RETAKE };

/**
 * A thread in the replay.
 * @phase: what follows the current piece of work
 * @gil: the GIL of the current span; @next: the next runner in the queue, or MODEL_NONE
 * @span, @cpu, @overdue: next index in the thread's GIL lane, its CPU lane and the overdue holds
 * @work, @off: remaining time of the piece on a CPU, and then off CPU
 * @turn: number of its current timer; timers with another number are obsolete
 * @at: when the timer is due; @working: on the work clock, otherwise on real time
 * @keeps: the current hold ignores release requests, because it is overdue
 * @gap: how long after the current hold it takes the GIL again while others still wake up;
 * negative: another thread gets the GIL in between
 * @owner: index of the previous hold's owner in owner_gil, where the next search starts
 */
struct runner {
	enum phase phase;
	bool working, holding, keeps;
	uint32_t gil, next, turn, owner_gil;
	size_t span, cpu, overdue, owner;
	double work, off, at;
	double span_work, span_off;
	double asked, gap;
};

/*
 * A GIL and the threads that wait for it.
 * @asked: a timer for the release is running; its number is turn. If there is no holder, the timer
 * is that of the first waiter, which is waking up
 */
struct gil_queue {
	uint32_t holder, head, tail, turn;
	bool asked;
};

/**
 * @now: ns since the start of the recording; @work_clock: work that a thread has done if it has
 * been running all the time
 * @running: number of running threads
 * @waited, @shared: time that all threads have lost so far by waiting for the GIL, and by sharing
 * CPUs
 * @releasing: group whose overdue holds release the GIL, or REPLAY_NO_GROUP; @groups: group of each
 * overdue hold
 */
struct replay {
	const struct model *m;
	const struct hogs *hogs;
	const uint32_t *groups;
	uint32_t releasing;
	double cpus, interval;
	double now, work_clock, waited, shared;
	size_t running;
	struct runner *runners;
	struct gil_queue *queues;
	struct timers sleepers, workers;
};

/* How long a waiter may take to wake up, and what is added to a thread's own time. */
#define REGAIN_NS       1000000
#define REGAIN_SLACK_NS 1000

static double min(double a, double b)
{
	return a < b ? a : b;
}

/* Starts the next part of the runner's piece: first on a CPU, then off CPU. */
static void start_part(struct replay *r, uint32_t i)
{
	struct runner *it = &r->runners[i];

	it->working = it->work > 0;
	it->at = it->working ? r->work_clock + it->work : r->now + it->off;
	timers_push(it->working ? &r->workers : &r->sleepers, it->at, i, ++it->turn);
	r->running += it->working;
}

/* Stops the runner's timer; the rest of its piece stays in work and off. */
static void stop(struct replay *r, uint32_t i)
{
	struct runner *it = &r->runners[i];

	it->turn++;
	if (it->working) {
		it->work = it->at - r->work_clock;
		r->running--;
	} else {
		it->off = it->at - r->now;
	}
	it->working = false;
}

/* A thread waits: if the holder runs Python code, it has to release the GIL by a deadline. */
static void ask(struct replay *r, uint32_t gil, double intervals)
{
	struct gil_queue *queue = &r->queues[gil];

	if (queue->asked || r->runners[queue->holder].keeps)
		return;
	queue->asked = true;
	timers_push(&r->sleepers, r->now + intervals * r->interval + HOGS_SLACK_NS,
	            (uint32_t)r->m->threads.n + gil, ++queue->turn);
}

static void grant(struct replay *r, uint32_t gil, uint32_t i)
{
	struct gil_queue *queue = &r->queues[gil];

	queue->holder = i;
	r->runners[i].holding = true;
	r->waited += r->now - r->runners[i].asked;
	if (queue->head != MODEL_NONE)
		ask(r, gil, 2);
	start_part(r, i);
}

static void request(struct replay *r, uint32_t i)
{
	struct runner *it = &r->runners[i];
	struct gil_queue *queue = &r->queues[it->gil];

	it->asked = r->now;
	it->next = MODEL_NONE;
	if (queue->holder == MODEL_NONE) {
		queue->asked = false;
		queue->turn++;
		grant(r, it->gil, i);
		return;
	}
	if (queue->head == MODEL_NONE)
		queue->head = i;
	else
		r->runners[queue->tail].next = i;
	queue->tail = i;
	ask(r, it->gil, 1);
}

/* The first waiter gets the GIL, which is free. */
static void pass_on(struct replay *r, uint32_t gil)
{
	struct gil_queue *queue = &r->queues[gil];
	uint32_t next = queue->head;

	queue->asked = false;
	queue->turn++;
	if (next == MODEL_NONE)
		return;
	queue->head = r->runners[next].next;
	grant(r, gil, next);
}

static void release(struct replay *r, uint32_t i, double gap)
{
	uint32_t gil = r->runners[i].gil;
	struct gil_queue *queue = &r->queues[gil];

	r->runners[i].holding = false;
	queue->holder = MODEL_NONE;
	if (gap < 0) {
		pass_on(r, gil);
		return;
	}
	queue->asked = queue->head != MODEL_NONE;
	queue->turn++;
	if (queue->asked)
		timers_push(&r->sleepers, r->now + gap + REGAIN_SLACK_NS,
		            (uint32_t)r->m->threads.n + gil, queue->turn);
}

/* How long the thread needed a CPU during the span, and how long it did not. */
static void measure(struct replay *r, uint32_t i, size_t span)
{
	const struct model_thread *t = &r->m->threads.v[i];
	struct runner *it = &r->runners[i];
	uint64_t start_ns = t->gil.spans.v[span].start_ns, end_ns = lane_span_end(&t->gil, span);
	uint64_t off_ns = 0;

	while (it->cpu < t->cpu.spans.n && lane_span_end(&t->cpu, it->cpu) <= start_ns)
		it->cpu++;
	for (size_t c = it->cpu; c < t->cpu.spans.n && t->cpu.spans.v[c].start_ns < end_ns; c++) {
		uint64_t from = t->cpu.spans.v[c].start_ns, to = lane_span_end(&t->cpu, c);

		from = from > start_ns ? from : start_ns;
		to = to < end_ns ? to : end_ns;
		if (t->cpu.spans.v[c].state > CPU_RUNNABLE)
			off_ns += to - from;
	}
	it->span_off = (double)off_ns;
	it->span_work = (double)(end_ns - start_ns - off_ns);
}

/* Whether a hold is overdue and, if so, belongs to the function that releases the GIL in this
 * replay. */
static bool is_overdue(struct replay *r, uint32_t i, size_t span, bool *releases)
{
	struct runner *it = &r->runners[i];
	size_t n = r->hogs->overdue.n;
	const struct hog_overdue *overdue = r->hogs->overdue.v;

	*releases = false;
	while (it->overdue < n && overdue[it->overdue].thread == i &&
	       overdue[it->overdue].span < span)
		it->overdue++;
	if (it->overdue == n || overdue[it->overdue].thread != i ||
	    overdue[it->overdue].span != span)
		return false;
	*releases = r->groups[it->overdue] == r->releasing;
	return true;
}

/* A thread that releases the GIL often and briefly gets it back before the others are awake. */
static double gap_after(struct replay *r, uint32_t i, size_t span)
{
	struct runner *it = &r->runners[i];
	const struct lane *lane = &r->m->threads.v[i].gil;
	const struct span *hold = &lane->spans.v[span];
	const struct model_gil *g = &r->m->gils.v[hold->gil.index];
	uint64_t end_ns = lane_span_end(lane, span);
	size_t next = span + 1;

	if (it->owner_gil != hold->gil.index)
		it->owner = 0;
	it->owner_gil = hold->gil.index;
	it->owner = owners_of(g, it->owner, hold);
	while (next < lane->spans.n && lane->spans.v[next].state != GIL_HOLD)
		next++;
	if (next == lane->spans.n || lane->spans.v[next].gil.index != hold->gil.index ||
	    lane->spans.v[next].start_ns - end_ns > REGAIN_NS)
		return -1;
	for (size_t o = it->owner; o < g->owners.n; o++)
		if (g->owners.v[o].start_ns >= lane->spans.v[next].start_ns)
			return (double)(lane->spans.v[next].start_ns - end_ns);
		else if (g->owners.v[o].thread != i && g->owners.v[o].thread != MODEL_NONE)
			return -1;
	return -1;
}

static void begin(struct runner *it, enum phase then, double work, double off)
{
	it->phase = then;
	it->work = work;
	it->off = off;
}

/* Starts the runner's next span, skipping waits: their length follows from the replay. */
static void next_span(struct replay *r, uint32_t i)
{
	const struct lane *lane = &r->m->threads.v[i].gil;
	struct runner *it = &r->runners[i];
	bool releases;

	for (; it->span < lane->spans.n; it->span++) {
		uint8_t state = lane->spans.v[it->span].state;

		if (state != GIL_WAIT && state != GIL_SWITCH_WAIT && state != GIL_FREE_WAIT)
			break;
	}
	if (it->span == lane->spans.n)
		return;
	measure(r, i, it->span);
	if (lane->spans.v[it->span].state != GIL_HOLD || r->releasing == REPLAY_NO_GIL) {
		begin(it, PHASE_NEXT, it->span_work, it->span_off);
		it->span++;
		start_part(r, i);
		return;
	}
	it->gil = lane->spans.v[it->span].gil.index;
	it->gap = gap_after(r, i, it->span);
	it->keeps = is_overdue(r, i, it->span++, &releases);
	if (releases)
		begin(it, PHASE_FREE, 0, 0);
	else
		begin(it, PHASE_NEXT, it->span_work, it->span_off);
	request(r, i);
}

/* The runner's piece has ended. */
static void finish_piece(struct replay *r, uint32_t i)
{
	struct runner *it = &r->runners[i];

	if (it->holding)
		release(r, i, it->phase == PHASE_NEXT ? it->gap : -1);
	switch (it->phase) {
	case PHASE_FREE:
		begin(it, PHASE_RETAKE, it->span_work, it->span_off);
		start_part(r, i);
		return;
	case PHASE_RETAKE:
		begin(it, PHASE_NEXT, 0, 0);
		request(r, i);
		return;
	case PHASE_NEXT:
		next_span(r, i);
		return;
	}
}

static void end_part(struct replay *r, uint32_t i)
{
	struct runner *it = &r->runners[i];

	if (!it->working) {
		finish_piece(r, i);
		return;
	}
	r->running--;
	it->working = false;
	it->work = 0;
	if (it->off > 0)
		start_part(r, i);
	else
		finish_piece(r, i);
}

/* A forced switch: the rest of the hold follows once the thread has the GIL again. Or, if the GIL is
 * free, a waiter has woken up. */
static void force_switch(struct replay *r, uint32_t gil)
{
	uint32_t holder = r->queues[gil].holder;

	if (holder == MODEL_NONE) {
		pass_on(r, gil);
		return;
	}
	stop(r, holder);
	release(r, holder, -1);
	request(r, holder);
}

static bool is_old(const struct replay *r, const struct timer *timer)
{
	size_t n = r->m->threads.n;

	if (timer->who < n)
		return r->runners[timer->who].turn != timer->turn;
	return r->queues[timer->who - n].turn != timer->turn;
}

static const struct timer *first(const struct replay *r, struct timers *timers)
{
	while (timers->v.n && is_old(r, &timers->v.v[0]))
		timers_pop(timers);
	return timers->v.n ? &timers->v.v[0] : NULL;
}

/* Simulates up to the next timer. Returns false at the end. */
static bool step(struct replay *r)
{
	const struct timer *sleeper = first(r, &r->sleepers), *worker = first(r, &r->workers);
	double rate = r->running ? min(1, r->cpus / (double)r->running) : 1;
	double at = worker ? r->now + (worker->at - r->work_clock) / rate : 0;
	double then = r->now;
	struct timer timer;

	if (!sleeper && !worker)
		return false;
	if (worker && (!sleeper || at <= sleeper->at)) {
		timer = *worker;
		r->work_clock = timer.at;
		r->now = at;
		timers_pop(&r->workers);
	} else {
		timer = *sleeper;
		r->work_clock += (timer.at - r->now) * rate;
		r->now = timer.at;
		timers_pop(&r->sleepers);
	}
	r->shared += (r->now - then) * (1 - rate) * (double)r->running;
	if (timer.who < r->m->threads.n)
		end_part(r, timer.who);
	else
		force_switch(r, timer.who - (uint32_t)r->m->threads.n);
	return true;
}

static void place_runners(struct replay *r)
{
	const struct model *m = r->m;
	size_t overdue = 0;

	for (uint32_t i = 0; i < m->threads.n; i++) {
		while (overdue < r->hogs->overdue.n && r->hogs->overdue.v[overdue].thread < i)
			overdue++;
		r->runners[i] = (struct runner){ .overdue = overdue,
			                         .next = MODEL_NONE,
			                         .owner_gil = MODEL_NONE };
		begin(&r->runners[i], PHASE_NEXT, 0,
		      (double)(m->threads.v[i].start_ns - m->start_ns));
		start_part(r, i);
	}
	for (uint32_t i = 0; i < m->gils.n; i++)
		r->queues[i] = (struct gil_queue){ .holder = MODEL_NONE, .head = MODEL_NONE };
}

/*
 * The result if the overdue holds of a group release the GIL. groups:
 * group of each overdue hold; cpus: number of the machine's CPUs, 0 counts as 1; interval_ns: the
 * switch interval.
 */
static struct replayed replay(const struct model *m, const struct hogs *hogs,
                              const uint32_t *groups, uint32_t group, unsigned cpus,
                              uint64_t interval_ns)
{
	CLEANUP(free) struct runner *runners = xcalloc(m->threads.n + 1, sizeof(*runners));
	CLEANUP(free) struct gil_queue *queues = xcalloc(m->gils.n + 1, sizeof(*queues));
	struct replay r = { .m = m,
		            .hogs = hogs,
		            .groups = groups,
		            .releasing = group,
		            .cpus = cpus ? cpus : 1,
		            .interval = (double)interval_ns,
		            .runners = runners,
		            .queues = queues };
	uint64_t steps = REPLAY_MORE_STEPS;

	for (size_t i = 0; i < m->threads.n; i++)
		steps += m->threads.v[i].gil.spans.n * REPLAY_STEPS;
	place_runners(&r);
	while (steps && step(&r))
		steps--;
	timers_done(&r.sleepers);
	timers_done(&r.workers);
	return (struct replayed){ .waited = r.waited, .shared = r.shared, .aborted = !steps };
}

/* The estimate. */

/* One replay, in a thread of its own if one can be created. */
struct job {
	const struct model *model;
	const struct hogs *hogs;
	const uint32_t *groups;
	uint32_t group;
	unsigned cpus;
	uint64_t interval_ns;
	struct replayed result;
	pthread_t thread;
	bool threaded;
};

static void *run(void *data)
{
	struct job *job = data;

	job->result = replay(job->model, job->hogs, job->groups, job->group, job->cpus,
	                     job->interval_ns);
	return NULL;
}

static void run_all(struct job *jobs, unsigned n)
{
	for (unsigned i = 1; i < n; i++)
		jobs[i].threaded = thread_start(&jobs[i].thread, run, &jobs[i]) == 0;
	for (unsigned i = 0; i < n; i++) {
		if (jobs[i].threaded)
			pthread_join(jobs[i].thread, NULL);
		else
			run(&jobs[i]);
	}
}

/* A group is one function or, if the function is unknown, one thread. */
static bool same_group(const struct stacks *frames, uint32_t thread_a, uint32_t frame_a,
                       uint32_t thread_b, uint32_t frame_b)
{
	if (!frame_a && !frame_b)
		return thread_a == thread_b;
	return hogs_same_function(frames, frame_a, frame_b);
}

/* A group's number is the index of its first row. */
static uint32_t group_of(const struct hogs *hogs, const struct stacks *frames, uint32_t thread,
                         uint32_t frame)
{
	for (uint32_t i = 0; i < hogs->v.n; i++)
		if (same_group(frames, hogs->v.v[i].thread, hogs->v.v[i].frame, thread, frame))
			return i;
	return REPLAY_NO_GROUP;
}

static uint32_t *group_overdue_holds(const struct hogs *hogs, const struct stacks *frames)
{
	uint32_t *groups = xcalloc(hogs->overdue.n + 1, sizeof(*groups));

	for (size_t i = 0; i < hogs->overdue.n; i++) {
		const struct hog_overdue *hold = &hogs->overdue.v[i];

		if (i &&
		    same_group(frames, hold->thread, hold->frame, hold[-1].thread, hold[-1].frame))
			groups[i] = groups[i - 1];
		else
			groups[i] = group_of(hogs, frames, hold->thread, hold->frame);
	}
	return groups;
}

static double lost(const struct replayed *r)
{
	return r->waited + r->shared;
}

/* Divides the gain of the job's group, whose number is that of its first row, among its rows. */
static void share_out(struct hogs *hogs, const struct stacks *frames, const struct job *job,
                      double gain)
{
	const struct hog *of = &hogs->v.v[job->group];
	double charged = 0;

	for (size_t i = job->group; i < hogs->v.n; i++)
		if (same_group(frames, of->thread, of->frame, hogs->v.v[i].thread,
		               hogs->v.v[i].frame))
			charged += (double)hogs->v.v[i].overdue_wait_ns;
	if (gain < 0)
		gain = 0;
	else if (gain > charged)
		gain = charged;
	for (size_t i = job->group; i < hogs->v.n; i++) {
		struct hog *hog = &hogs->v.v[i];

		if (!hog->overdue_wait_ns ||
		    !same_group(frames, of->thread, of->frame, hog->thread, hog->frame))
			continue;
		hog->no_gain = job->result.aborted ? NO_GAIN_TOO_LONG : GAIN_KNOWN;
		hog->gain_ns = (uint64_t)(gain * ((double)hog->overdue_wait_ns / charged));
	}
}

/* A thread without GIL events, such as one of OpenBLAS, did not wait for a GIL. */
static bool is_vague(const struct model *m)
{
	double unknown = 0, life = 0;

	for (size_t i = 0; i < m->threads.n; i++) {
		if (!m->threads.v[i].gil_events)
			continue;
		unknown += (double)m->threads.v[i].gil_ns[GIL_UNKNOWN];
		life += (double)(m->threads.v[i].end_ns - m->threads.v[i].start_ns);
	}
	return unknown * 100 > life * WHATIF_UNKNOWN;
}

/* Whether the replay without a change waits as long as the recording. */
static bool is_faithful(const struct model *m, double replayed, uint64_t *ret_waited_ns)
{
	double handed_over = 0, waited = 0;

	for (size_t i = 0; i < m->blame.n; i++) {
		waited += (double)m->blame.v[i].wait_ns;
		if (m->blame.v[i].holder == MODEL_NONE)
			handed_over += (double)m->blame.v[i].wait_ns;
	}
	*ret_waited_ns = (uint64_t)waited;
	return replayed * 100 >= (waited - handed_over) * (100 - WHATIF_DIFFERENCE) &&
	       replayed * 100 <= waited * (100 + WHATIF_DIFFERENCE);
}

static void set_no_gain(struct hogs *hogs, enum no_gain why)
{
	for (size_t i = 0; i < hogs->v.n; i++)
		hogs->v.v[i].no_gain = hogs->v.v[i].overdue_wait_ns ? why : GAIN_KNOWN;
}

static bool is_worth_it(const struct hog *hog, uint64_t wait_ns)
{
	return hog->overdue_wait_ns && hog->overdue_wait_ns >= wait_ns / 100 * WHATIF_PERCENT;
}

void whatif_find(struct hogs *hogs, const struct model *model, const struct stacks *frames,
                 unsigned cpus, uint64_t interval_ns)
{
	CLEANUP(free) uint32_t *groups = NULL;
	struct job jobs[1 + WHATIF_FUNCTIONS];
	uint64_t wait_ns = 0;
	unsigned n = 1;

	set_no_gain(hogs, NO_GAIN_UNKNOWN);
	if (!hogs->v.n || !hogs->v.v[0].overdue_wait_ns || is_vague(model))
		return;
	set_no_gain(hogs, NO_GAIN_LITTLE);
	for (size_t i = 0; i < model->threads.n; i++)
		wait_ns += model->threads.v[i].gil_ns[GIL_WAIT];
	groups = group_overdue_holds(hogs, frames);
	jobs[0] = (struct job){ .model = model,
		                .hogs = hogs,
		                .groups = groups,
		                .group = REPLAY_NO_GROUP,
		                .cpus = cpus,
		                .interval_ns = interval_ns };
	for (uint32_t i = 0; i < hogs->v.n && n <= WHATIF_FUNCTIONS; i++) {
		const struct hog *hog = &hogs->v.v[i];

		if (!is_worth_it(hog, wait_ns) ||
		    group_of(hogs, frames, hog->thread, hog->frame) != i)
			continue;
		jobs[n] = jobs[0];
		jobs[n++].group = i;
	}
	if (n == 1)
		return;
	run_all(jobs, n);
	if (jobs[0].result.aborted) {
		set_no_gain(hogs, NO_GAIN_TOO_LONG);
		return;
	}
	hogs->replayed_ns = (uint64_t)jobs[0].result.waited;
	if (!is_faithful(model, jobs[0].result.waited, &hogs->waited_ns)) {
		set_no_gain(hogs, NO_GAIN_DIFFERENT);
		return;
	}
	for (unsigned i = 1; i < n; i++)
		share_out(hogs, frames, &jobs[i], lost(&jobs[0].result) - lost(&jobs[i].result));
}

static struct whatif_run run_of(const struct job *job)
{
	return (struct whatif_run){ .cpus = job->cpus ? job->cpus : 1,
		                    .waited_ns = (uint64_t)job->result.waited,
		                    .shared_ns = (uint64_t)job->result.shared };
}

void whatif_free_find(struct whatif_free *ret, const struct hogs *hogs, const struct model *model,
                      unsigned cpus, uint64_t interval_ns)
{
	CLEANUP(free) uint32_t *groups = xcalloc(hogs->overdue.n + 1, sizeof(*groups));
	struct job jobs[1 + WHATIF_FREE_RUNS];

	*ret = (struct whatif_free){ .no_gain = NO_GAIN_UNKNOWN };
	if (is_vague(model))
		return;
	for (unsigned i = 0; i <= WHATIF_FREE_RUNS; i++)
		jobs[i] = (struct job){ .model = model,
			                .hogs = hogs,
			                .groups = groups,
			                .group = i ? REPLAY_NO_GIL : REPLAY_NO_GROUP,
			                .cpus = (cpus ? cpus : 1) << (i ? i - 1 : 0),
			                .interval_ns = interval_ns };
	run_all(jobs, 1 + WHATIF_FREE_RUNS);
	ret->no_gain = GAIN_KNOWN;
	if (!is_faithful(model, jobs[0].result.waited, &ret->recorded_ns))
		ret->no_gain = NO_GAIN_DIFFERENT;
	ret->unchanged = run_of(&jobs[0]);
	for (unsigned i = 0; i <= WHATIF_FREE_RUNS; i++) {
		if (i)
			ret->runs[i - 1] = run_of(&jobs[i]);
		if (jobs[i].result.aborted)
			ret->no_gain = NO_GAIN_TOO_LONG;
	}
}

/* SPDX-License-Identifier: MIT */
/* Runners (threads) on processors, with GILs that have queues: a simulation, event by event. */
#include "analysis/replay.h"

#include <stdlib.h>

#include "analysis/timers.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "model/span.h"

/* What a runner does: FREE means without the GIL. */
enum phase { PHASE_NEXT, PHASE_FREE, PHASE_RETAKE };

/**
 * A thread in the replay.
 * @phase: what comes when this piece is over: the next span, or the rest of one that lets go
 * @gil: of this span; @next: behind it in the queue, or MODEL_NONE
 * @span, @cpu, @overdue: the next of the thread's GIL lane, CPU lane and overdue holds
 * @work, @off: what is left of the piece on a CPU, and then of it off CPU
 * @turn: of its timer, so that an old one is known
 * @at: when the timer is due, on its clock; @working: which clock
 */
struct runner {
	enum phase phase;
	bool working, holding, hard;
	uint32_t gil, next, turn;
	size_t span, cpu, overdue;
	double work, off, at;
	double span_work, span_off;
	double asked;
};

/* A GIL and the threads that wait for it.
 * @asked: when the holder has to let go is known: a timer runs; its turn counts */
struct gil_queue {
	uint32_t holder, head, tail, turn;
	bool asked;
};

/**
 * @now: ns since the start of the recording; @work_clock: how far each thread that runs has got
 * @running: how many run
 * @lost: what all threads have waited for the GIL so far, and been slower than with a CPU each
 * @let_go: group whose overdue holds let go, or REPLAY_NO_GROUP; @groups: of each overdue hold
 */
struct replay {
	const struct model *m;
	const struct hogs *hogs;
	const uint32_t *groups;
	uint32_t let_go;
	double cpus, interval;
	double now, work_clock, lost;
	size_t running;
	struct runner *runners;
	struct gil_queue *queues;
	struct timers sleepers, workers;
};

static double min(double a, double b)
{
	return a < b ? a : b;
}

/* The next part of the runner's piece: first on a CPU, then off it. */
static void go_on(struct replay *r, uint32_t i)
{
	struct runner *it = &r->runners[i];

	it->working = it->work > 0;
	it->at = it->working ? r->work_clock + it->work : r->now + it->off;
	timers_push(it->working ? &r->workers : &r->sleepers, it->at, i, ++it->turn);
	r->running += it->working;
}

/* Take the runner off its clock; the rest of its piece stays in work and off. */
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

	if (queue->asked || r->runners[queue->holder].hard)
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
	r->lost += r->now - r->runners[i].asked;
	if (queue->head != MODEL_NONE)
		ask(r, gil, 2);
	go_on(r, i);
}

static void request(struct replay *r, uint32_t i)
{
	struct runner *it = &r->runners[i];
	struct gil_queue *queue = &r->queues[it->gil];

	it->asked = r->now;
	it->next = MODEL_NONE;
	if (queue->holder == MODEL_NONE) {
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

static void let_go(struct replay *r, uint32_t i)
{
	struct gil_queue *queue = &r->queues[r->runners[i].gil];
	uint32_t next = queue->head;

	r->runners[i].holding = false;
	queue->holder = MODEL_NONE;
	queue->asked = false;
	queue->turn++;
	if (next == MODEL_NONE)
		return;
	queue->head = r->runners[next].next;
	grant(r, r->runners[next].gil, next);
}

/* How long the thread needed a CPU in the span, and how long it did not. */
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
static bool is_overdue(struct replay *r, uint32_t i, size_t span, bool *lets_go)
{
	struct runner *it = &r->runners[i];
	size_t n = r->hogs->overdue.n;
	const struct hog_overdue *overdue = r->hogs->overdue.v;

	*lets_go = false;
	while (it->overdue < n && overdue[it->overdue].thread == i &&
	       overdue[it->overdue].span < span)
		it->overdue++;
	if (it->overdue == n || overdue[it->overdue].thread != i ||
	    overdue[it->overdue].span != span)
		return false;
	*lets_go = r->groups[it->overdue] == r->let_go;
	return true;
}

static void begin(struct runner *it, enum phase then, double work, double off)
{
	it->phase = then;
	it->work = work;
	it->off = off;
}

/* Start the runner's next span that has a length of its own. */
static void next_span(struct replay *r, uint32_t i)
{
	const struct lane *lane = &r->m->threads.v[i].gil;
	struct runner *it = &r->runners[i];
	bool lets_go;

	for (; it->span < lane->spans.n; it->span++) {
		uint8_t state = lane->spans.v[it->span].state;

		if (state != GIL_WAIT && state != GIL_SWITCH_WAIT && state != GIL_FREE_WAIT)
			break;
	}
	if (it->span == lane->spans.n)
		return;
	measure(r, i, it->span);
	if (lane->spans.v[it->span].state != GIL_HOLD) {
		begin(it, PHASE_NEXT, it->span_work, it->span_off);
		it->span++;
		go_on(r, i);
		return;
	}
	it->gil = lane->spans.v[it->span].gil.index;
	it->hard = is_overdue(r, i, it->span++, &lets_go);
	if (lets_go)
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
		let_go(r, i);
	switch (it->phase) {
	case PHASE_FREE:
		begin(it, PHASE_RETAKE, it->span_work, it->span_off);
		go_on(r, i);
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
		go_on(r, i);
	else
		finish_piece(r, i);
}

/* A forced switch: the rest of the hold follows when the thread has the GIL again. */
static void force_switch(struct replay *r, uint32_t gil)
{
	uint32_t holder = r->queues[gil].holder;

	stop(r, holder);
	let_go(r, holder);
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

/* One step; false at the end. */
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
	r->lost += (r->now - then) * (1 - rate) * (double)r->running;
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
		r->runners[i] = (struct runner){ .overdue = overdue, .next = MODEL_NONE };
		begin(&r->runners[i], PHASE_NEXT, 0,
		      (double)(m->threads.v[i].start_ns - m->start_ns));
		go_on(r, i);
	}
	for (uint32_t i = 0; i < m->gils.n; i++)
		r->queues[i] = (struct gil_queue){ .holder = MODEL_NONE, .head = MODEL_NONE };
}

double replay(const struct model *m, const struct hogs *hogs, const uint32_t *groups,
              uint32_t group, unsigned cpus, uint64_t interval_ns)
{
	CLEANUP(free) struct runner *runners = xcalloc(m->threads.n + 1, sizeof(*runners));
	CLEANUP(free) struct gil_queue *queues = xcalloc(m->gils.n + 1, sizeof(*queues));
	struct replay r = { .m = m,
		            .hogs = hogs,
		            .groups = groups,
		            .let_go = group,
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
	return steps ? r.lost : -1;
}

/* SPDX-License-Identifier: MIT */
/* What-if estimates: which overdue holds release the GIL together, and how a gain is divided among
 * rows; and the whole schedule without a GIL. */
#include "analysis/whatif.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "analysis/hogs.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/idmap.h"
#include "base/thread.h"
#include "base/vec.h"
#include "model/model.h"
#include "model/owners.h"
#include "model/span.h"
#include "trace/stacks.h"

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

/* Time in ns that all threads together lose by waiting for the GIL and by sharing CPUs.
 * @end: when the main thread ended; @worked: CPU time */
struct replayed {
	double waited, shared, end, worked;
	bool aborted;
};

/* What one thread did for another one. */

/**
 * A wait that another thread ended: the waiter goes on when that has come to what it did at
 * sent_ns.
 * @by: MODEL_NONE: no thread is known to have ended it, so it takes as long as it took
 * @lock: that was released; MODEL_NONE: a signal, or the start of the waiter
 */
struct dependency {
	uint64_t from_ns, to_ns, sent_ns;
	uint32_t waiter, by, lock;
};

/**
 * @v: by waiter and time; @first: of each thread, and the number of all
 * @sends: indices in v, by thread and sent_ns; @first_send: as first
 */
struct dependencies {
	VEC(struct dependency) v;
	uint32_t *sends;
	size_t *first, *first_send;
};

/* A thread went on, at this time of the replay, because of what another one did. */
struct edge {
	double at;
	uint32_t waiter, by, lock;
};

/* A part of the critical path, in times of the replay. */
struct stretch {
	double from, to;
	uint32_t thread;
};

/**
 * The critical path of a replay, and what threads did on it.
 * @edges: by time, filled in by the first replay
 * @stretches: by thread and time; @first_of: by thread; @next_of: the first that is not over,
 * in the @second replay; @of: index in ret's path, by function and kind
 */
struct critical {
	VEC(struct edge) edges;
	VEC(struct stretch) stretches;
	size_t *next_of, *first_of;
	struct whatif_free *ret;
	const struct stacks *frames;
	struct idmap of;
	bool second;
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
 * @pos_ns: the recorded time up to which it is replayed, once its current piece is over
 * @wait, @send: next index in what it waits for, and in what it does for others
 * @blocked: it waits for that; @began: when its current piece began, in the replay
 * @work, @off: remaining time of the piece on a CPU, and then off CPU
 * @turn: number of its current timer; timers with another number are obsolete
 * @at: when the timer is due; @working: on the work clock, otherwise on real time
 * @keeps: the current hold ignores release requests, because it is overdue
 * @gap: how long after the current hold it takes the GIL again while others still wake up;
 * negative: another thread gets the GIL in between
 * @owner: index of the previous hold's owner in owner_gil, where the next search starts
 * @frame, @kind: what its current piece runs; @released_in: the frame of its last hold
 */
struct runner {
	enum phase phase;
	enum whatif_kind kind;
	bool working, holding, keeps, blocked;
	uint32_t gil, next, turn, owner_gil, frame, released_in;
	size_t span, cpu, overdue, owner, wait, send;
	uint64_t pos_ns;
	double began;
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
 * @main: the thread at whose end the replay is over; MODEL_NONE: all; @end: when that was
 * @sent: by dependency; @factor: how many times as long a hold takes
 */
struct replay {
	const struct model *m;
	const struct hogs *hogs;
	const uint32_t *groups;
	const struct dependencies *deps;
	struct critical *critical;
	uint32_t releasing, main;
	double cpus, interval, factor;
	double now, work_clock, waited, shared, worked, end;
	bool *sent;
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

/* How long the thread needs a CPU for what it did in that time, and how long it does not. The
 * whole schedule is replayed on CPUs that others do not use, so it does not wait for one there;
 * and if it is not known whether a thread without the GIL slept, it did. */
static void measure(struct replay *r, uint32_t i, uint64_t start_ns, uint64_t end_ns, bool holds)
{
	const struct model_thread *t = &r->m->threads.v[i];
	struct runner *it = &r->runners[i];
	uint64_t off_ns = 0, ran_ns = 0, runnable_ns = 0;

	while (it->cpu < t->cpu.spans.n && lane_span_end(&t->cpu, it->cpu) <= start_ns)
		it->cpu++;
	for (size_t c = it->cpu; c < t->cpu.spans.n && t->cpu.spans.v[c].start_ns < end_ns; c++) {
		uint64_t from = t->cpu.spans.v[c].start_ns, to = lane_span_end(&t->cpu, c);
		uint8_t state = t->cpu.spans.v[c].state;

		from = from > start_ns ? from : start_ns;
		to = to < end_ns ? to : end_ns;
		if (state > CPU_RUNNABLE)
			off_ns += to - from;
		else if (state == CPU_RUNNABLE)
			runnable_ns += to - from;
		else if (state == CPU_RUNNING)
			ran_ns += to - from;
	}
	if (r->sent && !holds)
		off_ns = end_ns - start_ns - runnable_ns - ran_ns;
	it->span_off = (double)off_ns;
	it->span_work = (double)(end_ns - start_ns - off_ns - (r->sent ? runnable_ns : 0));
	if (holds && r->releasing == REPLAY_NO_GIL)
		it->span_work *= r->factor;
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

static void wait_for(struct replay *r, uint32_t i, double ns)
{
	struct runner *it = &r->runners[i];

	it->began = r->now;
	it->kind = WHATIF_ASLEEP;
	it->frame = 0;
	begin(it, PHASE_NEXT, 0, ns);
	start_part(r, i);
}

/* Lets threads go on that wait for what this one has done by now. */
static void deliver(struct replay *r, uint32_t i)
{
	const struct dependencies *d = r->deps;
	struct runner *it = &r->runners[i];

	for (; r->sent && it->send < d->first_send[i + 1]; it->send++) {
		size_t which = d->sends[it->send];
		const struct dependency *dep = &d->v.v[which];
		struct runner *waiter = &r->runners[dep->waiter];

		if (dep->sent_ns > it->pos_ns)
			return;
		r->sent[which] = true;
		if (!waiter->blocked || waiter->wait != which)
			continue;
		waiter->blocked = false;
		if (r->critical && !r->critical->second)
			*vec_push(&r->critical->edges) = (struct edge){ r->now, dep->waiter, i,
				                                        dep->lock };
		wait_for(r, dep->waiter, 0);
	}
}

/* Whether the thread waits now: for another one, or as long as it waited. */
static bool waits(struct replay *r, uint32_t i)
{
	const struct dependencies *d = r->deps;
	struct runner *it = &r->runners[i];

	while (r->sent && it->wait < d->first[i + 1]) {
		const struct dependency *dep = &d->v.v[it->wait];

		if (dep->from_ns > it->pos_ns)
			return false;
		if (dep->to_ns > it->pos_ns && (dep->by == MODEL_NONE || !r->sent[it->wait])) {
			if (it->holding)
				release(r, i, -1);
			it->blocked = dep->by != MODEL_NONE;
			if (it->blocked)
				return true;
			wait_for(r, i, (double)(dep->to_ns - it->pos_ns));
			it->pos_ns = dep->to_ns;
			it->wait++;
			return true;
		}
		it->pos_ns = later(it->pos_ns, dep->to_ns);
		it->wait++;
		deliver(r, i);
	}
	return false;
}

/* The recorded time up to which the thread does nothing for others, and does not begin to wait. */
static uint64_t piece_end(const struct replay *r, uint32_t i)
{
	const struct dependencies *d = r->deps;
	const struct runner *it = &r->runners[i];
	uint64_t end_ns = lane_span_end(&r->m->threads.v[i].gil, it->span), at;

	if (!r->sent)
		return end_ns;
	if (it->send < d->first_send[i + 1]) {
		at = d->v.v[d->sends[it->send]].sent_ns;
		end_ns = at < end_ns ? at : end_ns;
	}
	if (it->wait < d->first[i + 1]) {
		at = d->v.v[it->wait].from_ns;
		end_ns = at < end_ns ? at : end_ns;
	}
	return end_ns;
}

/* Starts the runner's next piece, skipping waits: their length follows from the replay. */
static void next_piece(struct replay *r, uint32_t i)
{
	const struct lane *lane = &r->m->threads.v[i].gil;
	struct runner *it = &r->runners[i];
	const struct span *s = NULL;
	uint64_t from_ns, end_ns;
	bool releases, holds;

	for (;;) {
		deliver(r, i);
		if (waits(r, i))
			return;
		while (it->span < lane->spans.n && lane_span_end(lane, it->span) <= it->pos_ns)
			it->span++;
		if (it->span == lane->spans.n) {
			it->pos_ns = UINT64_MAX;
			deliver(r, i);
			if (r->main == MODEL_NONE || r->main == i)
				r->end = r->now;
			return;
		}
		s = &lane->spans.v[it->span];
		if (s->state != GIL_WAIT && s->state != GIL_SWITCH_WAIT &&
		    s->state != GIL_FREE_WAIT)
			break;
		it->pos_ns = lane_span_end(lane, it->span);
	}
	holds = s->state == GIL_HOLD;
	end_ns = piece_end(r, i);
	from_ns = later(it->pos_ns, s->start_ns);
	measure(r, i, from_ns, later(end_ns, from_ns), holds);
	it->pos_ns = end_ns;
	it->began = r->now;
	it->kind = holds ? WHATIF_PYTHON : it->span_work > it->span_off ? WHATIF_C : WHATIF_ASLEEP;
	if (holds)
		it->released_in = s->gil.frame;
	it->frame = it->released_in;
	begin(it, PHASE_NEXT, it->span_work, it->span_off);
	if (!holds || r->releasing == REPLAY_NO_GIL || it->holding) {
		start_part(r, i);
		return;
	}
	it->gil = s->gil.index;
	it->gap = gap_after(r, i, it->span);
	it->keeps = is_overdue(r, i, it->span, &releases);
	if (releases)
		begin(it, PHASE_FREE, 0, 0);
	request(r, i);
}

/* What the thread did in its piece, as far as that is on the critical path. */
static void attribute(struct replay *r, uint32_t i)
{
	const struct runner *it = &r->runners[i];
	struct critical *c = r->critical;
	double ns = 0;
	uint64_t key = (uint64_t)i * WHATIF_KINDS + it->kind;
	uint32_t row;

	if (!c || !c->second)
		return;
	for (; c->next_of[i] < c->first_of[i + 1]; c->next_of[i]++) {
		const struct stretch *s = &c->stretches.v[c->next_of[i]];

		if (s->from < r->now && s->to > it->began)
			ns += min(s->to, r->now) - (s->from > it->began ? s->from : it->began);
		if (s->to > r->now)
			break;
	}
	if (!(ns > 0))
		return;
	if (it->frame && c->frames) {
		const struct stack_frame *f = stacks_get(c->frames, it->frame);

		key = ~(idmap_pair(f->name, f->module) * WHATIF_KINDS + it->kind);
	}
	if (idmap_add(&c->of, key, (uint32_t)c->ret->path.n, &row))
		*vec_push(&c->ret->path) = (struct whatif_part){ it->frame, i, it->kind, 0 };
	c->ret->path.v[row].ns += ns;
	if (c->ret->path.v[row].thread != i)
		c->ret->path.v[row].thread = MODEL_NONE;
}

/* The runner's piece has ended. */
static void finish_piece(struct replay *r, uint32_t i)
{
	struct runner *it = &r->runners[i];

	attribute(r, i);
	if (it->holding && it->pos_ns >= lane_span_end(&r->m->threads.v[i].gil, it->span))
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
		next_piece(r, i);
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
	bool shares = (double)r->running > r->cpus; /* divisions take most of a step */
	double rate = shares ? r->cpus / (double)r->running : 1;
	double left = worker ? worker->at - r->work_clock : 0;
	double at = r->now + (shares ? left / rate : left);
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
	r->worked += (r->now - then) * rate * (double)r->running;
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
		r->runners[i].pos_ns = r->sent ? m->start_ns : m->threads.v[i].start_ns;
		r->runners[i].wait = r->sent ? r->deps->first[i] : 0;
		r->runners[i].send = r->sent ? r->deps->first_send[i] : 0;
		begin(&r->runners[i], PHASE_NEXT, 0, (double)(r->runners[i].pos_ns - m->start_ns));
		start_part(r, i);
	}
	for (uint32_t i = 0; i < m->gils.n; i++)
		r->queues[i] = (struct gil_queue){ .holder = MODEL_NONE, .head = MODEL_NONE };
}

/* One replay, in a thread of its own if one can be created.
 * @group: whose overdue holds release the GIL; @groups: group of each overdue hold
 * @cpus: two that share a core may count as less than two; 0 counts as 1
 * @deps: NULL: a wait takes as long as it took
 */
struct job {
	const struct model *model;
	const struct hogs *hogs;
	const uint32_t *groups;
	const struct dependencies *deps;
	struct critical *critical;
	uint32_t group, main;
	double cpus, factor;
	uint64_t interval_ns;
	struct replayed result;
	pthread_t thread;
	bool threaded;
};

static struct replayed replay(const struct job *job)
{
	const struct model *m = job->model;
	CLEANUP(free) struct runner *runners = xcalloc(m->threads.n + 1, sizeof(*runners));
	CLEANUP(free) struct gil_queue *queues = xcalloc(m->gils.n + 1, sizeof(*queues));
	CLEANUP(free) bool *sent = job->deps ? xcalloc(job->deps->v.n + 1, sizeof(*sent)) : NULL;
	struct replay r = { .m = m,
		            .hogs = job->hogs,
		            .groups = job->groups,
		            .deps = job->deps,
		            .critical = job->critical,
		            .releasing = job->group,
		            .main = job->main,
		            .cpus = job->cpus > 0 ? job->cpus : 1,
		            .interval = (double)job->interval_ns,
		            .factor = job->factor,
		            .sent = sent,
		            .end = -1,
		            .runners = runners,
		            .queues = queues };
	uint64_t steps = REPLAY_MORE_STEPS;

	for (size_t i = 0; i < m->threads.n; i++)
		steps += m->threads.v[i].gil.spans.n * REPLAY_STEPS;
	if (job->deps)
		steps += job->deps->v.n * REPLAY_STEPS;
	place_runners(&r);
	while (steps && !(r.main != MODEL_NONE && r.end >= 0) && step(&r))
		steps--;
	timers_done(&r.sleepers);
	timers_done(&r.workers);
	return (struct replayed){ .waited = r.waited,
		                  .shared = r.shared,
		                  .end = r.end,
		                  .worked = r.worked,
		                  .aborted = !steps || r.end < 0 };
}

/* The estimate. */

static void *run(void *data)
{
	struct job *job = data;

	job->result = replay(job);
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
		                .main = MODEL_NONE,
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

/* What is known about the end of a wait for a lock: the thread that released it. */
static void add_lock_wait(struct dependencies *d, const struct model *m, uint32_t thread,
                          size_t span, uint64_t *work)
{
	const struct lane *lane = &m->threads.v[thread].gil;
	struct dependency dep = {
		lane->spans.v[span].start_ns, lane_span_end(lane, span), 0, thread, MODEL_NONE,
		lane->spans.v[span].gil.lock
	};
	struct model_blocked_list list = { 0 };

	model_blocked(m, thread, span, work, &list);
	for (size_t i = list.v.n; i-- > 0 && dep.by == MODEL_NONE;) {
		const struct model_blocked *part = &list.v.v[i];

		if (part->kept || part->by == MODEL_UNKNOWN)
			break;
		if (part->by == MODEL_NONE)
			continue;
		dep.by = part->by;
		dep.sent_ns = part->end_ns;
	}
	vec_done(&list.v);
	*vec_push(&d->v) = dep;
}

static void add_signal(struct dependencies *d, uint32_t thread, const struct model_signal *s)
{
	bool known = s->by < MODEL_UNKNOWN && s->by != thread && s->sent_ns <= s->to_ns;

	*vec_push(&d->v) = (struct dependency){
		s->from_ns, s->to_ns, known ? s->sent_ns : 0, thread, known ? s->by : MODEL_NONE,
		MODEL_NONE
	};
}

static int compare_dependencies(const void *a, const void *b)
{
	const struct dependency *x = a, *y = b;

	if (x->waiter != y->waiter)
		return x->waiter < y->waiter ? -1 : 1;
	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static int compare_sends(const void *a, const void *b, void *data)
{
	const struct dependencies *d = data;
	const struct dependency *x = &d->v.v[*(const uint32_t *)a],
				*y = &d->v.v[*(const uint32_t *)b];

	if (x->by != y->by)
		return x->by < y->by ? -1 : 1;
	return (x->sent_ns > y->sent_ns) - (x->sent_ns < y->sent_ns);
}

/* A thread does nothing for others while it waits itself: what it seems to do then, it did before. So it is
 * with the start of a thread that had no CPU at first, for which its creator waits. */
static void do_before_waits(struct dependencies *d)
{
	for (size_t i = 0; i < d->v.n; i++) {
		struct dependency *dep = &d->v.v[i];
		const struct dependency *of;
		size_t n, before;

		if (dep->by == MODEL_NONE)
			continue;
		of = &d->v.v[d->first[dep->by]];
		n = d->first[dep->by + 1] - d->first[dep->by];
		before = SEARCH(n, k, of[k].from_ns < dep->sent_ns);
		if (before && of[before - 1].to_ns > dep->sent_ns)
			dep->sent_ns = of[before - 1].from_ns;
	}
}

static void find_dependencies(struct dependencies *d, const struct model *m)
{
	uint64_t work = model_blocked_work(m);
	size_t n = 0;

	for (uint32_t i = 0; i < m->threads.n; i++) {
		const struct model_thread *t = &m->threads.v[i];

		if (t->start_ns > m->start_ns)
			*vec_push(&d->v) = (struct dependency){
				0,
				t->start_ns,
				t->start_ns,
				i,
				t->creator < m->threads.n ? t->creator : MODEL_NONE,
				MODEL_NONE
			};
		for (size_t k = 0; k < t->signals.n; k++)
			add_signal(d, i, &t->signals.v[k]);
		for (size_t k = 0; k < t->gil.spans.n; k++)
			if (t->gil.spans.v[k].state == GIL_LOCK_WAIT)
				add_lock_wait(d, m, i, k, &work);
	}
	vec_sort(&d->v, compare_dependencies);
	d->sends = xcalloc(d->v.n + 1, sizeof(*d->sends));
	d->first = xcalloc(m->threads.n + 1, sizeof(*d->first));
	d->first_send = xcalloc(m->threads.n + 1, sizeof(*d->first_send));
	for (size_t i = 0; i < d->v.n; i++) {
		d->first[d->v.v[i].waiter + 1]++;
		if (d->v.v[i].by == MODEL_NONE)
			continue;
		d->sends[n++] = (uint32_t)i;
		d->first_send[d->v.v[i].by + 1]++;
	}
	for (size_t i = 0; i < m->threads.n; i++) {
		d->first[i + 1] += d->first[i];
		d->first_send[i + 1] += d->first_send[i];
	}
	do_before_waits(d);
	if (n)
		qsort_r(d->sends, n, sizeof(*d->sends), compare_sends, d);
}

static void dependencies_done(struct dependencies *d)
{
	vec_done(&d->v);
	free(d->sends);
	free(d->first);
	free(d->first_send);
}

static int compare_stretches(const void *a, const void *b)
{
	const struct stretch *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->from > y->from) - (x->from < y->from);
}

static int compare_path(const void *a, const void *b)
{
	const struct whatif_part *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

/* From the end of the replay back to its start, through the threads for which others waited. */
static void walk_back(struct critical *c, const struct job *job)
{
	CLEANUP(free) double *of_lock = xcalloc(job->model->locks.n + 1, sizeof(*of_lock));
	uint32_t thread = job->main, lock = MODEL_NONE;
	double at = job->result.end;

	for (size_t i = c->edges.n; i-- > 0;) {
		const struct edge *e = &c->edges.v[i];
		bool same = e->lock != MODEL_NONE && e->lock == lock;

		if (e->waiter != thread || e->at > at)
			continue;
		*vec_push(&c->stretches) = (struct stretch){ e->at, at, thread };
		if (same)
			of_lock[lock] += at - e->at;
		thread = e->by;
		at = e->at;
		lock = e->lock;
	}
	*vec_push(&c->stretches) = (struct stretch){ 0, at, thread };
	for (uint32_t i = 0; i < job->model->locks.n; i++) {
		if (!(of_lock[i] > c->ret->lock_ns))
			continue;
		c->ret->lock_ns = of_lock[i];
		c->ret->lock = i;
	}
}

/* Replays the job again, to find what threads do on its critical path. */
static void find_path(struct whatif_free *ret, const struct stacks *frames, struct critical *c,
                      struct job *job)
{
	size_t threads = job->model->threads.n;

	if (job->result.aborted)
		return;
	c->ret = ret;
	c->frames = frames;
	walk_back(c, job);
	vec_sort(&c->stretches, compare_stretches);
	c->first_of = xcalloc(threads + 1, sizeof(*c->first_of));
	c->next_of = xcalloc(threads + 1, sizeof(*c->next_of));
	for (size_t i = 0; i < c->stretches.n; i++)
		c->first_of[c->stretches.v[i].thread + 1]++;
	for (size_t i = 0; i < threads; i++) {
		c->first_of[i + 1] += c->first_of[i];
		c->next_of[i] = c->first_of[i];
	}
	c->second = true;
	run(job);
	vec_sort(&ret->path, compare_path);
}

static struct whatif_run run_of(const struct job *job)
{
	return (struct whatif_run){ .cpus = job->cpus,
		                    .waited_ns = (uint64_t)job->result.waited,
		                    .shared_ns = (uint64_t)job->result.shared,
		                    .worked_ns = (uint64_t)job->result.worked,
		                    .end_ns = (uint64_t)job->result.end };
}

static uint32_t first_main(const struct model *m)
{
	for (uint32_t i = 0; i < m->threads.n; i++)
		if (m->threads.v[i].main && m->threads.v[i].gil.spans.n)
			return i;
	return MODEL_NONE;
}

void whatif_free_find(struct whatif_free *ret, const struct hogs *hogs, const struct model *model,
                      const struct stacks *frames, unsigned cpus, uint64_t interval_ns,
                      const struct whatif_options *options)
{
	CLEANUP(free) uint32_t *groups = xcalloc(hogs->overdue.n + 1, sizeof(*groups));
	struct job jobs[1 + WHATIF_FREE_RUNS];
	struct dependencies deps = { 0 };
	struct critical critical = { 0 };
	uint32_t main = first_main(model);
	unsigned n = options->runs;

	*ret = (struct whatif_free){ .no_gain = NO_GAIN_UNKNOWN, .lock = MODEL_NONE };
	if (main == MODEL_NONE || is_vague(model))
		return;
	find_dependencies(&deps, model);
	for (unsigned i = 0; i <= n; i++)
		jobs[i] = (struct job){ .model = model,
			                .hogs = hogs,
			                .groups = groups,
			                .deps = &deps,
			                .group = i ? REPLAY_NO_GIL : REPLAY_NO_GROUP,
			                .main = main,
			                .cpus = i      ? options->cpus[i - 1]
			                        : cpus ? cpus
			                               : 1,
			                .factor = options->factor,
			                .interval_ns = interval_ns };
	jobs[n].critical = &critical;
	run_all(jobs, 1 + n);
	ret->no_gain = GAIN_KNOWN;
	ret->duration_ns = model->end_ns - model->start_ns;
	for (size_t i = 0; i < model->blame.n; i++)
		ret->recorded_ns += model->blame.v[i].wait_ns;
	if (fabs(jobs[0].result.end - (double)ret->duration_ns) * 100 >
	    (double)ret->duration_ns * WHATIF_DURATION)
		ret->no_gain = NO_GAIN_DIFFERENT;
	for (unsigned i = 0; i <= n; i++)
		if (jobs[i].result.aborted)
			ret->no_gain = NO_GAIN_TOO_LONG;
	for (size_t i = 0; i < model->threads.n; i++)
		ret->states_known |= model->threads.v[i].cpu_ns[CPU_RUNNING] > 0;
	if (ret->no_gain != NO_GAIN_TOO_LONG) {
		ret->unchanged = run_of(&jobs[0]);
		for (; ret->run_count < n; ret->run_count++)
			ret->runs[ret->run_count] = run_of(&jobs[1 + ret->run_count]);
		find_path(ret, frames, &critical, &jobs[n]);
	}
	dependencies_done(&deps);
	vec_done(&critical.edges);
	vec_done(&critical.stretches);
	idmap_done(&critical.of);
	free(critical.first_of);
	free(critical.next_of);
}

void whatif_free_done(struct whatif_free *f)
{
	vec_done(&f->path);
}

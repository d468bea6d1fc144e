/* SPDX-License-Identifier: MIT */
/*
 * Event sequences by hand, and lanes as text. The program is process 7, whose thread 7 switches
 * tracing on at 100 and off at 1000, unless begin_with says otherwise.
 *
 *	begin();
 *	release(200, 7);
 *	finish();
 *	is_str(gil_lane(7), "100:H^ 200:N 1000", "…");
 *
 * A lane is "start:state" for each span and then its end. Flags follow the state: ! inferred end,
 * ^ inferred start, / open end, x lost. Holds and waits of a GIL other than the first say which.
 */
#ifndef GILTRACER_TESTS_MODEL_EVENTS_H
#define GILTRACER_TESTS_MODEL_EVENTS_H

#include "base/str.h"
#include "model/model.h"
#include "trace/names.h"

#include "tap.h"

#define GIL 0x5000

static struct model *m;
static struct names *names;
static uint32_t pid_now = 7; /* of the thread of the next events */
static int32_t cpu_now;
static uint64_t gil_now = GIL; /* what the probes of the next events fetch */

__attribute__((unused)) static void begin_with(const struct model_options *options)
{
	struct model_options o = *options;

	model_free(m);
	if (!names)
		names = names_new();
	o.names = names;
	m = model_new(&o);
	pid_now = 7;
	cpu_now = 0;
	gil_now = GIL;
}

/* Every release has a probe. */
__attribute__((unused)) static void begin_whole(void)
{
	begin_with(&(struct model_options){ .start_ns = 100,
	                                    .end_ns = 1000,
	                                    .start_pid = 7,
	                                    .start_tid = 7,
	                                    .all_releases = true });
}

__attribute__((unused)) static void begin(void)
{
	begin_with(&(struct model_options){
		.start_ns = 100, .end_ns = 1000, .start_pid = 7, .start_tid = 7 });
}

__attribute__((unused)) static void finish(void)
{
	struct error err = { .text = "" };
	bool good;

	model_finish(m);
	good = model_check(m, &err) == 0;
	ok(good, "the invariants hold%s%s", good ? "" : ": ", err.text);
}

static void feed(uint64_t t, uint32_t tid, enum event_type type, struct event ev)
{
	ev.time_ns = t;
	ev.tid = tid;
	ev.pid = ev.pid ? ev.pid : pid_now;
	ev.cpu = cpu_now;
	ev.type = (uint16_t)type;
	model_feed(m, &ev);
}

#define EV(...)             \
	(struct event)      \
	{                   \
		__VA_ARGS__ \
	}
#define request(t, tid)  feed(t, tid, EV_REQUEST, EV(.gil = { .address = gil_now }))
#define acquire(t, tid)  feed(t, tid, EV_ACQUIRE, EV(0))
#define release(t, tid)  feed(t, tid, EV_RELEASE, EV(.gil = { .address = gil_now }))
#define released(t, tid) feed(t, tid, EV_RELEASED, EV(0))
#define save(t, tid)     feed(t, tid, EV_SAVE, EV(0))

#define run(t, tid, on)                            \
	do {                                       \
		cpu_now = (on);                    \
		feed(t, tid, EV_SWITCH_IN, EV(0)); \
	} while (0)
#define leaves(t, tid)    feed(t, tid, EV_SWITCH_OUT, EV(0))
#define preempted(t, tid) feed(t, tid, EV_SWITCH_OUT, EV(.flags = EVF_PREEMPT))
/* A waiting thread goes back to sleep at t, from which the model infers a release request. */
#define asks(t, tid)                \
	do {                        \
		run((t)-3, tid, 1); \
		leaves((t)-2, tid); \
		run((t)-1, tid, 1); \
		leaves(t, tid);     \
	} while (0)
#define sched_out(t, tid, why, st) \
	feed(t, tid, EV_SCHED_OUT, EV(.sched = { .prev_state = (why), .stack = (st) }))
#define picks(t, on, who, whom, called, fl)                                           \
	model_feed(m, &EV(.time_ns = (t), .tid = (who), .cpu = (on), .type = EV_PICK, \
	                  .flags = (fl), .sched = { .next_tid = (whom), .next_name = (called) }))
#define moves(t, whom, src, dst)                                      \
	model_feed(m, &EV(.time_ns = (t), .cpu = -1, .type = EV_MOVE, \
	                  .move = { .tid = (whom), .from = (src), .to = (dst) }))
#define parks(t, tid, at, why) feed(t, tid, EV_PARK, EV(.park = { .address = (at), .kind = (why) }))
#define parked(t, tid)         feed(t, tid, EV_PARKED, EV(0))
#define unparks(t, tid, at)    feed(t, tid, EV_UNPARK, EV(.park = { .address = (at) }))
#define nests(t, tid, outer, inner)                                  \
	(feed(t, tid, EV_OUTER, EV(.park = { .address = (outer) })), \
	 feed(t, tid, EV_INNER, EV(.park = { .address = (inner) })))
#define stops_world(t, tid)   feed(t, tid, EV_STOP_WORLD, EV(0))
#define started_world(t, tid) feed(t, tid, EV_STARTED_WORLD, EV(0))
#define starts_world(t, tid)  feed(t, tid, EV_START_WORLD, EV(.gil = { .frame = 9 }))
#define wakes(t, who, whom)   feed(t, who, EV_WAKING, EV(.waking = { .tid = (whom) }))

#define new_thread(t, child, parent) \
	feed(t, child, EV_FORK, EV(.fork = { .parent_pid = pid_now, .parent_tid = (parent) }))
#define new_process(t, child, parent) \
	feed(t, child, EV_FORK,       \
	     EV(.pid = (child), .fork = { .parent_pid = pid_now, .parent_tid = (parent) }))
#define maps_python(t, process, fl) feed(t, process, EV_PYTHON, EV(.pid = (process), .flags = (fl)))
#define ends(t, tid)                feed(t, tid, EV_EXIT, EV(0))
#define is_called(t, tid, who) \
	feed(t, tid, EV_COMM, EV(.comm = { .name = names_id(names, who, strlen(who)) }))
#define execs(t, tid, who)    \
	feed(t, tid, EV_COMM, \
	     EV(.flags = EVF_EXEC, .comm = { .name = names_id(names, who, strlen(who)) }))
#define loses(since, t, on, n)                                          \
	model_feed(m, &EV(.time_ns = (t), .cpu = (on), .type = EV_LOST, \
	                  .lost = { .since_ns = (since), .count = (n) }))

#define loses_part(since, t, part)                                                     \
	model_feed(m, &EV(.time_ns = (t), .cpu = -1, .type = EV_LOST, .flags = (part), \
	                  .lost = { .since_ns = (since), .count = 1 }))

__attribute__((unused)) static const struct model_thread *thread(uint32_t tid)
{
	uint32_t i = model_find_thread(m, tid);

	return i == MODEL_NONE ? NULL : &m->threads.v[i];
}

static const char *lane_text(const struct lane *lane, const char *letters, bool gil)
{
	static struct str s[4];
	static unsigned next;
	struct str *text = &s[next++ % 4];

	str_done(text);
	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *sp = &lane->spans.v[i];

		str_addf(text, "%" PRIu64 ":%c", sp->start_ns, letters[sp->state]);
		if (gil && sp->gil.index && sp->gil.index != MODEL_NONE)
			str_addf(text, "%u", sp->gil.index);
		if (!gil && sp->cpu.waker != MODEL_NONE)
			str_addf(text, "<%u", m->threads.v[sp->cpu.waker].tid);
		str_addf(text, "%s%s%s%s ", sp->flags & SPAN_INFERRED_START ? "^" : "",
		         sp->flags & SPAN_INFERRED_END ? "!" : "",
		         sp->flags & SPAN_OPEN_END ? "/" : "", sp->flags & SPAN_LOST ? "x" : "");
	}
	str_addf(text, "%" PRIu64, lane->end_ns);
	return str_get(text);
}

/* ? unknown, N no GIL, H hold, W wait, S switch wait, F free wait, L lock wait, T stopped
 * by another thread that has stopped the world, X has stopped the world itself */
__attribute__((unused)) static const char *gil_lane(uint32_t tid)
{
	return thread(tid) ? lane_text(&thread(tid)->gil, "?NHWSFLTX", true) : "no such thread";
}

/* ? unknown, R running, r runnable, S asleep, D uninterruptible, G asleep for the GIL; <tid: woken
 * by that thread */
__attribute__((unused)) static const char *cpu_lane(uint32_t tid)
{
	return thread(tid) ? lane_text(&thread(tid)->cpu, "?RrSDG", false) : "no such thread";
}

/* "start:holder+waiters …": - is nobody, ? is unknown. */
__attribute__((unused)) static const char *owners(uint32_t gil)
{
	static struct str text;
	const struct model_gil *g = &m->gils.v[gil];

	str_done(&text);
	for (size_t i = 0; i < g->owners.n; i++) {
		const struct gil_owner *o = &g->owners.v[i];

		str_addf(&text, "%" PRIu64 ":", o->start_ns);
		if (o->thread < m->threads.n)
			str_addf(&text, "%u", m->threads.v[o->thread].tid);
		else
			str_addc(&text, o->thread == MODEL_NONE ? '-' : '?');
		if (o->waiters)
			str_addf(&text, "+%u", o->waiters);
		str_addc(&text, ' ');
	}
	str_addf(&text, "%" PRIu64, g->end_ns);
	return str_get(&text);
}

/* How long waiter waited while holder (or MODEL_NONE, MODEL_UNKNOWN) held a GIL, in all GILs. */
__attribute__((unused)) static uint64_t blame(uint32_t waiter, uint32_t holder)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < m->blame.n; i++) {
		const struct model_blame *b = &m->blame.v[i];
		uint32_t tid = b->holder < m->threads.n ? m->threads.v[b->holder].tid : b->holder;

		if (m->threads.v[b->waiter].tid == waiter && tid == holder)
			ns += b->wait_ns;
	}
	return ns;
}

/* The same for locks and stops of the world. */
__attribute__((unused)) static uint64_t lock_blame(uint32_t waiter, uint32_t by)
{
	for (size_t i = 0; i < m->lock_blame.n; i++) {
		const struct model_lock_blame *b = &m->lock_blame.v[i];
		uint32_t tid = b->by < m->threads.n ? m->threads.v[b->by].tid : b->by;

		if (m->threads.v[b->waiter].tid == waiter && tid == by)
			return b->wait_ns;
	}
	return 0;
}

#endif

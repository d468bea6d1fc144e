/* SPDX-License-Identifier: MIT */
/* Recordings with lost records: which states are unknown, and for how long. */
#include <inttypes.h>

#include "model/span.h"

#include "model-events.h"

static void test_wakeups(void)
{
	begin_whole();
	run(150, 7, 0);
	sched_out(200, 7, EV_STATE_INTERRUPTIBLE, 0);
	model_feed(m, &EV(.time_ns = 250, .cpu = 0, .type = EV_LOST, .flags = EVF_WAKEUPS,
	                  .lost = { .since_ns = 210, .count = 3 }));
	run(300, 7, 0);
	finish();
	is_str(gil_lane(7), "100:H^/ 1000", "lost wake-ups do not concern the GIL");
	is_str(cpu_lane(7), "100:? 150:R 200:S! 300:R 1000",
	       "lost wake-ups do not concern when a thread had a CPU; the sleep is marked");
	is_u64(m->caveats[CAVEAT_LOST], 3, "lost wake-ups are counted");
}

/*
 * A machine of two CPUs, four threads and one GIL that does something at random in each nanosecond.
 * The model of the events that remain after losses must not contain wrong states.
 */
#define CPUS    2
#define THREADS 4
#define STEPS   900

struct machine {
	uint32_t on[CPUS]; /* 0: idle */
	uint32_t holder;   /* 0: the GIL is free */
	bool waits[THREADS + 1], born[THREADS + 1];
	uint64_t now;
	VEC(struct event) events;
};

static uint32_t seed;

static uint32_t below(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 16) % n;
}

static void happens(struct machine *a, int32_t cpu, uint32_t i, enum event_type type)
{
	struct event ev = {
		.time_ns = a->now, .pid = 7, .tid = 6 + i, .cpu = cpu, .type = (uint16_t)type
	};

	if (type == EV_REQUEST || type == EV_RELEASE)
		ev.gil.address = GIL;
	if (type == EV_SWITCH_OUT && !a->waits[i] && below(2))
		ev.flags = EVF_PREEMPT;
	if (type == EV_FORK) {
		ev.fork.parent_pid = 7;
		ev.fork.parent_tid = 6 + a->on[cpu];
	}
	*vec_push(&a->events) = ev;
}

static void comes(struct machine *a, int32_t cpu)
{
	uint32_t i = 1 + below(THREADS);

	if (a->on[!cpu] == i || (!a->born[i] && !a->on[!cpu]))
		return;
	if (!a->born[i])
		happens(a, !cpu, i, EV_FORK);
	a->born[i] = true;
	a->on[cpu] = i;
	happens(a, cpu, i, EV_SWITCH_IN);
}

static void acts(struct machine *a, int32_t cpu)
{
	uint32_t i = a->on[cpu];

	if (!below(3)) {
		happens(a, cpu, i, EV_SWITCH_OUT);
		a->on[cpu] = 0;
	} else if (a->holder == i) {
		happens(a, cpu, i, EV_RELEASE);
		a->holder = 0;
	} else if (!a->waits[i]) {
		happens(a, cpu, i, EV_REQUEST);
		a->waits[i] = true;
	} else if (!a->holder) {
		happens(a, cpu, i, EV_ACQUIRE);
		a->holder = i;
		a->waits[i] = false;
	}
}

/* Thread 1 switches tracing on and holds the GIL; each of the others is born by the thread on the
 * other CPU when it first gets a CPU. */
static void run_machine(struct machine *a)
{
	*a = (struct machine){ .on = { 1, 0 }, .holder = 1, .born = { [1] = true }, .now = 100 };
	happens(a, 0, 1, EV_SWITCH_IN);
	while (++a->now < 100 + STEPS) {
		int32_t cpu = (int32_t)below(CPUS);

		if (a->on[cpu])
			acts(a, cpu);
		else
			comes(a, cpu);
	}
}

/* Each CPU's ring buffer is full from time to time. */
static struct model *model_of(const struct machine *a, uint32_t losses)
{
	struct model *model = model_new(&(struct model_options){ .start_ns = 100,
	                                                         .end_ns = 100 + STEPS,
	                                                         .start_pid = 7,
	                                                         .start_tid = 7,
	                                                         .all_releases = true });
	uint64_t lost[CPUS] = { 0 }, last_ns[CPUS] = { 100, 100 };
	bool full[CPUS] = { false };

	for (size_t i = 0; i < a->events.n; i++) {
		const struct event *ev = &a->events.v[i];

		if (losses && !below(full[ev->cpu] ? 8 : losses))
			full[ev->cpu] = !full[ev->cpu];
		if (full[ev->cpu]) {
			lost[ev->cpu]++;
			continue;
		}
		if (lost[ev->cpu])
			model_feed(model,
			           &(struct event){ .time_ns = ev->time_ns,
			                            .cpu = ev->cpu,
			                            .type = EV_LOST,
			                            .lost = { last_ns[ev->cpu], lost[ev->cpu] } });
		lost[ev->cpu] = 0;
		last_ns[ev->cpu] = ev->time_ns;
		model_feed(model, ev);
	}
	for (int32_t cpu = 0; cpu < CPUS; cpu++)
		if (lost[cpu])
			model_feed(model, &(struct event){ .time_ns = a->now,
			                                   .cpu = cpu,
			                                   .type = EV_LOST,
			                                   .lost = { last_ns[cpu], lost[cpu] } });
	model_finish(model);
	return model;
}

/* States assumed between two losses are marked. */
static bool is_assumed(const struct lane *lane, size_t i)
{
	return lane->spans.v[i].flags & SPAN_INFERRED_START && i + 1 < lane->spans.n &&
	       lane->spans.v[i + 1].flags & SPAN_LOST;
}

/* Whether the lane's thread lives at t. */
static bool lives(const struct lane *lane, uint64_t t)
{
	return t >= lane->spans.v[0].start_ns;
}

/* Whether a state is the true one; that a GIL was free may be lost. */
static bool states_agree(unsigned a, unsigned b, bool gil)
{
	if (gil && a == GIL_WAIT && b == GIL_FREE_WAIT)
		return true;
	return gil ? a == b : (a == CPU_RUNNING) == (b == CPU_RUNNING);
}

/* The number of the lane's spans with a wrong state; *known: ns of spans with a known state. */
static size_t untrue(const struct lane *lane, const struct lane *truth, bool gil, uint64_t *known)
{
	size_t wrong = 0;

	for (size_t i = 0; i < lane->spans.n; i++) {
		uint64_t end_ns = lane_span_end(lane, i);

		if (!lane->spans.v[i].state || is_assumed(lane, i))
			continue;
		*known += end_ns - lane->spans.v[i].start_ns;
		for (uint64_t t = lane->spans.v[i].start_ns; t < end_ns; t++)
			if (!lives(truth, t) ||
			    !states_agree(lane->spans.v[i].state,
			                  truth->spans.v[lane_at(truth, t)].state, gil)) {
				wrong++;
				break;
			}
	}
	return wrong;
}

static void test_machine(void)
{
	size_t gil = 0, cpu = 0, broken = 0, odd = 0, late = 0;
	uint64_t known = 0, lost = 0;
	struct error err;

	for (seed = 1; seed < 4000000000u; seed += 20000000) {
		uint32_t start = seed;
		struct machine machine;
		struct model *whole, *left;

		run_machine(&machine);
		whole = model_of(&machine, 0);
		left = model_of(&machine, 10 + below(90));
		broken += model_check(left, &err) < 0;
		for (size_t i = 0; i < left->threads.n; i++) {
			const struct model_thread *t = &left->threads.v[i];
			const struct model_thread *truth =
				&whole->threads.v[model_find_thread(whole, t->tid)];

			late += t->start_ns > truth->start_ns;
			gil += untrue(&t->gil, &truth->gil, true, &known);
			cpu += untrue(&t->cpu, &truth->cpu, false, &known);
		}
		for (size_t i = 0; i < CAVEAT_CODES; i++)
			odd += i == CAVEAT_TWO_HOLDERS || i == CAVEAT_RELEASE_NO_HOLD ||
			                       i == CAVEAT_ACQUIRE_NO_REQUEST ||
			                       i == CAVEAT_REQUEST_NO_ACQUIRE
			               ? left->caveats[i]
			               : 0;
		lost += left->caveats[CAVEAT_LOST];
		model_free(whole);
		model_free(left);
		vec_done(&machine.events);
		seed = start;
	}
	is_u64(broken, 0, "a random machine: the invariants hold with any losses");
	is_u64(late, 0, "a random machine: no life begins too late");
	is_u64(gil, 0, "a random machine: known GIL states are true");
	is_u64(cpu, 0, "a random machine: known CPU states are true");
	is_u64(odd, 0, "a random machine: there are no contradictions");
	ok(lost > 5000 && known > 400000, "%" PRIu64 " events are lost, %" PRIu64 " ns are known",
	   lost, known);
}

int main(void)
{
	test_wakeups();
	test_machine();
	model_free(m);
	names_free(names);
	return done_testing();
}

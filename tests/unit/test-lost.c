/* SPDX-License-Identifier: MIT */
/* Recordings with lost records: which states are unknown, and for how long. */
#include <inttypes.h>

#include "model/span.h"

#include "model-events.h"

/* One of two recordings loses records: states known from the other remain known. */
static void test_part(void)
{
	begin_whole();
	run(110, 7, 0);
	release(120, 7);
	request(150, 7);
	acquire(160, 7);
	loses_part(130, 200, EVF_NO_GIL);
	release(300, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 120:N 150:F 160:H 300:N 1000",
	       "if switches are lost, the GIL lane is known");
	is_str(cpu_lane(7), "100:? 110:R 130:?x 200:R^ 1000",
	       "if switches are lost, the CPU lane is unknown");

	begin_whole();
	run(110, 7, 0);
	release(120, 7);
	loses_part(130, 200, EVF_GIL_ONLY);
	release(300, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 120:N 130:?x 200:H^ 300:N 1000",
	       "if GIL events are lost, the GIL lane is unknown");
	is_str(cpu_lane(7), "100:? 110:R 1000", "if GIL events are lost, the CPU lane is known");
}

static void test_cpu(void)
{
	begin_whole();
	new_thread(110, 8, 7);
	release(120, 7);
	run(125, 8, 1);
	request(130, 8);
	acquire(140, 8);
	cpu_now = 0;
	request(150, 7);
	loses(145, 200, 1, 50);
	acquire(300, 7);
	release(310, 7);
	cpu_now = 1;
	request(400, 8);
	acquire(410, 8);
	release(420, 8);
	finish();
	is_str(gil_lane(8), "110:N 130:F 140:H! 145:?x 200:N^ 400:F 410:H 420:N 1000",
	       "the state of a thread on a CPU with lost records is unknown");
	is_str(gil_lane(7), "100:H^ 120:N 150:W 300:H 310:N 1000",
	       "the state of a thread that stays on another CPU is known");
	is_str(owners(0),
	       "100:7 120:- 130:- 140:8 145:? 150:?+1 200:-+1 300:7 310:- 400:- 410:8 420:- "
	       "1000",
	       "a GIL that an unknown thread may hold is not free");
	is_u64(blame(7, MODEL_UNKNOWN), 50, "a wait for it is charged to an unknown thread");
	is_u64(m->caveats[CAVEAT_LOST], 50, "lost records are counted");
	is_u64(m->lost.v[0].start_ns, 145, "the loss has its start");

	begin_whole();
	new_thread(110, 8, 7);
	release(120, 7);
	loses(50, 200, -1, 1);
	release(300, 7);
	finish();
	is_str(gil_lane(7), "100:?x 200:H^ 300:N 1000",
	       "a loss on an unknown CPU concerns all threads");
	is_str(gil_lane(8), "110:?x 1000", "a loss concerns a thread only while it lives");
	is_u64(m->caveats[CAVEAT_RELEASE_NO_HOLD], 0,
	       "a release after a loss is not another caveat");

	begin_whole();
	new_thread(110, 8, 7);
	ends(150, 8);
	loses(140, 200, -1, 1);
	finish();
	is_str(lane_text(&m->threads.v[1].gil, "?NHWS", true), "110:N 140:?x 150",
	       "a thread that ended during the loss is unknown at its end");
}

/* 8 requests the GIL on CPU 1, and leaves that CPU at left until back; CPU 0 loses records from
 * since to 200. */
static void waiter(uint64_t left, uint64_t since, uint64_t back)
{
	begin_whole();
	new_thread(110, 8, 7);
	run(120, 8, 1);
	request(130, 8);
	if (left < 200)
		leaves(left, 8);
	loses(since, 200, 0, 5);
	if (left > 200)
		leaves(left, 8);
	run(back, 8, 1);
	acquire(310, 8);
	finish();
}

/* A thread that was off CPU may have been on the CPU whose records are missing. */
static void test_moves(void)
{
	waiter(140, 150, 300);
	is_str(gil_lane(8), "110:N 130:W 150:?x 200:W^ 310:H/ 1000",
	       "a sleeping thread may have been on the lost CPU");
	is_str(cpu_lane(8), "110:r<7 120:R 140:G 150:?x 200:G^! 300:R 1000",
	       "it may have slept again");
	waiter(210, 135, 300);
	is_str(gil_lane(8), "110:N 130:W 310:H/ 1000",
	       "a thread is known until it leaves its own CPU");
	waiter(160, 150, 210);
	is_str(gil_lane(8), "110:N 130:W 160:?x 200:W^ 310:H/ 1000",
	       "it is unknown from when it leaves its CPU");
}

/* Any thread may hold the GIL at 200. */
static void begin_lossy(void)
{
	begin_whole();
	new_thread(110, 8, 7);
	release(120, 7);
	loses(130, 200, -1, 5);
}

/* The next event of a thread is possible in one state only. */
static void test_proof(void)
{
	begin_lossy();
	release(300, 8);
	request(310, 7);
	finish();
	is_str(gil_lane(8), "110:N 130:?x 200:H^ 300:N 1000",
	       "a release proves that the thread held the GIL");
	is_str(gil_lane(7), "100:H^ 120:N 130:?x 200:N^ 310:W/ 1000",
	       "a request proves that the thread did not hold the GIL");

	begin_lossy();
	acquire(250, 7);
	release(260, 7);
	release(300, 8);
	finish();
	is_str(gil_lane(8), "110:N 130:?x 300:N 1000",
	       "a release proves nothing before another thread's hold");
	is_str(owners(0), "100:7 120:- 130:? 200:?+1 250:7 260:? 300:- 1000",
	       "the GIL never has two holders");

	begin();
	new_thread(110, 8, 7);
	release(120, 7);
	loses(130, 200, -1, 5);
	request(300, 8);
	finish();
	is_str(gil_lane(8), "110:N 130:?x 300:W/ 1000",
	       "if releases may be missing, a request does not prove that the thread had no GIL");

	begin_whole();
	run(150, 7, 0);
	loses(160, 200, -1, 5);
	leaves(300, 7);
	finish();
	is_str(cpu_lane(7), "100:? 150:R 160:?x 200:R^ 300:S 1000",
	       "a switch-out proves that the thread was on a CPU");
}

/* Between losses no record is missing, so a thread that sleeps before and after them sleeps between
 * them. */
static void test_between(void)
{
	begin_whole();
	release(120, 7);
	leaves(130, 7);
	loses(200, 210, 0, 5);
	loses(300, 310, 1, 5);
	loses(400, 410, 1, 5);
	run(500, 7, 1);
	request(510, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 120:N 200:?x 210:N^ 300:?x 310:N^ 400:?x 410:N^ 510:W/ 1000",
	       "between losses the thread is without the GIL");
	is_str(cpu_lane(7), "100:R 130:S 200:?x 210:S^ 300:?x 310:S^ 400:?x 410:S^! 500:R 1000",
	       "between losses the thread is without a CPU");

	begin_whole();
	release(120, 7);
	leaves(130, 7);
	loses(200, 210, 0, 5);
	loses(300, 310, 1, 5);
	acquire(500, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 120:N 200:?x 310:W^ 500:H/ 1000",
	       "the assumption is withdrawn if the thread has requested the GIL");
	is_str(cpu_lane(7), "100:R 130:S 200:?x 310:R^ 1000",
	       "the assumption is withdrawn if the thread was running");
}

/* 7 takes the GIL at 140 on CPU 0; 8 is on CPU 1. */
static void turn_of_7(void)
{
	begin_whole();
	new_thread(110, 8, 7);
	run(115, 8, 1);
	cpu_now = 0;
	release(120, 7);
	request(130, 7);
	acquire(140, 7);
}

/* Losses are reported late; they explain earlier contradictions. */
static void test_late(void)
{
	turn_of_7();
	cpu_now = 1;
	release(250, 8);
	loses(150, 300, 0, 5);
	loses(160, 310, 1, 5);
	finish();
	is_u64(m->caveats[CAVEAT_TWO_HOLDERS], 0,
	       "a contradiction within a loss that is reported later does not count");

	begin_whole();
	new_thread(110, 8, 7);
	run(115, 8, 1);
	request(120, 8);
	cpu_now = 0;
	ends(250, 8);
	loses(150, 300, 1, 5);
	finish();
	is_u64(m->caveats[CAVEAT_REQUEST_NO_ACQUIRE], 0,
	       "an exit during a wait within a loss does not count");

	turn_of_7();
	loses(150, 200, 1, 5);
	cpu_now = 1;
	release(250, 8);
	cpu_now = 0;
	request(400, 7);
	finish();
	is_u64(m->caveats[CAVEAT_TWO_HOLDERS], 0, "a lost acquire is not a contradiction");
	is_str(gil_lane(8), "110:N 150:?x 250:N 1000", "the start of the new hold is unknown");
	is_str(gil_lane(7), "100:H^ 120:N 130:F 140:H! 150:?x 250:N^ 400:W/ 1000",
	       "the end of the previous hold is unknown");

	turn_of_7();
	cpu_now = 1;
	release(250, 8);
	loses(260, 300, 1, 5);
	finish();
	is_u64(m->caveats[CAVEAT_TWO_HOLDERS], 1, "a later loss explains nothing");

	begin_whole();
	release(200, 7);
	loses(300, 1200, 0, 5);
	loses(1100, 1300, 0, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 200:N 300:?x 1000",
	       "a loss that is reported after the end is applied");
	is_u64(m->caveats[CAVEAT_LOST], 5, "a loss that began after the end is not counted");
}

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
	test_part();
	test_cpu();
	test_moves();
	test_proof();
	test_between();
	test_late();
	test_wakeups();
	test_machine();
	model_free(m);
	names_free(names);
	return done_testing();
}

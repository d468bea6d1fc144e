/* SPDX-License-Identifier: MIT */
/*
 * Blame: by hand, and against programs whose true states are known in each nanosecond, because the
 * test itself simulates the threads and the lock.
 */
#include "analysis/facts.h"

#include "model-events.h"

/* Thread 8 has to wait until it gets a CPU, the second time. */
static void test_no_cpu(void)
{
	uint64_t ms = 1000000;

	begin_with(&(struct model_options){
		.start_ns = ms, .end_ns = 9 * ms, .start_pid = 7, .start_tid = 7 });
	new_thread(ms, 8, 7);
	request(2 * ms, 8);
	release(3 * ms, 7);
	acquire(3 * ms + 100000, 8);
	release(4 * ms, 8);
	request(4 * ms, 7);
	acquire(4 * ms, 7);
	request(5 * ms, 8);
	release(6 * ms, 7);
	acquire(8 * ms, 8);
	finish();
	is_u64(m->blame.n, 2, "a waiter has a row for its handovers");
	is_u64(m->blame.v[0].holder == MODEL_NONE ? m->blame.v[0].no_cpu_ns
	                                          : m->blame.v[1].no_cpu_ns,
	       2 * ms, "with the time in which it had no CPU");
	is_u64(m->blame.v[0].holder == MODEL_NONE ? m->blame.v[1].no_cpu_ns
	                                          : m->blame.v[0].no_cpu_ns,
	       0, "which a holder's row does not have");
	is_u64(blame(8, MODEL_NONE), 2 * ms + 100000, "the row has all of them");
}

static void test_longest(void)
{
	const struct model_blame *b = NULL;

	begin();
	new_thread(110, 8, 7);
	new_thread(110, 9, 7);
	request(120, 8);
	request(150, 9);
	release(200, 7);
	acquire(210, 9);
	release(220, 9);
	acquire(225, 8);
	release(300, 8);
	finish();
	for (size_t i = 0; i < m->blame.n; i++)
		if (m->threads.v[m->blame.v[i].waiter].tid == 8 && m->blame.v[i].holder == 0)
			b = &m->blame.v[i];
	if (!ok(b != NULL, "thread 8 has a row for waiting for thread 7"))
		return;
	is_u64(b->longest_ns, 80,
	       "a wait during one hold is one overlap, even if another thread begins to wait");
	is_u64(b->longest_at_ns, 120, "the overlap begins with the wait");
}

/* A thread that takes a free GIL n times, in ns each, within 10,000 ns. */
static void take_free(int n, int ns)
{
	begin_with(&(struct model_options){
		.start_ns = 100, .end_ns = 10000, .start_pid = 7, .start_tid = 7 });
	run(150, 7, 0);
	release(200, 7);
	for (int i = 0; i < n; i++) {
		request(300 + i * 400, 7);
		acquire(300 + i * 400 + ns, 7);
		release(400 + i * 400 + ns, 7);
	}
	finish();
}

static void test_probe_cost(void)
{
	take_free(20, 140);
	ok(thread(7)->gil_events == 61 && thread(7)->probe_cost_ns == 61 * (136 - 100),
	   "each event costs the time by which free waits are longer than without probes");
	is_u64(m->caveats[CAVEAT_PROBE_COST], 1,
	       "a thread with a large share of probe cost is counted");
	is_u64(m->caveats[CAVEAT_PROBES_SLOW], 1,
	       "a program with a large share of probe cost in its CPU time is counted");
	take_free(20, 90);
	is_u64(thread(7)->probe_cost_ns, 0, "a GIL taken as fast as without probes costs nothing");
	is_u64(m->caveats[CAVEAT_PROBE_COST] + m->caveats[CAVEAT_PROBES_SLOW], 0,
	       "a thread without probe cost is not counted");
	take_free(10, 140);
	is_u64(thread(7)->probe_cost_ns, 0, "a few free waits give no estimate");
}

/* A turn each 20 ns until the probes are removed at 1000, and then one each 4 ns. */
static void test_slowdown(void)
{
	const struct model_options options = { .start_ns = 100,
		                               .end_ns = 21000,
		                               .start_pid = 7,
		                               .start_tid = 7,
		                               .turn_ns = 107,
		                               .probes_end_ns = 15000 };
	struct slowdown s;

	begin_with(&options);
	for (uint64_t t = 120; t < 21000; t += t < 15000 ? 20 : 4) {
		release(t, 7);
		request(t + 1, 7);
		acquire(t + 2, 7);
	}
	finish();
	is_u64(thread(7)->probe_turns, 744, "turns count until the probes are removed");
	is_u64(thread(7)->probe_cost_ns, 744 * 7, "a turn costs what was measured, minus 100 ns");
	is_u64(m->caveats[CAVEAT_PROBES_SLOW], 0,
	       "no other engine is recommended where it was used");
	ok(slowdown_find(&s, m) && s.inferred, "the slowdown is inferred from the rate of turns");
	is_u64(s.own_ns, 744 * 7, "its exact part are the events");
	ok(s.lost_ns > 11900 && s.lost_ns < 11950 && s.ratio > 2.3 && s.ratio < 2.4,
	   "744 turns would have taken 2976 ns instead of 14,900 (%d, %.2f)", (int)s.lost_ns,
	   s.ratio);
	m->threads.v[0].calls_cost_ns = 1000;
	ok(slowdown_find(&s, m) && s.lost_ns > 12900 && s.own_ns == 744 * 7 + 1000,
	   "recorded calls add to it");
	m->probes_end_ns = 0;
	ok(slowdown_find(&s, m) && !s.inferred && s.lost_ns == s.own_ns,
	   "otherwise, only the exact part is known");
	m->threads.v[0].probe_cost_ns = 0;
	m->threads.v[0].calls_cost_ns = 900;
	ok(!slowdown_find(&s, m), "less than 5 percent is not told");
}

static void test_gils(void)
{
	begin();
	new_thread(110, 8, 7);
	new_thread(110, 9, 7);
	gil_now = 0x9000;
	request(120, 8);
	acquire(121, 8);
	request(130, 9);
	gil_now = GIL;
	release(200, 7);
	finish();
	is_u64(blame(9, 8), 870, "a wait is charged to the holder of the same GIL");
	is_u64(blame(9, 7), 0, "the holder of another GIL is not charged");

	begin();
	new_thread(110, 8, 7);
	request(120, 8);
	release(130, 7);
	acquire(140, 8);
	release(150, 8);
	gil_now = 0x9000;
	request(160, 7);
	acquire(160, 7);
	request(170, 8);
	release(200, 7);
	acquire(200, 8);
	gil_now = GIL;
	finish();
	is_u64(blame(8, 7), 10 + 30, "blame for two GILs of the same holder adds up");
	ok(m->blame.n == 3 && m->blame.v[0].gil == 0 && m->blame.v[2].gil == 1 &&
	           m->blame.v[2].wait_ns == 30,
	   "each row is about one GIL");
}

#define THREADS 5
#define LIFE    4000

/* The true state of each thread in each nanosecond. */
static char truth[THREADS][LIFE];
static uint64_t seed;

static uint32_t next_random(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(seed >> 33) % n;
}

/* Simulates one program of random threads on one lock: feeds events to the model, and writes the
 * true states to the table. */
static void play(void)
{
	char state[THREADS] = "HNNNN";
	bool asked[THREADS] = { false };
	int holder = 0;

	begin_with(&(struct model_options){
		.start_ns = 100, .end_ns = LIFE, .start_pid = 7, .start_tid = 7 });
	for (uint32_t i = 1; i < THREADS; i++)
		new_thread(100, 7 + i, 7);
	for (uint64_t t = 100; t < LIFE; t++) {
		uint32_t i = next_random(THREADS);

		if (next_random(12) || t == 100) {
			;
		} else if (state[i] == 'N') {
			request(t, 7 + i);
			state[i] = 'W';
		} else if (state[i] == 'W' && holder < 0) {
			acquire(t, 7 + i);
			state[i] = 'H';
			holder = (int)i;
		} else if (state[i] == 'H') {
			if (next_random(2))
				release(t, 7 + i);
			else
				save(t, 7 + i);
			state[i] = 'n';
			holder = -1;
			asked[i] = memchr(state, 'W', THREADS);
		} else if (state[i] == 'n' && next_random(2)) {
			/* If a thread waited, the time since the release was a switch wait. */
			for (uint64_t at = t; truth[i][at - 1] == 'n'; at--)
				truth[i][at - 1] = asked[i] ? 'S' : 'N';
			released(t, 7 + i);
			state[i] = 'N';
		} else if (state[i] == 'n') {
			request(t, 7 + i);
			state[i] = 'W';
		}
		for (uint32_t j = 0; j < THREADS; j++)
			truth[j][t] = state[j];
	}
}

/* Completed waits during which no thread held the GIL are free waits. */
static void find_free_waits(uint32_t i)
{
	for (uint64_t from = 100, t; from < LIFE; from = t + 1) {
		bool held = false;

		for (t = from; t < LIFE && truth[i][t] == 'W'; t++)
			for (uint32_t j = 0; j < THREADS; j++)
				held |= truth[j][t] == 'H';
		if (!held && t < LIFE)
			memset(&truth[i][from], 'F', t - from);
	}
}

static uint64_t lane_errors(uint32_t i)
{
	const struct lane *lane = &m->threads.v[i].gil;
	uint64_t errors = 0;
	size_t at = 0;

	for (uint64_t t = 100; t < LIFE; t++) {
		char want = truth[i][t] == 'n' ? 'N' : truth[i][t];

		while (at + 1 < lane->spans.n && lane->spans.v[at + 1].start_ns <= t)
			at++;
		errors += "?NHWSF"[lane->spans.v[at].state] != want;
	}
	return errors;
}

static uint64_t blame_errors(uint32_t waiter)
{
	uint64_t ns[THREADS + 1] = { 0 }, errors = 0;

	for (uint64_t t = 100; t < LIFE; t++) {
		uint32_t holder = 0;

		while (holder < THREADS && truth[holder][t] != 'H')
			holder++;
		ns[holder] += truth[waiter][t] == 'W';
	}
	for (uint32_t i = 0; i <= THREADS; i++)
		errors += blame(7 + waiter, i < THREADS ? 7 + i : MODEL_NONE) != ns[i];
	return errors;
}

static void test_truth(void)
{
	uint64_t lanes = 0, rows = 0, unknown = 0, broken = 0, charged = 0;

	for (unsigned program = 0; program < 300; program++) {
		struct error err = { 0 };

		seed = program;
		play();
		for (uint32_t i = 0; i < THREADS; i++)
			find_free_waits(i);
		model_finish(m);
		broken += model_check(m, &err) < 0;
		for (uint32_t i = 0; i < THREADS; i++) {
			lanes += lane_errors(i);
			rows += blame_errors(i);
			unknown += m->threads.v[i].gil_ns[GIL_UNKNOWN];
			charged += blame(7 + i, 7 + (i + 1) % THREADS);
		}
	}
	is_u64(lanes, 0, "in 300 programs of 5 threads, the state of each nanosecond is right");
	is_u64(rows, 0, "every blame row is the time that the other thread held the GIL");
	is_u64(unknown, 0, "no time is unknown");
	is_u64(broken, 0, "the invariants hold");
	ok(charged > 10000, "the test charged enough waiting: %" PRIu64 " ns", charged);
}

int main(void)
{
	test_no_cpu();
	test_longest();
	test_probe_cost();
	test_slowdown();
	test_gils();
	test_truth();
	model_free(m);
	names_free(names);
	return done_testing();
}

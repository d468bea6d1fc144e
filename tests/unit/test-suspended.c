/* SPDX-License-Identifier: MIT */
/* The time in which a process was stopped by a signal counts for nothing, and threads that slept
 * throughout have a state although they have no events. */
#include "analysis/facts.h"

#include "columns.h"
#include "model-events.h"

static const struct model_suspension when[] = { { 300, 500 }, { 600, 700 } };

static void begin_suspended(size_t count)
{
	begin_with(&(struct model_options){ .start_ns = 100,
	                                    .end_ns = 1000,
	                                    .start_pid = 7,
	                                    .start_tid = 7,
	                                    .suspended = when,
	                                    .suspended_count = count });
	new_thread(110, 8, 7);
	request(200, 8);
}

/* 7 holds the GIL and 8 waits for it while their process is stopped. */
static void test_hold(void)
{
	double unknown, hold;

	begin_suspended(1);
	run(110, 8, 0);
	release(700, 7);
	acquire(720, 8);
	finish();
	is_str(gil_lane(7), "100:H^/ 300:? 500:H^ 700:N 1000", "the hold is cut out");
	is_str(gil_lane(8), "110:N 200:W/ 300:? 500:W^ 720:H/ 1000", "and so is the wait");
	is_u64(thread(7)->gil_ns[GIL_HOLD], 400, "what is left of the hold counts");
	is_u64(blame(8, 7), 300, "what is left of the wait is charged");
	is_u64(blame(8, MODEL_NONE), 20, "and so is the hand-off");
	is_u64(m->gils.v[0].wanted_ns, 320, "nobody wanted the GIL meanwhile");
	is_u64(thread(8)->suspended_ns, 200, "its length is known");
	is_u64(m->suspended_ns, 200, "also that of all suspensions");
	unknown = column_percent(m, THREADS_GIL, PHRASE_h_unknown, thread(7));
	hold = column_percent(m, THREADS_GIL, PHRASE_h_has_gil, thread(7));
	ok(unknown >= 0 && unknown <= 0 && hold > 57.1 && hold < 57.2,
	   "the shares are those of the rest");
	is_u64(facts_totals(m).unknown_ns, 0, "it is not unknown time");
	is_str(cpu_lane(8), "110:r<7 200:R 300:? 500:R 1000",
	       "the states on the CPUs are cut, too");
}

/* An event shows that the process ran: it was continued before we were told. */
static void test_late(void)
{
	begin_suspended(2);
	release(450, 7);
	acquire(460, 8);
	finish();
	is_str(gil_lane(7), "100:H^/ 300:? 450:N 600:? 700:N 1000",
	       "a suspension ends at the first event");
	is_u64(m->suspended_ns, 250, "only the rest of it counts");
}

/* We may learn of the signal before the program is stopped. */
static void test_early(void)
{
	begin_suspended(1);
	release(310, 7);
	acquire(320, 8);
	finish();
	is_str(gil_lane(7), "100:H^ 310:N 320:? 500:N 1000",
	       "a suspension begins after the last event before it");
	is_u64(m->suspended_ns, 180, "only the rest of it counts");
}

/* Another process is not stopped with it. */
static void test_other(void)
{
	begin_suspended(1);
	new_process(210, 20, 7);
	pid_now = 20;
	gil_now = GIL + 8;
	request(220, 20);
	acquire(220, 20);
	finish();
	is_u64(thread(20)->gil_ns[GIL_HOLD], 790, "a process that ran goes on");
	is_u64(thread(20)->suspended_ns, 0, "it was not suspended");
}

static const struct model_suspension whole = { 100, 1000 };

static void begin_asleep(const struct model_slept *slept, size_t count, bool stopped)
{
	begin_with(&(struct model_options){ .start_ns = 100,
	                                    .end_ns = 1000,
	                                    .start_pid = 7,
	                                    .suspended = &whole,
	                                    .suspended_count = stopped,
	                                    .slept = slept,
	                                    .slept_count = count });
	is_called(50, 7, "main");
	is_called(60, 8, "other");
}

static void begin_held(void)
{
	begin_with(&(struct model_options){
		.start_ns = 100, .end_ns = 1000, .start_pid = 7, .holder_tid = 8 });
	is_called(50, 7, "main");
	is_called(60, 8, "other");
}

static void test_held(void)
{
	begin_held();
	finish();
	is_u64(thread(8)->gil_ns[GIL_HOLD], 900,
	       "without an event, the holder had the GIL throughout");
	is_u64(thread(7)->gil_ns[GIL_UNKNOWN], 900, "what the other thread did is unknown");
	ok(thread(8)->held && !thread(7)->held, "the verdict may say so");
	is_u64(m->caveats[CAVEAT_NO_GIL_EVENTS], 0, "no probe is to blame");

	begin_held();
	acquire(500, 7);
	finish();
	ok(!thread(8)->held && !thread(8)->gil_ns[GIL_HOLD], "events are believed");
}

static void test_asleep(void)
{
	static const struct model_slept slept[] = { { 7, 7, 'S', true }, { 7, 8, 'D', false } };
	static const struct model_slept stopped[] = { { 7, 7, 'T', false }, { 7, 8, 'T', false } };

	begin_asleep(slept, 2, false);
	finish();
	is_str(gil_lane(7), "100:N 1000", "asleep without the GIL");
	is_str(cpu_lane(7), "100:S 1000", "asleep throughout");
	is_str(gil_lane(8), "100:? 1000", "whether it had the GIL is unknown");
	is_str(cpu_lane(8), "100:D 1000", "uninterruptible throughout");
	ok(m->idle, "the program was idle");
	is_u64(m->caveats[CAVEAT_NO_GIL_EVENTS], 0, "so no probe is to blame");

	begin_asleep(slept, 1, false);
	finish();
	is_str(cpu_lane(8), "100:? 1000", "nothing is known of the other thread");
	ok(!m->idle, "so the program may have done something");
	is_u64(m->caveats[CAVEAT_NO_GIL_EVENTS], 1, "without any GIL event");

	begin_asleep(slept, 2, false);
	acquire(500, 8);
	release(600, 8);
	finish();
	is_str(gil_lane(7), "100:N 1000", "a parent sleeps while others run");
	ok(thread(8)->gil_ns[GIL_HOLD] && !m->idle, "events are believed");

	begin_asleep(stopped, 2, true);
	finish();
	ok(m->idle && m->suspended_ns == 900, "a program that was stopped throughout");
	is_u64(facts_totals(m).unknown_ns, 0, "has no unknown time");
}

int main(void)
{
	test_asleep();
	test_held();
	test_hold();
	test_late();
	test_early();
	test_other();
	return done_testing();
}

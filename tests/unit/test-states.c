/* SPDX-License-Identifier: MIT */
/* CPU lanes: unusual orders of switches, wake-ups, forks and exits. */
#include "model-events.h"

#include "trace/stacks.h"

static void test_switches(void)
{
	begin();
	leaves(200, 7);
	wakes(300, 8, 7);
	run(310, 7, 1);
	preempted(400, 7);
	run(450, 7, 0);
	finish();
	is_str(cpu_lane(7), "100:R 200:S 300:r 310:R 400:r 450:R 1000",
	       "a thread runs until it leaves, sleeps until it is woken, and is runnable until it "
	       "runs");
	is_u64(thread(7)->cpu_ns[CPU_RUNNING], 100 + 90 + 550, "running time is summed");
	is_u64(thread(7)->cpu_ns[CPU_RUNNABLE], 10 + 50, "runnable time is summed");
	is_u64(thread(7)->cpu_ns[CPU_SLEEPING], 100, "sleep is summed");
	is_u64((uint64_t)thread(7)->cpu.spans.v[3].cpu.number, 1, "the CPU is known");
	is_u64(m->caveats[CAVEAT_NO_TRACEPOINTS], 1,
	       "a recording without sched_switch, so without S and D, has a caveat");
}

static void test_wakers(void)
{
	begin();
	new_thread(120, 8, 7);
	run(130, 8, 1);
	leaves(200, 7);
	wakes(250, 8, 7);
	wakes(260, 8, 7);
	run(270, 7, 0);
	wakes(280, 8, 7);
	wakes(290, 8, 99);
	finish();
	is_str(cpu_lane(7), "100:R 200:S 250:r<8 270:R 1000",
	       "the waker is known; a second wake-up, or one of a running thread, is ignored");
	is_str(cpu_lane(8), "120:r<7 130:R 1000", "a new thread is runnable, woken by its parent");
	is_u64(m->threads.n, 2, "a wake-up by an unknown thread does not add a thread");
}

static void test_unseen(void)
{
	begin();
	leaves(200, 7);
	run(300, 7, 0);
	leaves(400, 7);
	wakes(410, 8, 7);
	run(420, 7, 0);
	finish();
	is_str(cpu_lane(7), "100:R 200:S! 300:R 400:S 410:r 420:R 1000",
	       "the end of a sleep without a wake-up is inferred");
	is_u64(m->caveats[CAVEAT_UNSEEN_WAKEUPS], 1, "an unseen wake-up is a caveat");

	begin_with(&(struct model_options){ .start_ns = 100,
	                                    .end_ns = 1000,
	                                    .start_pid = 7,
	                                    .start_tid = 7,
	                                    .all_wakeups = true });
	leaves(200, 7);
	run(300, 7, 0);
	wakes(310, 8, 7);
	finish();
	is_u64(m->caveats[CAVEAT_UNSEEN_WAKEUPS], 0,
	       "with all wake-ups recorded it is not an unseen wake-up");
	is_u64(m->caveats[CAVEAT_MISSED_WAKEUPS], 1,
	       "with all wake-ups recorded it is a missed wake-up");

	begin();
	run(200, 7, -1);
	cpu_now = 1;
	release(300, 7);
	finish();
	is_u64((uint64_t)thread(7)->cpu.spans.v[1].cpu.number, 1,
	       "a switch-in without a CPU gets it from the next event");
}

static void test_first_events(void)
{
	begin();
	run(150, 8, 1);
	leaves(160, 9);
	wakes(170, 7, 10);
	run(180, 10, 0);
	request(190, 11);
	wakes(200, 7, 12);
	finish();
	is_str(cpu_lane(8), "100:? 150:R 1000",
	       "before its first switch-in a thread's state is unknown");
	is_str(cpu_lane(9), "100:R 160:S 1000", "before its first switch-out a thread was running");
	is_str(cpu_lane(11), "100:R 1000", "before its first own event a thread was running");
	is_str(cpu_lane(7), "100:R 1000", "the thread that started tracing was running");

	begin();
	is_called(50, 10, "old");
	wakes(170, 7, 10);
	run(180, 10, 0);
	finish();
	is_str(cpu_lane(10), "100:S 170:r<7 180:R 1000",
	       "before its first wake-up a thread was asleep");

	begin();
	request(200, 7);
	wakes(300, 8, 7);
	finish();
	is_str(cpu_lane(7), "100:? 1000", "without any switch the CPU states are unknown");
	is_u64(thread(7)->cpu_ns[CPU_UNKNOWN], 900, "all of its time is unknown");
}

static void test_reasons(void)
{
	begin();
	sched_out(200, 7, EV_STATE_UNINTERRUPTIBLE, 0);
	leaves(201, 7);
	run(300, 7, 0);
	sched_out(400, 7, EV_STATE_INTERRUPTIBLE, 0);
	leaves(401, 7);
	run(500, 7, 0);
	sched_out(600, 7, EV_STATE_RUNNING, 0);
	preempted(601, 7);
	run(700, 7, 0);
	sched_out(710, 7, 0x100, 0);
	run(720, 7, 0);
	finish();
	is_str(cpu_lane(7), "100:R 200:D! 300:R 400:S! 500:R 600:r 700:R 710:r 720:R 1000",
	       "sched_switch has the reason, and the switch-out after it adds nothing");
	is_u64(m->caveats[CAVEAT_NO_TRACEPOINTS], 0, "with sched_switch there is no caveat");

	begin();
	leaves(200, 7);
	sched_out(201, 7, EV_STATE_UNINTERRUPTIBLE, 0);
	wakes(250, 8, 7);
	run(300, 7, 0);
	leaves(400, 7);
	wakes(401, 8, 7);
	sched_out(402, 7, EV_STATE_UNINTERRUPTIBLE, 0);
	finish();
	is_str(cpu_lane(7), "100:R 200:D 250:r 300:R 400:D 401:r 1000",
	       "the other order works, too, even with a wake-up in between");

	begin();
	sched_out(200, 7, EV_STATE_INTERRUPTIBLE, 0);
	wakes(205, 8, 7);
	leaves(210, 7);
	run(300, 7, 0);
	finish();
	is_str(cpu_lane(7), "100:R 200:S 205:r 300:R 1000",
	       "a thread that is woken while it leaves is runnable");
}

static void test_gil_sleep(void)
{
	begin();
	release(110, 7);
	request(200, 7);
	leaves(210, 7);
	run(300, 7, 0);
	preempted(310, 7);
	run(320, 7, 0);
	sched_out(330, 7, EV_STATE_UNINTERRUPTIBLE, 0);
	run(340, 7, 0);
	acquire(350, 7);
	leaves(400, 7);
	finish();
	is_str(cpu_lane(7), "100:R 210:G! 300:R 310:r 320:R 330:D! 340:R 400:S 1000",
	       "a sleep during a wait is for the GIL; being preempted or uninterruptible is not");
	is_u64(thread(7)->cpu_ns[CPU_GIL_SLEEP], 90, "sleep for the GIL is summed");
}

static void test_stacks(void)
{
	struct stacks *stacks;
	uint32_t other, take;

	begin();
	stacks = stacks_new(names);
	other = stacks_id(stacks, &(struct stack_frame){ .name = names_id(names, "read", 4) });
	take = stacks_id(stacks, &(struct stack_frame){ .name = names_id(names, "take_gil", 8),
	                                                .flags = STACK_TAKE_GIL });
	take = stacks_id(stacks, &(struct stack_frame){ .name = names_id(names, "futex", 5),
	                                                .parent = take });
	begin_with(&(struct model_options){ .start_ns = 100,
	                                    .end_ns = 1000,
	                                    .start_pid = 7,
	                                    .start_tid = 7,
	                                    .stacks = stacks });
	sched_out(200, 7, EV_STATE_INTERRUPTIBLE, take);
	leaves(201, 7);
	run(300, 7, 0);
	sched_out(400, 7, EV_STATE_INTERRUPTIBLE, other);
	run(500, 7, 0);
	leaves(600, 7);
	sched_out(601, 7, EV_STATE_INTERRUPTIBLE, take);
	finish();
	is_str(cpu_lane(7), "100:R 200:G! 300:R 400:S! 500:R 600:G 1000",
	       "with stacks a sleep under take_gil is for the GIL");
	is_u64(thread(7)->cpu.spans.v[1].cpu.stack, take, "the span has its stack");
	is_u64(thread(7)->cpu.spans.v[3].cpu.stack, other, "each span has its own stack");
	is_u64(thread(7)->cpu.spans.v[2].cpu.stack, 0, "a running span has no stack");
	stacks_free(stacks);
}

static void test_lives(void)
{
	begin();
	new_thread(200, 8, 7);
	run(210, 8, 1);
	ends(300, 8);
	leaves(310, 8);
	wakes(320, 7, 8);
	finish();
	is_str(cpu_lane(8), "200:r<7 210:R 300", "a switch-out after the exit is ignored");
	is_u64(m->threads.n, 2, "events after the exit do not add a thread");

	begin();
	new_thread(200, 8, 7);
	run(210, 8, 1);
	new_thread(300, 8, 7);
	finish();
	is_str(cpu_lane(8), "300:r<7 1000", "a missing exit is replaced by the next birth");

	begin();
	new_thread(200, 8, 7);
	run(210, 8, 1);
	loses(250, 300, 1, 5);
	preempted(400, 8);
	finish();
	is_str(cpu_lane(8), "200:r<7 210:R 250:?x 300:R^ 400:r 1000",
	       "during lost records the state is unknown");
	is_u64(thread(8)->cpu_ns[CPU_UNKNOWN], 50, "only the loss is unknown");
}

/* An event of a thread that seemed to sleep: it runs, so a switch is missing. */
static void test_missing_in(void)
{
	begin();
	leaves(200, 7);
	request(300, 7);
	sched_out(400, 7, EV_STATE_UNINTERRUPTIBLE, 0);
	finish();
	is_str(cpu_lane(7), "100:R 200:S 300:R 400:D 1000",
	       "a thread with an event of its own is running");
}

/* Woken after its decision to sleep, before it left its CPU. */
static void test_early_wake(void)
{
	begin();
	run(150, 7, 0);
	wakes(200, 8, 7);
	sched_out(205, 7, EV_STATE_INTERRUPTIBLE, 0);
	leaves(206, 7);
	run(300, 7, 0);
	sched_out(400, 7, EV_STATE_INTERRUPTIBLE, 0);
	leaves(401, 7);
	finish();
	is_str(cpu_lane(7), "100:? 150:R 205:r 300:R 400:S 1000",
	       "it is runnable from then on, and its next sleep is a sleep");
}

/* Recordings of all CPUs. */
static void test_picks(void)
{
	begin();
	run(150, 7, 0);
	picks(200, 0, 7, 99, 3, EVF_PREEMPT);
	preempted(206, 7);
	picks(300, 0, 99, 7, 0, 0);
	run(310, 7, 0);
	sched_out(400, 7, EV_STATE_INTERRUPTIBLE, 0);
	picks(401, 0, 7, 0, 0, 0);
	leaves(402, 7);
	wakes(500, 8, 7);
	picks(600, 0, 0, 7, 0, 0);
	finish();
	is_str(cpu_lane(7), "100:? 150:R 200:r 300:R 400:S 500:r 600:R 1000",
	       "a thread gets and loses the CPU when the scheduler picks, not when the switch is "
	       "done");

	begin();
	run(150, 7, 0);
	picks(200, 0, 7, 99, 3, EVF_PREEMPT);
	sched_out(201, 7, EV_STATE_INTERRUPTIBLE, 5);
	leaves(206, 7);
	picks(300, 1, 99, 7, 0, 0);
	run(310, 7, 0);
	preempted(320, 7);
	picks(321, 0, 7, 99, 3, EVF_PREEMPT);
	run(330, 7, 0);
	finish();
	is_str(cpu_lane(7), "100:? 150:R 200:S! 300:R 310:R 320:r 330:R 1000",
	       "contradictions, duplicates and another order are resolved");
	is_u64((uint64_t)thread(7)->cpu.spans.v[4].cpu.number, 0,
	       "the CPU of the switch-in is used");

	begin();
	run(150, 7, 0);
	ends(200, 7);
	picks(210, 0, 7, 8, 0, 0);
	picks(220, 0, 8, 7, 0, 0);
	finish();
	is_str(cpu_lane(7), "100:? 150:R 200", "a thread that has ended is not picked again");
	is_u64(m->threads.n, 1, "a thread of another program that is picked is not added");
}

static uint64_t starved(uint32_t tid, uint32_t by, uint32_t called)
{
	for (size_t i = 0; i < m->cpu_blame.n; i++)
		if (m->threads.v[m->cpu_blame.v[i].thread].tid == tid &&
		    m->cpu_blame.v[i].by == by && m->cpu_blame.v[i].name == called)
			return m->cpu_blame.v[i].runnable_ns;
	return 0;
}

static void test_starvation(void)
{
	begin();
	new_thread(110, 8, 7);
	picks(150, 1, 0, 8, 0, 0);
	picks(200, 1, 8, 99, 3, EVF_PREEMPT);
	picks(250, 1, 99, 7, 0, EVF_PREEMPT);
	picks(300, 1, 7, 98, 3, EVF_PREEMPT);
	picks(350, 1, 98, 97, 4, 0);
	picks(400, 1, 97, 0, 0, 0);
	picks(410, 1, 0, 8, 0, 0);
	finish();
	is_str(cpu_lane(8), "110:r<7 150:R 200:r 410:R 1000", "thread 8 is runnable twice");
	is_u64(starved(8, MODEL_NONE, 3), 100,
	       "two threads of another program are charged together");
	is_u64(starved(8, MODEL_NONE, 4), 50, "another program is charged separately");
	is_u64(starved(8, model_find_thread(m, 7), 0), 50,
	       "a thread of the traced program is charged");
	is_u64(starved(8, MODEL_NONE, 0), 10, "an idle CPU is charged to no program");
	is_u64(starved(8, MODEL_UNKNOWN, 0), 40,
	       "the time before the first recorded switch is charged to an unknown owner");

	begin();
	run(150, 7, 1);
	picks(200, 1, 7, 99, 3, EVF_PREEMPT);
	picks(250, 1, 99, 98, 4, 0);
	loses(240, 300, 1, 5);
	wakes(310, 8, 7);
	picks(350, 1, 98, 96, 6, 0);
	picks(400, 1, 96, 7, 0, 0);
	finish();
	is_str(cpu_lane(7), "100:? 150:R 200:r 240:?x 300:S^ 310:r 400:R 1000",
	       "a loss while a thread is runnable makes its state unknown");
	is_u64(starved(7, MODEL_UNKNOWN, 0), 40 + 40,
	       "the time until the next known owner is charged to an unknown owner");
	is_u64(starved(7, MODEL_NONE, 6), 50, "after that the owner is known again");

	begin();
	run(150, 7, 1);
	picks(200, 1, 7, 99, 3, EVF_PREEMPT);
	picks(250, 1, 99, 98, 4, 0);
	picks(400, 1, 98, 7, 0, 0);
	loses_part(220, 450, EVF_GIL_ONLY);
	finish();
	is_u64(starved(7, MODEL_NONE, 3), 50, "a loss of GIL events does not concern the owners");
	is_u64(starved(7, MODEL_NONE, 4), 150, "of CPUs, neither before nor after it is reported");

	begin();
	run(150, 7, 1);
	preempted(200, 7);
	run(300, 7, 1);
	finish();
	is_u64(m->cpu_blame.n, 0, "without records of all CPUs no one is charged");
}

static void add_part(void *data, const struct model_queued *part)
{
	str_addf(data, "%s%" PRIu64 "-%" PRIu64 " cpu %" PRId32 " %" PRId32 "/%" PRIu32,
	         ((struct str *)data)->len ? ", " : "", part->from_ns, part->to_ns, part->cpu,
	         part->by < MODEL_UNKNOWN ? (int32_t)m->threads.v[part->by].tid : -1, part->name);
}

/* Runnable and sleeping threads may be moved to another CPU. */
static void test_moves(void)
{
	CLEANUP(str_done) struct str text = { 0 };

	begin();
	new_thread(110, 8, 7);
	picks(140, 0, 0, 99, 3, 0);
	picks(145, 1, 0, 98, 4, 0);
	run(150, 7, 2);
	picks(160, 2, 7, 97, 5, EVF_PREEMPT);
	moves(200, 7, 2, 0);
	picks(250, 0, 99, 0, 0, 0);
	moves(260, 7, 0, 1);
	moves(270, 99, 0, 1);
	picks(300, 1, 98, 7, 0, EVF_PREEMPT);
	finish();
	is_str(cpu_lane(7), "100:? 150:R 160:r 300:R 1000",
	       "a thread that is moved while runnable remains runnable");
	model_queued_parts(m, model_find_thread(m, 7), 2, add_part, &text);
	is_str(str_get(&text),
	       "160-200 cpu 2 -1/5, 200-250 cpu 0 -1/3, 250-260 cpu 0 -1/0, 260-300 cpu 1 -1/4",
	       "its runnable time is charged to the owner of the CPU in whose queue it waited");
	is_u64(starved(7, MODEL_NONE, 5), 40, "the sums agree with the parts");

	begin();
	run(150, 7, 0);
	sched_out(200, 7, EV_STATE_INTERRUPTIBLE, 0);
	leaves(201, 7);
	picks(201, 0, 7, 99, 3, 0);
	moves(300, 7, 0, 1);
	wakes(400, 8, 7);
	picks(450, 1, 0, 7, 0, 0);
	finish();
	is_str(cpu_lane(7), "100:? 150:R 200:S 400:r 450:R 1000", "a move is not a wake-up");
}

/* A recording in which all wake-ups were to be recorded. */
static void begin_all(void)
{
	begin_with(&(struct model_options){ .start_ns = 100,
	                                    .end_ns = 1000,
	                                    .start_pid = 7,
	                                    .start_tid = 7,
	                                    .all_wakeups = true });
}

/* Runnable time that missing wake-ups can hide. */
static void test_unseen_runnable(void)
{
	begin_all();
	run(150, 7, 0);
	sched_out(200, 7, EV_STATE_INTERRUPTIBLE, 0);
	picks(201, 0, 7, 0, 0, 0);
	leaves(202, 7);
	run(300, 7, 0);
	finish();
	is_u64(thread(7)->unseen_runnable_ns, 0,
	       "a sleep on a CPU that was idle until its end hides nothing");

	begin_all();
	run(150, 7, 0);
	sched_out(200, 7, EV_STATE_INTERRUPTIBLE, 0);
	picks(201, 0, 7, 0, 0, 0);
	leaves(202, 7);
	picks(250, 0, 0, 99, 3, 0);
	picks(270, 0, 99, 98, 3, 0);
	picks(300, 0, 98, 7, 0, 0);
	finish();
	is_str(cpu_lane(7), "100:? 150:R 200:S! 300:R 1000",
	       "a sleep without a wake-up has an inferred end");
	is_u64(thread(7)->unseen_runnable_ns, 50,
	       "it hides at most the time for which its CPU was busy");

	begin_all();
	run(150, 7, 0);
	wakes(160, 8, 99);
	sched_out(200, 7, EV_STATE_INTERRUPTIBLE, 0);
	picks(200, 0, 7, 99, 3, 0);
	leaves(202, 7);
	picks(300, 0, 99, 7, 0, 0);
	finish();
	is_u64(thread(7)->unseen_runnable_ns, 100,
	       "it hides the whole sleep if its CPU was busy throughout");
	is_u64(m->caveats[CAVEAT_MISSED_WAKEUPS], 1, "such sleeps are counted");
}

int main(void)
{
	test_moves();
	test_unseen_runnable();
	test_picks();
	test_starvation();
	test_early_wake();
	test_switches();
	test_wakers();
	test_unseen();
	test_first_events();
	test_reasons();
	test_gil_sleep();
	test_stacks();
	test_lives();
	test_missing_in();
	model_free(m);
	names_free(names);
	return done_testing();
}

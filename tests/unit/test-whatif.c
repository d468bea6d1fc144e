/* SPDX-License-Identifier: MIT */
/* What would be gained if calls released the GIL. Times are in ms; the interval is 5. */
#include "analysis/whatif.h"

#include "hog-events.h"

/* 7 runs on CPU 0 from the start; 8 sleeps from its birth. */
static void start(void)
{
	start_until(400);
	run(100 * MS, 7, 0);
	new_thread(100 * MS, 8, 7);
	leaves(100 * MS, 8);
}

static void turn_in(uint64_t from, uint32_t tid, const char *f)
{
	turn(from, tid, frame(f, 1));
}

static void find(unsigned cpus)
{
	find_hogs();
	whatif_find(&hogs, m, stacks, cpus, INTERVAL_NS);
}

static const struct hog *hog_of(uint32_t tid, const char *f)
{
	static const struct hog none = { .gain_ns = 12345, .no_gain = NO_GAIN_TOO_LONG };

	for (size_t i = 0; i < hogs.v.n; i++)
		if (m->threads.v[hogs.v.v[i].thread].tid == tid &&
		    hogs.v.v[i].frame == frame(f, 1) && hogs.v.v[i].overdue_holds)
			return &hogs.v.v[i];
	return &none;
}

/* The gain of the overdue holds of tid in f. */
static uint64_t gain(uint32_t tid, const char *f)
{
	const struct hog *hog = hog_of(tid, f);

	return hog->no_gain == GAIN_KNOWN ? hog->gain_ns : 54321;
}

static enum no_gain no_gain(uint32_t tid, const char *f)
{
	return hog_of(tid, f)->no_gain;
}

/* 8 wakes up at 120 and computes for 40 ms, in a call of its own, after a call that keeps the GIL
 * from 100 to 200. */
static void behind_a_call(void)
{
	start();
	request(120 * MS, 8);
	asks(125 * MS, 8);
	turn_in(200, 7, "crunch");
	leaves(200 * MS, 7);
	run(200 * MS, 8, 0);
	acquire(200 * MS, 8);
	run(205 * MS, 7, 1); /* requests a release from 8, in vain */
	leaves(206 * MS, 7);
	release(240 * MS, 8);
	leaves(240 * MS, 8);
	acquire(240 * MS, 7);
	release(241 * MS, 7);
}

static void test_one_call(void)
{
	behind_a_call();
	find(2);
	is_u64(gain(7, "crunch"), 80 * MS, "with enough CPUs all waiting for the call is gained");
	behind_a_call();
	find(1);
	/* From 120 to 200 both run at half speed, so each loses 40 ms; 8 does not wait for 80 ms,
	 * and 7 not for 40. */
	is_u64(gain(7, "crunch"), 40 * MS, "less is gained if threads share a CPU");
	behind_a_call();
	find(0);
	is_u64(gain(7, "crunch"), 40 * MS, "0 CPUs count as one");
}

static void test_asleep(void)
{
	start();
	leaves(101 * MS, 7);
	request(120 * MS, 8);
	asks(125 * MS, 8);
	run(199 * MS, 7, 0);
	turn_in(200, 7, "nap");
	run(200 * MS, 8, 1);
	acquire(200 * MS, 8);
	asks(206 * MS, 7); /* in vain */
	release(240 * MS, 8);
	acquire(240 * MS, 7);
	release(241 * MS, 7);
	find(1);
	ok(gain(7, "nap") > 75 * MS, "a sleeping thread needs no CPU: %.1f ms",
	   (double)gain(7, "nap") / MS);
}

/* 9 keeps the GIL, too. */
static void test_two_calls(void)
{
	start();
	new_thread(100 * MS, 9, 7);
	leaves(100 * MS, 9);
	request(120 * MS, 9);
	request(121 * MS, 8);
	asks(126 * MS, 8);
	turn_in(200, 7, "crunch");
	acquire(200 * MS, 9);
	asks(210 * MS, 8);
	turn_in(300, 9, "grind");
	acquire(300 * MS, 8);
	release(301 * MS, 8);
	acquire(301 * MS, 7);
	release(302 * MS, 7);
	acquire(302 * MS, 9);
	release(303 * MS, 9);
	find(4);
	/* 9 begins 80 ms earlier, so 8 and 7 wait less for it, too, which is not charged to 7. */
	is_u64(gain(7, "crunch"), 159 * MS, "the gain is never more than the charged waiting");
	is_u64(gain(9, "grind"), 200 * MS, "other threads wait for the first call only");
}

/* After the call, Python code takes turns; waiting for that is not gained. */
static void test_rest(void)
{
	start();
	new_thread(100 * MS, 9, 7);
	leaves(100 * MS, 9);
	request(190 * MS, 9);
	request(191 * MS, 8);
	asks(196 * MS, 8);
	turn_in(200, 7, "crunch");
	acquire(200 * MS, 9);
	turn_in(205, 9, "python");
	acquire(205 * MS, 8);
	turn_in(210, 8, "python");
	acquire(210 * MS, 7);
	release(211 * MS, 7);
	acquire(211 * MS, 9);
	turn_in(216, 9, "python");
	acquire(216 * MS, 8);
	release(221 * MS, 8);
	acquire(221 * MS, 9);
	release(222 * MS, 9);
	find(4);
	is_u64(gain(7, "crunch"), 19 * MS,
	       "only waiting for the call is gained, not waiting for each other");
}

static void test_unknown(void)
{
	behind_a_call();
	loses(250 * MS, 390 * MS, -1, 7);
	find(2);
	ok(no_gain(7, "crunch") == NO_GAIN_UNKNOWN, "there is no estimate if too much is unknown");
	start();
	turn_in(200, 7, "alone");
	acquire(200 * MS, 7);
	find(2);
	ok(hogs.v.n && !hogs.v.v[0].gain_ns, "without waiting there is no gain");
}

/* Two threads in one function: their gain is computed together, and divided between them. */
static void test_parts(void)
{
	uint64_t charged = 0, sum = 0;

	start();
	new_thread(100 * MS, 9, 7);
	leaves(100 * MS, 9);
	request(110 * MS, 9);
	request(111 * MS, 8);
	asks(116 * MS, 8);
	turn_in(150, 7, "both");
	acquire(150 * MS, 9);
	asks(155 * MS, 8);
	turn_in(190, 9, "both");
	acquire(190 * MS, 8);
	release(191 * MS, 8);
	acquire(191 * MS, 7);
	release(192 * MS, 7);
	acquire(192 * MS, 9);
	release(193 * MS, 9);
	find(4);
	for (size_t i = 0; i < hogs.v.n; i++) {
		charged += hogs.v.v[i].overdue_wait_ns;
		sum += hogs.v.v[i].gain_ns;
	}
	ok(sum > charged * 9 / 10 && sum <= charged,
	   "the gains add up to the charged waiting: %" PRIu64 " of %" PRIu64, sum, charged);
	ok(gain(7, "both") && gain(9, "both") && gain(9, "both") != 12345,
	   "both threads have a part of the gain");
}

/* 8 waits for a call for 7 ms, then 7 waits until the given time; 9 finds the GIL free. */
static void free_until(uint64_t until)
{
	start();
	new_thread(100 * MS, 9, 7);
	request(193 * MS, 8);
	asks(198 * MS, 8);
	turn_in(200, 7, "brief");
	acquire(200 * MS, 8);
	release(201 * MS, 8);
	request(201 * MS, 9);
	acquire(until * MS, 7);
	release(until * MS, 7);
	acquire(until * MS, 9);
	release(until * MS, 9);
	find(2);
}

static void test_little(void)
{
	free_until(301);
	ok(gain(7, "brief") <= 7 * MS, "a call that caused 7 of 108 ms has an estimate");
	free_until(600);
	ok(no_gain(7, "brief") == NO_GAIN_LITTLE, "a call that caused 7 of 407 ms has no estimate");
}

/* 7 releases the GIL often and briefly, and has it again before 8, which waits, is awake. */
static void test_barging(void)
{
	start();
	run(100 * MS, 8, 1);
	for (uint64_t t = 110; t < 150; t++) {
		if (t == 120)
			request(120 * MS + 1, 8);
		turn_in(t, 7, "python");
		acquire(t * MS + 10000, 7);
	}
	asks(155 * MS, 8);
	turn_in(200, 7, "crunch");
	acquire(200 * MS, 8);
	asks(206 * MS, 7); /* in vain */
	release(240 * MS, 8);
	acquire(240 * MS, 7);
	release(241 * MS, 7);
	find(2);
	ok(no_gain(7, "crunch") == GAIN_KNOWN && gain(7, "crunch") >= 40 * MS,
	   "a waiter that did not get the GIL then does not get it in the replay: %.1f ms",
	   (double)gain(7, "crunch") / MS);
}

/* 9 holds the GIL for 240 ms without having been asked, as far as is known, which Python code cannot. */
static void test_different(void)
{
	start();
	new_thread(100 * MS, 9, 7);
	request(110 * MS, 8);
	request(111 * MS, 9);
	asks(116 * MS, 8);
	turn_in(150, 7, "crunch");
	acquire(150 * MS, 9);
	turn_in(390, 9, "python");
	acquire(390 * MS, 8);
	release(391 * MS, 8);
	acquire(391 * MS, 7);
	find(2);
	ok(no_gain(7, "crunch") == NO_GAIN_DIFFERENT,
	   "there is no estimate if a replay without a change waits less: %.0f ms instead of %.0f",
	   (double)hogs.replayed_ns / MS, (double)hogs.waited_ns / MS);
}

/* A library's threads that never use the GIL are no reason for doubt. */
static void test_idle(void)
{
	behind_a_call();
	for (uint32_t tid = 20; tid < 30; tid++) {
		new_thread(242 * MS, tid, 7);
		leaves(243 * MS, tid);
	}
	find(2);
	is_u64(gain(7, "crunch"), 80 * MS,
	       "threads that never use the GIL do not count as unknown");
}

static struct whatif_free f;

/* Replays without a GIL, where Python code takes factor times as long: with one CPU, two, and
 * four. */
static void free_it(double factor)
{
	const struct whatif_options o = { .cpus = { 1, 2, 4 }, .runs = 3, .factor = factor };

	find_hogs();
	whatif_free_done(&f);
	whatif_free_find(&f, &hogs, m, stacks, 2, INTERVAL_NS, &o);
}

/* "END END END", in ms */
static const char *ends_at(void)
{
	static struct str text;

	str_done(&text);
	for (unsigned i = 0; i < f.run_count; i++)
		str_addf(&text, "%s%.1f", i ? " " : "", (double)f.runs[i].end_ns / MS);
	return str_get(&text);
}

/* "KIND NAME MS; …" of at least 0.1 ms */
static const char *path(void)
{
	static const char kinds[] = { 'P', 'C', 'S' };
	static struct str text;

	str_done(&text);
	for (size_t i = 0; i < f.path.n; i++) {
		const struct whatif_part *p = &f.path.v[i];
		const struct stack_frame *at = p->frame ? stacks_get(stacks, p->frame) : NULL;

		if (p->ns >= 0.1 * MS)
			str_addf(&text, "%s%c %s %.1f", i ? "; " : "", kinds[p->kind],
			         at ? names_get(names, at->name) : "?", p->ns / MS);
	}
	return str_get(&text);
}

/* Nobody waits for the GIL: 8 runs beside 7 from 120 on. The main thread is 7, which sleeps
 * from 241 to 400. */
static void test_free(void)
{
	behind_a_call();
	free_it(1);
	ok(f.recorded_ns >= 115 * MS && f.recorded_ns <= 120 * MS,
	   "the threads waited for the GIL: %.1f ms", (double)f.recorded_ns / MS);
	ok(f.unchanged.cpus == 2 && f.unchanged.waited_ns > 80 * MS, "so they do in the replay");
	is_u64(f.duration_ns, 300 * MS, "the recording's length");
	/* From 20 to 100 both run at half speed. */
	ok(f.runs[0].cpus == 1 && f.runs[0].shared_ns == 80 * MS,
	   "without the GIL, they share a CPU: %.3f ms", (double)f.runs[0].shared_ns / MS);
	ok(!f.runs[1].shared_ns && !f.runs[2].shared_ns, "with more CPUs, nothing is lost");
	for (size_t i = 0; i <= f.run_count; i++)
		is_u64(i ? f.runs[i - 1].waited_ns : !f.unchanged.waited_ns, 0,
		       i ? "nobody waits" : "there is a wait otherwise");
}

/* @n turns of 10 ms of Python code in each of two threads that 7 starts at 100 and joins: they
 * have the GIL in turn, and each of them sleeps until it gets it. */
static void two_workers(unsigned n)
{
	uint64_t t = 100;

	start_until(100 + 20 * n);
	run(100 * MS, 7, 0);
	for (uint32_t tid = 8; tid <= 9; tid++) {
		new_thread(100 * MS, tid, 7);
		leaves(100 * MS, tid);
	}
	release(100 * MS, 7);
	for (uint32_t tid = 8; tid <= 9; tid++)
		request(100 * MS, tid);
	leaves(100 * MS, 7);
	feed(100 * MS, 7, EV_PARK, EV(.park = { .address = 0x7008, .kind = PARK_EVENT }));
	for (unsigned i = 0; i < n; i++)
		for (uint32_t tid = 8; tid <= 9; tid++, t += 10) {
			run(t * MS, tid, 0);
			acquire(t * MS, tid);
			release((t + 10) * MS, tid);
			if (i + 1 < n)
				feed((t + 10) * MS, tid, EV_REQUEST,
				     EV(.gil = { .address = GIL, .frame = frame("work", 3) }));
			else
				unparks((t + 10) * MS, tid, 0x7008);
			leaves((t + 10) * MS, tid);
		}
	run(t * MS, 7, 0);
	parked(t * MS, 7);
}

static void test_parallel(void)
{
	two_workers(10);
	free_it(1);
	is_u64(f.unchanged.end_ns / MS, 200, "with the GIL, one thread runs at a time");
	ok(f.no_gain == GAIN_KNOWN, "as it was recorded");
	is_str(ends_at(), "200.0 100.0 100.0", "without it, both do, if there are CPUs");
	is_str(path(), "P work 90.0; P ? 10.0", "and the critical path is the work of one of them");
	two_workers(10);
	free_it(1.5);
	is_str(ends_at(), "300.0 150.0 150.0", "Python code that is slower takes longer");
	is_u64(f.unchanged.end_ns / MS, 200, "but not with the GIL");
}

/* 9 waits for a lock that 8 has for 80 ms of 100. */
static void test_lock(void)
{
	start_until(300);
	run(100 * MS, 7, 0);
	for (uint32_t tid = 8; tid <= 9; tid++) {
		new_thread(100 * MS, tid, 7);
		leaves(100 * MS, tid);
	}
	release(100 * MS, 7);
	leaves(100 * MS, 7);
	parks(100 * MS, 7, 0x7009, PARK_EVENT);
	run(100 * MS, 8, 0);
	request(100 * MS, 8);
	acquire(100 * MS, 8);
	release(120 * MS, 8);
	request(120 * MS, 8);
	run(120 * MS, 9, 1);
	request(120 * MS, 9);
	acquire(120 * MS, 9);
	release(121 * MS, 9);
	parks(121 * MS, 9, 0x7f0a, PARK_LOCK);
	leaves(121 * MS, 9);
	acquire(121 * MS, 8);
	unparks(180 * MS, 8, 0x7f0a);
	run(180 * MS, 9, 1);
	parked(180 * MS, 9);
	request(180 * MS, 9);
	release(201 * MS, 8);
	ends(201 * MS, 8);
	acquire(201 * MS, 9);
	release(300 * MS, 9);
	unparks(300 * MS, 9, 0x7009);
	leaves(300 * MS, 9);
	run(300 * MS, 7, 0);
	parked(300 * MS, 7);
	free_it(1);
	/* 8 computes for 20 ms, and for 59 until it releases the lock; then 9 does so for 99. */
	is_u64(f.runs[0].worked_ns / MS, 20 + 59 + 21 + 1 + 99, "all of the work is done");
	is_str(ends_at(), "200.0 178.0 178.0", "a thread waits for the one that has the lock");
	is_str(path(), "P ? 99.0; P ? 79.0", "which is the critical path");
}

/* 7 starts 8, which has no CPU until 105, and waits until 8 says so at 110. */
static void test_late_start(void)
{
	start_until(200);
	run(100 * MS, 7, 0);
	release(100 * MS, 7);
	leaves(100 * MS, 7);
	parks(100 * MS, 7, 0x7008, PARK_EVENT);
	new_thread(105 * MS, 8, 7);
	run(105 * MS, 8, 1);
	request(105 * MS, 8);
	acquire(105 * MS, 8);
	unparks(110 * MS, 8, 0x7008);
	run(110 * MS, 7, 0);
	parked(110 * MS, 7);
	request(110 * MS, 7);
	release(120 * MS, 8);
	ends(120 * MS, 8);
	acquire(120 * MS, 7);
	release(200 * MS, 7);
	free_it(1);
	is_u64(f.run_count, 3, "a thread that started late was started before it was waited for");
}

/* A thread that would wait for itself, and events without order, end the replay. */
static void test_stuck(void)
{
	start_until(300);
	new_thread(100 * MS, 8, 7);
	release(100 * MS, 7);
	parks(110 * MS, 7, 0x7f0a, PARK_LOCK);
	unparks(110 * MS, 8, 0x7f0a);
	parked(110 * MS, 7);
	parks(120 * MS, 8, 0x7f0b, PARK_LOCK);
	free_it(1);
	ok(f.no_gain != GAIN_KNOWN || f.run_count == 3, "it comes to an end");
}

int main(void)
{
	test_one_call();
	test_free();
	test_parallel();
	test_lock();
	test_late_start();
	test_stuck();
	test_asleep();
	test_two_calls();
	test_rest();
	test_unknown();
	test_parts();
	test_little();
	test_barging();
	test_different();
	test_idle();
	whatif_free_done(&f);
	hogs_done(&hogs);
	stacks_free(stacks);
	model_free(m);
	names_free(names);
	return done_testing();
}

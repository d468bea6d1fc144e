/* SPDX-License-Identifier: MIT */
/* Each pattern is found in a program that has it, and in no other program. */
#include "analysis/patterns.h"
#include "trace/stacks.h"

#include "model-events.h"
#include "report/words.h"

#define MS 1000000ULL
#define US 1000ULL

static struct patterns patterns;
static struct stacks *frames; /* NULL: not known */

static void begin_seconds(uint64_t seconds)
{
	begin_with(&(struct model_options){ .start_ns = MS,
	                                    .end_ns = MS + seconds * 1000 * MS,
	                                    .start_pid = 7,
	                                    .start_tid = 7 });
	for (uint32_t tid = 8; tid < 12; tid++)
		new_thread(MS, tid, 7);
}

static void find(void)
{
	finish();
	patterns_done(&patterns);
	patterns_find(&patterns, m, frames, HOGS_INTERVAL_NS);
}

static const struct pattern *pattern(enum pattern_kind kind, uint32_t tid)
{
	for (size_t i = 0; i < patterns.v.n; i++) {
		const struct pattern *p = &patterns.v.v[i];

		if (p->kind == kind &&
		    (p->thread == MODEL_NONE || m->threads.v[p->thread].tid == tid))
			return p;
	}
	return NULL;
}

static uint32_t tid_of(uint32_t i)
{
	return i == MODEL_NONE ? 0 : m->threads.v[i].tid;
}

/* The evidence of a pattern; "" if the pattern was not found. */
static const char *text(enum pattern_kind kind, uint32_t tid)
{
	static struct str str;

	str_done(&str);
	if (pattern(kind, tid))
		pattern_text(m, pattern(kind, tid), &str);
	return str_get(&str);
}

/* The GIL goes from the holder to a waiting thread. */
static void pass_on(uint64_t t, uint32_t from, uint32_t to)
{
	release(t, from);
	acquire(t + 20 * US, to);
	released(t + 30 * US, from);
}

/* 8 computes; 9 makes short calls without the GIL and gets it back an interval later each time. */
static void test_convoy(void)
{
	uint64_t t = 2 * MS;

	begin_seconds(1);
	is_called(t, 8, "compute");
	is_called(t, 9, "send");
	request(t, 8);
	pass_on(t + MS, 7, 8);
	request(t + MS, 9);
	for (t += 6 * MS; t < 996 * MS; t += 6 * MS) {
		pass_on(t, 8, 9);
		request(t + 40 * US, 8);
		pass_on(t + 200 * US, 9, 8);
		request(t + 300 * US, 9);
	}
	find();
	ok(pattern(PATTERN_CONVOY, 9) != NULL,
	   "short calls without the GIL that each wait for an interval are a convoy");
	ok(pattern(PATTERN_CONVOY, 9) && tid_of(pattern(PATTERN_CONVOY, 9)->other) == 8,
	   "the convoy is caused by the computing thread");
	is_str(text(PATTERN_CONVOY, 9),
	       "send (9) released the GIL for a moment 165 times and then waited 946.8 ms for it, "
	       "94 % of its life, mostly while compute (8) held it; the longest wait was 8.7 ms.",
	       "the convoy's evidence is complete");
	is_u64(patterns.v.n, 1, "there is no other pattern");
}

/* The same, but 8 releases at once: the GIL is free, and 9 has no CPU to take it. */
static void test_no_convoy(void)
{
	uint64_t t = 2 * MS;

	begin_seconds(1);
	request(t, 8);
	pass_on(t, 7, 8);
	for (t += MS; t < 990 * MS; t += 6 * MS) {
		request(t, 9);
		release(t + 100 * US, 8);
		acquire(t + 5 * MS, 9);
		request(t + 5 * MS, 8);
		pass_on(t + 5200 * US, 9, 8);
	}
	find();
	ok(!pattern(PATTERN_CONVOY, 9), "waits for a free GIL are not a convoy");
}

/* 9 sleeps for events, 10 ms each, and then waits while 8 computes. */
static void test_late_wakeups(void)
{
	uint64_t t = 2 * MS;

	begin_seconds(1);
	request(t, 8);
	pass_on(t + MS, 7, 8);
	request(t + MS, 9);
	for (t += 6 * MS; t < 985 * MS; t += 16 * MS) {
		pass_on(t, 8, 9);
		request(t + 40 * US, 8);
		pass_on(t + 200 * US, 9, 8);
		request(t + 11 * MS, 9);
	}
	find();
	ok(pattern(PATTERN_LATE_WAKEUPS, 9) != NULL,
	   "a loop that waits after each sleep is late: %s", text(PATTERN_LATE_WAKEUPS, 9));
	ok(!pattern(PATTERN_CONVOY, 9), "late wake-ups are not a convoy");
}

static uint32_t frame(const char *name, const char *file, uint32_t line, uint32_t parent)
{
	struct stack_frame f = { .name = names_id(names, name, strlen(name)),
		                 .module = names_id(names, file, strlen(file)),
		                 .line = line,
		                 .parent = parent };

	return stacks_id(frames, &f);
}

/* 9 sleeps while it waits for events, 10 ms each, and then waits for the GIL while 8 is in
 * crunch. */
static void loop(const char *selector, const char *base_events)
{
	uint64_t t = 2 * MS;
	uint32_t once, waits, crunch;

	begin_seconds(1);
	frames = stacks_new(names);
	once = frame("BaseEventLoop._run_once", base_events, 7, 0);
	waits = frame(selector, "/x/selectors.py", 9, once);
	crunch = frame("crunch", "/y/work.py", 12, 0);
	request(t, 8);
	pass_on(t + MS, 7, 8);
	request(t + MS, 9);
	for (t += 6 * MS; t < 985 * MS; t += 16 * MS) {
		pass_on(t, 8, 9);
		feed(t + 40 * US, 8, EV_REQUEST, EV(.gil = { .address = GIL, .frame = crunch }));
		pass_on(t + 200 * US, 9, 8);
		feed(t + 11 * MS, 9, EV_REQUEST, EV(.gil = { .address = GIL, .frame = waits }));
	}
	find();
}

static void test_starvation(void)
{
	loop("EpollSelector.select", "/x/asyncio/base_events.py");
	is_str(text(PATTERN_LOOP_STARVATION, 9),
	       "(9) runs an asyncio event loop; its callbacks were a millisecond or more late 62 "
	       "times because it waited for the GIL, 312.2 ms in total, 31 % of its life; the "
	       "longest wait was 6.0 ms; meanwhile mostly crunch (work.py:12) in (8) held the "
	       "GIL.",
	       "an event loop that waits after each sleep starves");
	ok(pattern(PATTERN_LOOP_STARVATION, 9) &&
	           tid_of(pattern(PATTERN_LOOP_STARVATION, 9)->other) == 8,
	   "starvation is caused by the thread that holds the GIL meanwhile");
	ok(!pattern(PATTERN_LATE_WAKEUPS, 9), "the same waits are not reported as late wake-ups");
	stacks_free(frames);
	loop("select", "/x/asyncio/base_events.py");
	ok(pattern(PATTERN_LOOP_STARVATION, 9) != NULL,
	   "up to 3.10 the plain name of the selector's function is enough");
	stacks_free(frames);
	loop("EpollSelector.select", "/x/other/base_events.py");
	ok(!pattern(PATTERN_LOOP_STARVATION, 9) && pattern(PATTERN_LATE_WAKEUPS, 9),
	   "another loop has late wake-ups, but is not known to be an event loop");
	stacks_free(frames);
	loop("EpollSelector.register", "/x/asyncio/base_events.py");
	ok(!pattern(PATTERN_LOOP_STARVATION, 9),
	   "a loop that does not wait for events does not starve");
	stacks_free(frames);
	frames = NULL;
}

static void test_ping_pong(void)
{
	uint64_t t = 2 * MS;

	begin_seconds(1);
	request(t, 8);
	pass_on(t, 7, 8);
	request(t + 40 * US, 9);
	for (t += 100 * US; t < 1000 * MS; t += 200 * US) {
		pass_on(t, 8, 9);
		request(t + 40 * US, 8);
		pass_on(t + 100 * US, 9, 8);
		request(t + 140 * US, 9);
	}
	find();
	ok(pattern(PATTERN_PING_PONG, 8) != NULL, "two that take turns at once: %s",
	   text(PATTERN_PING_PONG, 8));
	ok(!pattern(PATTERN_OVERSUBSCRIPTION, 0), "ping-pong is not oversubscription");
}

/* The same turns, but each thread requests the GIL only after the other has released it: it is free
 * for most of the time, and nobody wants it. */
static void test_no_ping_pong(void)
{
	begin_seconds(1);
	release(2 * MS, 7);
	for (uint64_t t = 3 * MS; t < 1000 * MS; t += 200 * US) {
		for (uint32_t tid = 8; tid < 10; tid++) {
			uint64_t at = t + (tid - 8) * 100 * US;

			request(at, tid);
			acquire(at + US, tid);
			release(at + 3 * US, tid);
			released(at + 3 * US, tid);
		}
	}
	find();
	is_str(text(PATTERN_PING_PONG, 8), "", "a GIL that nobody wants is not handed over");
}

/* Four threads compute in turn, 5 ms each. */
static void test_oversubscription(void)
{
	uint64_t t = 2 * MS;
	uint32_t holder = 8;

	begin_seconds(1);
	for (uint32_t tid = 8; tid < 12; tid++)
		request(t, tid);
	pass_on(t, 7, 8);
	for (t += 5 * MS; t < 990 * MS; t += 5 * MS) {
		uint32_t next = 8 + (holder - 7) % 4;

		pass_on(t, holder, next);
		request(t + 40 * US, holder);
		holder = next;
	}
	find();
	ok(pattern(PATTERN_OVERSUBSCRIPTION, 0) != NULL, "four that compute are too many: %s",
	   text(PATTERN_OVERSUBSCRIPTION, 0));
	is_u64(pattern(PATTERN_OVERSUBSCRIPTION, 0) ? pattern(PATTERN_OVERSUBSCRIPTION, 0)->count
	                                            : 0,
	       4, "oversubscription counts all four threads");
	is_u64(patterns.v.n, 1, "there is no other pattern");
}

/* Three interpreters with a GIL each, for each of which two threads compute in turn. */
static void test_several_gils(void)
{
	begin_seconds(1);
	new_thread(MS, 12, 7);
	new_thread(MS, 13, 7);
	release(2 * MS, 7);
	for (unsigned i = 0; i < 3; i++) {
		gil_now = GIL + 0x1000 * i;
		request(3 * MS + i * US, 8 + 2 * i);
		acquire(3 * MS + i * US + 1, 8 + 2 * i);
		request(3 * MS + i * US + 2, 9 + 2 * i);
	}
	for (unsigned turn = 0; turn < 190; turn++) {
		for (unsigned i = 0; i < 3; i++) {
			uint64_t t = (8 + 5 * turn) * MS + i * 100 * US;
			uint32_t holder = 8 + 2 * i + turn % 2, next = 9 + 2 * i - turn % 2;

			gil_now = GIL + 0x1000 * i;
			pass_on(t, holder, next);
			request(t + 40 * US, holder);
		}
	}
	find();
	is_u64(m->gils.n, 3, "the model has three GILs");
	ok(!pattern(PATTERN_OVERSUBSCRIPTION, 0),
	   "two threads for each of them are not oversubscription");
}

/* A call that keeps the GIL is a finding of its own (test-findings). */
static void test_one_call(void)
{
	uint64_t t = 2 * MS;

	begin_seconds(1);
	request(t, 8);
	request(t, 9);
	pass_on(t, 7, 8);
	asks(t + 10 * MS, 9);
	pass_on(t + 300 * MS, 8, 9);
	release(t + 301 * MS, 9);
	find();
	is_u64(patterns.v.n, 0, "one long call is no pattern");
}

/* 8 sleeps for a lock that 9 holds, which waits for the GIL because 10 computes. */
static void test_lock_across_wait(void)
{
	uint64_t t = 2 * MS;

	begin_seconds(1);
	run(MS, 8, 0);
	leaves(MS + 1, 8);
	request(t, 10);
	pass_on(t, 7, 10);
	for (t += MS; t < 990 * MS; t += 10 * MS) {
		request(t, 9);
		pass_on(t + 5 * MS, 10, 9);
		request(t + 5 * MS + 40 * US, 10);
		wakes(t + 6 * MS, 9, 8);
		run(t + 6 * MS + US, 8, 0);
		leaves(t + 6 * MS + 2 * US, 8);
		pass_on(t + 7 * MS, 9, 10);
	}
	find();
	ok(pattern(PATTERN_LOCK_ACROSS_WAIT, 8) != NULL, "who sleeps for who waits waits too: %s",
	   text(PATTERN_LOCK_ACROSS_WAIT, 8));
	ok(pattern(PATTERN_LOCK_ACROSS_WAIT, 8) &&
	           tid_of(pattern(PATTERN_LOCK_ACROSS_WAIT, 8)->other) == 9,
	   "its waker is the thread that waited");
}

static void test_silence(void)
{
	uint64_t t = 2 * MS;

	/* Two threads that compute share the GIL, as they must. */
	begin_seconds(1);
	request(t, 8);
	request(t, 9);
	pass_on(t, 7, 8);
	for (t += 5 * MS; t < 990 * MS; t += 10 * MS) {
		pass_on(t, 8, 9);
		request(t + 40 * US, 8);
		pass_on(t + 5 * MS, 9, 8);
		request(t + 5 * MS + 40 * US, 9);
	}
	find();
	is_u64(patterns.v.n, 0, "two threads that compute are not a pattern");

	/* The same on too few CPUs: holds are long, and so is the exit of drop_gil. */
	begin_seconds(1);
	t = 2 * MS;
	run(MS, 8, 0);
	preempted(3 * MS, 8);
	run(MS, 9, 0);
	preempted(MS + 1, 9);
	request(MS, 8);
	request(MS, 9);
	pass_on(t, 7, 8);
	for (uint64_t i = 0; i < 24; i++) {
		uint32_t a = 8 + (i & 1), b = 9 - (i & 1);

		preempted(t + 2 * MS, a);
		run(t + 38 * MS, a, 0);
		t += 40 * MS;
		release(t, a);
		run(t + 5 * US, b, 1);
		acquire(t + 20 * US, b);
		released(t + 2 * MS - 1, a);
		request(t + 2 * MS - 1, a);
	}
	find();
	is_u64(patterns.v.n, 0, "nor when they have to wait for a CPU");

	/* Sleepers that do not meet another thread. */
	begin_seconds(1);
	release(t = 2 * MS, 7);
	for (; t < 900 * MS; t += 5 * MS) {
		request(t + MS, 8);
		acquire(t + MS + 5 * US, 8);
		release(t + MS + 50 * US, 8);
	}
	find();
	is_u64(patterns.v.n, 0, "a thread that sleeps is not a pattern");

	/* The convoy above, in 20 ms. */
	begin_with(&(struct model_options){
		.start_ns = MS, .end_ns = 21 * MS, .start_pid = 7, .start_tid = 7 });
	request(2 * MS, 8);
	pass_on(19 * MS, 7, 8);
	find();
	is_u64(patterns.v.n, 0, "a recording that is too short has no pattern");

	begin_with(&(struct model_options){ 0 });
	find();
	is_u64(patterns.v.n, 0, "an empty recording has no pattern");
}

static void test_words(void)
{
	unsigned missing = 0;

	for (unsigned i = 0; i < PATTERN_KINDS; i++)
		missing += !pattern_name(i) || !*pattern_title(i) || !*pattern_advice(i);
	is_u64(missing, 0, "each pattern has a name, a title and advice");
}

int main(void)
{
	test_convoy();
	test_no_convoy();
	test_late_wakeups();
	test_starvation();
	test_ping_pong();
	test_no_ping_pong();
	test_oversubscription();
	test_several_gils();
	test_one_call();
	test_lock_across_wait();
	test_silence();
	test_words();
	patterns_done(&patterns);
	model_free(m);
	names_free(names);
	return done_testing();
}

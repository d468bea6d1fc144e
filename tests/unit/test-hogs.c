/* SPDX-License-Identifier: MIT */
/* Which functions kept the GIL after a release request. Times are in ms; the interval is 5. */
#include "trace/slices.h"

#include "hog-events.h"

static void start(void)
{
	start_until(1000);
}

/* "function:line tid holds/hold wait overdue/overdue_ns overdue_wait off asleep" of every row, in
 * ms. */
static const char *rows(void)
{
	static struct str text;

	str_done(&text);
	for (size_t i = 0; i < hogs.v.n; i++) {
		const struct hog *h = &hogs.v.v[i];
		const struct stack_frame *f = h->frame ? stacks_get(stacks, h->frame) : NULL;

		str_addf(&text,
		         "%s%s:%u %u %" PRIu64 "/%" PRIu64 " %" PRIu64 " %" PRIu64 "/%" PRIu64,
		         i ? "; " : "", f ? names_get(names, f->name) : "?", f ? f->line : 0,
		         m->threads.v[h->thread].tid, h->holds, h->hold_ns / MS, h->wait_ns / MS,
		         h->overdue_holds, h->overdue_ns / MS);
		str_addf(&text, " %" PRIu64 " %" PRIu64 " %" PRIu64, h->overdue_wait_ns / MS,
		         h->off_cpu_ns / MS, h->asleep_ns / MS);
	}
	return str_get(&text);
}

static void test_late(void)
{
	start();
	new_thread(110 * MS, 8, 7);
	request(120 * MS, 8);
	asks(125 * MS, 8);
	turn(150, 7, frame("crunch", 3));
	acquire(150 * MS, 8);
	release(151 * MS, 8);
	acquire(151 * MS, 7);
	find_hogs();
	is_str(rows(),
	       "crunch:3 7 1/50 30 1/50 30 0 0; ?:0 8 1/1 1 0/0 0 0 0; "
	       "?:0 7 1/849 0 0/0 0 0 0",
	       "a hold that lasts 25 ms after the request is overdue");
	is_u64(hogs.v.v[0].overdue_longest_at_ns, 100 * MS,
	       "the start of the longest overdue hold is known");
}

/* The interpreter may look at a request only after the function that kept the GIL has returned. */
static void test_asked(void)
{
	start();
	new_thread(110 * MS, 8, 7);
	request(120 * MS, 8);
	asks(125 * MS, 8);
	asked(125 * MS, 7, frame("crunch", 3));
	turn(150, 7, frame("innocent", 9));
	acquire(150 * MS, 8);
	release(151 * MS, 8);
	acquire(151 * MS, 7);
	request(160 * MS, 8);
	asks(165 * MS, 8);
	asked(165 * MS, 7, 0);
	turn(180, 7, frame("innocent", 9));
	acquire(180 * MS, 8);
	release(181 * MS, 8);
	acquire(181 * MS, 7);
	request(190 * MS, 8);
	asks(195 * MS, 8);
	asked(195 * MS, 7, 0);
	feed(195 * MS + 1, 7, EV_RELEASE, EV(.gil = { .address = GIL, .frame = frame("spin", 4) }));
	acquire(196 * MS, 8);
	find_hogs();
	is_str(rows(),
	       "crunch:3 7 1/50 30 1/50 30 0 0; ?:0 7 1/29 20 1/29 20 0 0; "
	       "spin:4 7 1/14 5 0/0 0 0 0; ?:0 8 3/806 2 0/0 0 0 0",
	       "a hold belongs to the function that was asked; if that is unknown, to none, unless "
	       "it "
	       "complied");
}

/* Without a look at the holder, it is only known where the hold ended. */
static void test_inferred(void)
{
	uint32_t began = stacks_id(stacks,
	                           &(struct stack_frame){ .name = names_id(names, "began", 5),
	                                                  .line = 9,
	                                                  .flags = STACK_FIRST_LINE });

	begin_with(&(struct model_options){ .start_ns = 100 * MS,
	                                    .end_ns = 1000 * MS,
	                                    .start_pid = 7,
	                                    .start_tid = 7,
	                                    .checks_late = true });
	new_thread(110 * MS, 8, 7);
	request(120 * MS, 8);
	asks(125 * MS, 8);
	turn(150, 7, frame("maybe", 3));
	acquire(150 * MS, 8);
	release(151 * MS, 8);
	acquire(151 * MS, 7);
	request(160 * MS, 8);
	asks(165 * MS, 8);
	turn(180, 7, began);
	acquire(180 * MS, 8);
	find_hogs();
	is_str(rows(),
	       "maybe:3 7 1/50 30 1/50 30 0 0; ?:0 7 1/29 20 1/29 20 0 0; ?:0 8 2/821 821 0/0 0 0 "
	       "0",
	       "a function that had just begun did not keep the GIL");
	ok(hogs.v.v[0].inferred && !hogs.v.v[2].inferred, "another one is only inferred");
}

static void test_obedient(void)
{
	start();
	new_thread(110 * MS, 8, 7);
	request(120 * MS, 8);
	asks(125 * MS, 8);
	turn(125, 7, frame("spin", 4)); /* within the slack */
	acquire(125 * MS, 8);
	asks(135 * MS, 7); /* it has waited since the hold began: two intervals */
	turn(135, 8, frame("spin", 4));
	acquire(135 * MS, 7);
	asks(145 * MS, 8);
	turn(147, 7, frame("spin", 5)); /* later than the slack */
	acquire(147 * MS, 8);
	find_hogs();
	is_str(rows(),
	       "spin:5 7 2/37 17 1/12 12 0 0; ?:0 8 1/853 853 0/0 0 0 0; "
	       "spin:4 8 1/10 10 0/0 0 0 0",
	       "Python code releases on request; a function has one row, with its heaviest line");
}

static void test_off_cpu(void)
{
	start();
	run(100 * MS, 7, 0);
	new_thread(110 * MS, 8, 7);
	request(120 * MS, 8);
	asks(125 * MS, 8);
	leaves(130 * MS, 7);
	run(140 * MS, 7, 0);
	preempted(142 * MS, 7);
	run(145 * MS, 7, 0);
	turn(150, 7, frame("nap", 3));
	acquire(150 * MS, 8);
	find_hogs();
	ok(hogs.v.n && hogs.v.v[0].overdue_holds == 1 && hogs.v.v[0].thread != MODEL_NONE,
	   "there is an overdue hold");
	for (size_t i = 0; i < hogs.v.n; i++)
		if (hogs.v.v[i].frame == frame("nap", 3)) {
			is_u64(hogs.v.v[i].off_cpu_ns, 13 * MS,
			       "off_cpu_ns is the time off CPU in overdue holds");
			is_u64(hogs.v.v[i].asleep_ns, 10 * MS,
			       "asleep_ns is the part of it that is sleep");
			is_u64(hogs.v.v[i].hold_off_cpu_ns, 13 * MS,
			       "hold_off_cpu_ns is the time off CPU in all holds");
			is_u64(hogs.v.v[i].hold_asleep_ns, 10 * MS,
			       "hold_asleep_ns is the part of it that is sleep");
		}
}

static unsigned overdue_holds(const char *name)
{
	unsigned n = 0;

	find_hogs();
	for (size_t i = 0; i < hogs.v.n; i++)
		if (hogs.v.v[i].frame == frame(name, 3))
			n += (unsigned)hogs.v.v[i].overdue_holds;
	return n;
}

/* The holder is runnable without a CPU from 125 to 149; or the waiting thread is, and cannot make a
 * request. */
static void test_no_cpu(void)
{
	start();
	run(100 * MS, 7, 0);
	new_thread(110 * MS, 8, 7);
	request(120 * MS, 8);
	asks(125 * MS, 8);
	preempted(125 * MS, 7);
	run(149500000, 7, 0);
	turn(150, 7, frame("spin", 3));
	acquire(150 * MS, 8);
	is_u64(overdue_holds("spin"), 0,
	       "a holder without a CPU cannot release the GIL, so its hold is not overdue");

	start();
	run(100 * MS, 7, 0);
	new_thread(110 * MS, 8, 7);
	run(110 * MS, 8, 1);
	request(120 * MS, 8);
	preempted(121 * MS, 8);
	run(149500000, 8, 1);
	turn(150, 7, frame("spin", 3));
	acquire(150 * MS, 8);
	is_u64(overdue_holds("spin"), 0, "a waiter without a CPU cannot request a release");

	start();
	run(100 * MS, 7, 0);
	new_thread(110 * MS, 8, 7);
	run(110 * MS, 8, 1);
	request(120 * MS, 8);
	leaves(120 * MS, 8);
	run(126 * MS, 8, 1); /* requests a release */
	leaves(127 * MS, 8);
	run(149 * MS, 8, 1);
	turn(150, 7, frame("spin", 3));
	acquire(150 * MS, 8);
	is_u64(overdue_holds("spin"), 1, "if both had a CPU, the hold is overdue");

	start();
	run(100 * MS, 7, 0);
	new_thread(110 * MS, 8, 7);
	run(110 * MS, 8, 0);
	request(119 * MS, 8);
	leaves(119 * MS, 8); /* the wake-up by its timer at 124 is not recorded */
	run(119 * MS, 7, 0);
	preempted(122 * MS, 7);
	run(148 * MS, 8, 0);
	leaves(149500000, 8);
	run(149500000, 7, 0);
	turn(150, 7, frame("spin", 3));
	acquire(150 * MS, 8);
	is_u64(overdue_holds("spin"), 0,
	       "a waiter that is woken by a timer but has no CPU cannot request a release");
}

/* 7 holds from 100 to 150; 8 waits from 120 on and sleeps at these times: from, to, from, to … */
static unsigned slept(const uint64_t *times, size_t n)
{
	start();
	run(100 * MS, 7, 0);
	new_thread(110 * MS, 8, 7);
	run(110 * MS, 8, 1);
	request(120 * MS, 8);
	for (size_t i = 0; i < n; i++) {
		if (i % 2)
			run(times[i] * MS, 8, 1);
		else
			leaves(times[i] * MS, 8);
	}
	turn(150, 7, frame("spin", 3));
	acquire(150 * MS, 8);
	return overdue_holds("spin");
}

/* Only a waiter that sleeps again has proved its request, because a hypervisor may stop it when it
 * is woken. */
static void test_proof(void)
{
	is_u64(slept((const uint64_t[]){ 120, 126, 127, 149 }, 4), 1,
	       "a waiter that sleeps again after its interval has made a request");
	is_u64(slept((const uint64_t[]){ 120, 126 }, 2), 0,
	       "a wake-up is no proof: the waiter may be stopped since then");
	is_u64(slept((const uint64_t[]){ 120, 121, 122, 149 }, 4), 0,
	       "a sleep before the interval is over is no proof");
	is_u64(slept((const uint64_t[]){ 120, 121, 122, 128, 129, 149 }, 6), 1,
	       "a later sleep after the interval is a proof");
	is_u64(slept((const uint64_t[]){ 120, 126, 149, 150 }, 4), 0,
	       "a hold that ends soon after a late request is not overdue");
}

/* The interval that had begun before 7 got the GIL was about 9's hold. */
static void test_proof_of_hold(void)
{
	for (unsigned again = 0; again < 2; again++) {
		start();
		new_thread(101 * MS, 8, 7);
		new_thread(101 * MS, 9, 7);
		run(101 * MS, 8, 1);
		release(110 * MS, 7);
		request(110 * MS, 9);
		acquire(110 * MS, 9);
		request(111 * MS, 8);
		leaves(111 * MS, 8);
		request(112 * MS, 7);
		release(113 * MS, 9);
		acquire(113 * MS, 7);
		run(118 * MS, 8, 1);
		leaves(119 * MS, 8);
		if (again) {
			run(125 * MS, 8, 1);
			leaves(126 * MS, 8);
		}
		turn(150, 7, frame("spin", 3));
		acquire(150 * MS, 8);
		is_u64(overdue_holds("spin"), again,
		       again ? "an interval that began under this holder is a request"
		             : "an interval that began under another holder is no request");
	}
}

/* Samples: in an overdue hold before and after the request, in a hold that is not overdue, and of a
 * thread without the GIL. */
static void test_samples(void)
{
	start();
	new_thread(110 * MS, 8, 7);
	request(120 * MS, 8);
	feed(124 * MS, 7, EV_STACK, EV(.stack = { .record = 10 }));
	asks(125 * MS, 8);
	feed(130 * MS, 7, EV_STACK, EV(.stack = { .record = 11 }));
	feed(140 * MS, 8, EV_STACK, EV(.stack = { .record = 12 }));
	turn(150, 7, frame("crunch", 3));
	acquire(150 * MS, 8);
	feed(151 * MS, 8, EV_STACK, EV(.stack = { .record = 13 }));
	release(152 * MS, 8);
	acquire(152 * MS, 7);
	find_hogs();
	is_u64(hogs.samples.n, 1, "only the sample after the release request is used");
	is_u64(hogs.samples.n ? hogs.samples.v[0].record : 0, 11, "the sample has its record");
	ok(hogs.samples.n && hogs.v.v[0].row == hogs.samples.v[0].row && hogs.v.v[0].samples == 1,
	   "the sample belongs to the hog");
}

/* Stacks of the source: 0 is eval, 1 eval < x_add, 2 eval < pow, 3 one without Python, 4 and 5 ones
 * in functions of the interpreter without a symbol. */
static uint32_t natives[6];

static uint32_t native_at(struct source *source, uint64_t record)
{
	(void)source;
	return natives[record];
}

static uint32_t native_stack(const char *callee)
{
	struct stack_frame eval = { .name = names_id(names, "eval", 4), .flags = STACK_EVAL };
	struct stack_frame frame = { .parent = stacks_id(stacks, &eval),
		                     .name = names_id(names, callee, strlen(callee)) };

	if (*callee == '[') {
		frame.module = names_id(names, "python3.14", 10);
		frame.flags = STACK_UNKNOWN;
	}

	return stacks_id(stacks, &frame);
}

/* A release is requested from 7 at 125, and it releases at 150; samples at 124, 130, 135 and 140.
 */
static const char *native_of(const uint64_t records[4])
{
	static const struct source_ops ops = { .stack_at = native_at };
	struct source source = { .ops = &ops, .stacks = stacks };

	start();
	natives[0] = stacks_id(stacks, &(struct stack_frame){ .name = names_id(names, "eval", 4),
	                                                      .flags = STACK_EVAL });
	natives[1] = native_stack("x_add");
	natives[2] = native_stack("pow");
	natives[4] = native_stack("[python3.14+0x10]");
	natives[5] = native_stack("[python3.14+0x20]");
	new_thread(110 * MS, 8, 7);
	request(120 * MS, 8);
	feed(124 * MS, 7, EV_STACK, EV(.stack = { .record = records[0] }));
	asks(125 * MS, 8);
	feed(130 * MS, 7, EV_STACK, EV(.stack = { .record = records[1] }));
	feed(135 * MS, 7, EV_STACK, EV(.stack = { .record = records[2] }));
	feed(140 * MS, 7, EV_STACK, EV(.stack = { .record = records[3] }));
	turn(150, 7, frame("crunch", 3));
	acquire(150 * MS, 8);
	find_hogs();
	hogs_find_native(&hogs, &source);
	return hogs.v.v[0].native ? names_get(names, stacks_get(stacks, hogs.v.v[0].native)->name)
	                          : "none";
}

static void test_native(void)
{
	is_str(native_of((const uint64_t[]){ 2, 2, 2, 2 }), "pow",
	       "a call that all samples found kept the GIL");
	is_str(native_of((const uint64_t[]){ 1, 2, 2, 2 }), "pow",
	       "samples before the request do not count");
	is_str(native_of((const uint64_t[]){ 1, 1, 1, 2 }), "none",
	       "two different calls are not one");
	is_str(native_of((const uint64_t[]){ 1, 1, 1, 0 }), "none",
	       "calls with Python in between are not one");
	is_str(native_of((const uint64_t[]){ 1, 2, 3, 2 }), "pow",
	       "a sample that shows nothing does not contradict the others");
	is_str(native_of((const uint64_t[]){ 2, 3, 3, 3 }), "none", "but it shows nothing");
	is_str(native_of((const uint64_t[]){ 2, 4, 5, 4 }), "python3.14",
	       "functions without symbols are known by their file");
	is_str(native_of((const uint64_t[]){ 2, 4, 2, 2 }), "pow", "but a symbol says more");
	is_str(native_of((const uint64_t[]){ 2, 4, 0, 4 }), "none",
	       "and Python between them is no call");
}

/* 7 holds from 100 to 150, after a request at 125, and from 160 to 170. A collection from .. to. */
static uint64_t collected_in(uint32_t pid, uint64_t from, uint64_t to)
{
	struct slice_collection one = { pid, 7, from * MS, to * MS };
	struct slices slices = { .collections = &one, .collection_count = 1 };

	start();
	new_thread(110 * MS, 8, 7);
	request(120 * MS, 8);
	asks(125 * MS, 8);
	turn(150, 7, frame("crunch", 3));
	acquire(150 * MS, 8);
	find_hogs();
	hogs_add_collections(&hogs, m, stacks, &slices);
	return hogs.v.v[0].collected_ns;
}

static void test_collections(void)
{
	is_u64(collected_in(7, 130, 140), 10 * MS, "a garbage collection during a hold");
	is_u64(collected_in(7, 140, 160), 10 * MS, "counts up to the end of the hold");
	is_u64(collected_in(7, 155, 160), 0, "not after it");
	is_u64(collected_in(9, 130, 140), 0, "nor does one of another process");
}

/* 7 holds from 100 to 150; its release is requested at 125 or a moment later; it is off CPU from
 * 127 to 149. */
static unsigned stopped(uint32_t prev_state)
{
	start();
	run(100 * MS, 7, 0);
	new_thread(110 * MS, 8, 7);
	request(120 * MS, 8);
	asks(125 * MS, 8);
	feed(127 * MS, 7, EV_SCHED_OUT, EV(.sched = { .prev_state = prev_state }));
	run(149500000, 7, 0);
	turn(150, 7, frame("spin", 3));
	acquire(150 * MS, 8);
	return overdue_holds("spin");
}

static void test_stopped(void)
{
	is_u64(stopped(1), 1, "a thread that sleeps while it holds the GIL keeps it");
	is_u64(stopped(4) + stopped(8), 2,
	       "a thread that ran for 2 ms before it was stopped kept the GIL");
	start();
	run(100 * MS, 7, 0);
	new_thread(110 * MS, 8, 7);
	request(120 * MS, 8);
	asks(125 * MS, 8);
	feed(125500000, 7, EV_SCHED_OUT, EV(.sched = { .prev_state = 4 }));
	run(149500000, 7, 0);
	turn(150, 7, frame("spin", 3));
	acquire(150 * MS, 8);
	is_u64(overdue_holds("spin"), 0,
	       "a thread that was stopped all the time did not keep the GIL");
}

/* Holds of 7: first overdue ones, each 10 ms longer than the request, then holds that are released
 * in time. */
static unsigned stolen(unsigned overdue, unsigned obedient, uint64_t stolen_ms)
{
	uint64_t at = 110;

	begin_with(&(struct model_options){ .start_ns = 100 * MS,
	                                    .end_ns = 2000 * MS,
	                                    .start_pid = 7,
	                                    .start_tid = 7,
	                                    .stolen_ns = stolen_ms * MS });
	run(100 * MS, 7, 0);
	new_thread(101 * MS, 8, 7);
	for (unsigned i = 0; i < overdue + obedient; i++) {
		uint64_t end = at + (i < overdue ? 15 : 6);

		request(at * MS, 8);
		asks((at + 5) * MS, 8);
		turn(end, 7, frame("spin", 3));
		acquire(end * MS, 8);
		release((end + 1) * MS, 8);
		acquire((end + 1) * MS, 7);
		at = end + 2;
	}
	return overdue_holds("spin");
}

static void test_stolen(void)
{
	is_u64(stolen(2, 0, 0), 2, "without stolen time, overdue holds are proven");
	is_u64(stolen(2, 0, 100), 0, "a hypervisor may have had the CPU, so they are not proven");
	is_u64(stolen(4, 0, 30), 4, "holds that lasted longer than all stolen time are proven");
	is_u64(stolen(5, 0, 100), 5,
	       "they are proven if nearly all holds of the function are overdue");
	is_u64(stolen(5, 4, 100), 0, "they are not proven if the function mostly releases in time");
}

/* A sleep whose end is not recorded: part of it may have been runnable time; 9 was runnable for 30
 * ms. */
static unsigned unsure(uint64_t asleep_ms)
{
	start();
	run(100 * MS, 7, 0);
	new_thread(101 * MS, 9, 7);
	run(101 * MS, 9, 1);
	preempted(102 * MS, 9);
	run(132 * MS, 9, 1);
	new_thread(140 * MS, 8, 7);
	request(141 * MS, 8);
	asks(146 * MS, 8);
	leaves(146 * MS, 7);
	run((146 + asleep_ms) * MS, 7, 0);
	turn(146 + asleep_ms, 7, frame("spin", 3));
	acquire((146 + asleep_ms) * MS, 8);
	return overdue_holds("spin");
}

static void test_unsure(void)
{
	is_u64(unsure(20), 0,
	       "an unrecorded wake-up may hide as much runnable time as other threads had");
	is_u64(unsure(50), 1, "it cannot hide more");
}

static void test_sums(void)
{
	uint64_t held = 0, wait = 0, charged = 0;

	start();
	for (uint32_t t = 8; t < 12; t++)
		new_thread((102 + t) * MS, t, 7);
	for (uint64_t t = 130; t < 900; t += 11) {
		turn(t, 7, frame(t % 2 ? "odd" : "even", (uint32_t)t % 5));
		request((t + 1) * MS, 8 + (uint32_t)t % 4);
		acquire((t + 2) * MS, 7);
		acquire((t + 4) * MS, 8 + (uint32_t)t % 4); /* ends 7's hold */
		release((t + 7) * MS, 8 + (uint32_t)t % 4);
	}
	find_hogs();
	for (size_t i = 0; i < hogs.v.n; i++) {
		held += hogs.v.v[i].hold_ns;
		wait += hogs.v.v[i].wait_ns;
	}
	for (size_t i = 0; i < m->blame.n; i++)
		charged += m->blame.v[i].holder < MODEL_UNKNOWN ? m->blame.v[i].wait_ns : 0;
	is_u64(held, m->gils.v[0].held_ns, "every hold is in one row");
	is_u64(wait, charged, "the waiting is what blame charges to holders");
}

/* So many threads wait during each hold, without making requests, that only some of the waits are
 * examined. */
static void test_bounded(uint32_t threads, uint64_t bounded)
{
	begin_with(&(struct model_options){
		.start_ns = 100 * MS, .end_ns = 2000 * MS, .start_pid = 7, .start_tid = 7 });
	for (uint32_t t = 0; t < threads; t++) {
		new_thread(101 * MS, 20 + t, 7);
		request(102 * MS, 20 + t);
	}
	for (uint64_t t = 110; t < 1910; t += 9) {
		turn(t, 7, frame("crunch", 3));
		acquire(t * MS, 7);
	}
	find_hogs();
	ok(bounded ? hogs.bounded > bounded : !hogs.bounded,
	   "%u threads, 200 holds: %" PRIu64 " were not examined completely", threads,
	   hogs.bounded);
}

int main(void)
{
	test_late();
	test_asked();
	test_inferred();
	test_obedient();
	test_off_cpu();
	test_no_cpu();
	test_proof();
	test_proof_of_hold();
	test_samples();
	test_native();
	test_collections();
	test_stopped();
	test_stolen();
	test_unsure();
	test_sums();
	test_bounded(10, 0);
	test_bounded(100, 100);
	hogs_done(&hogs);
	stacks_free(stacks);
	model_free(m);
	names_free(names);
	return done_testing();
}

/* SPDX-License-Identifier: MIT */
/* Waits without a GIL: for locks, and during stops of the world. */
#include "report/html/encode.h"
#include "report/html/meta.h"

#include "model-events.h"

#define LOCK  0x7f0a
#define WORLD 0x9028

static void begin_off(void)
{
	begin_with(&(struct model_options){
		.start_ns = 100, .end_ns = 1000, .start_pid = 7, .start_tid = 7, .gil_off = true });
	new_thread(110, 8, 7);
	new_thread(120, 9, 7);
}

static void waits(uint64_t from, uint64_t to, uint32_t tid, uint64_t lock, uint32_t frame)
{
	feed(from, tid, EV_PARK,
	     EV(.park = { .address = lock, .kind = PARK_LOCK, .frame = frame }));
	parked(to, tid);
}

static void test_lock(void)
{
	begin_off();
	waits(200, 300, 8, LOCK, 5);
	finish();
	is_str(gil_lane(8), "110:N 200:L 300:N 1000",
	       "a lock wait lasts from the call that parks to its return");
	is_u64(thread(8)->gil.spans.v[1].gil.frame, 5, "its frame is that of the call");
	is_u64(lock_blame(8, MODEL_UNKNOWN), 100,
	       "a wait without a release is charged to an unknown thread");
	is_str(gil_lane(7), "100:N 1000", "no thread holds a GIL at the start");
	is_u64(m->gil_events, 0, "there are no GIL events");
	is_u64(m->caveats[CAVEAT_NO_GIL_EVENTS], 0, "the lack of GIL events is not a caveat");
	is_u64(m->locks.n, 1, "there is one lock");
	is_u64(m->locks.v[0].wait_ns, 100, "the lock has the sum of its waits");
}

/* How long the coarse picture shows the thread as waiting. */
static uint64_t shown_waiting(uint32_t tid, bool locks)
{
	static struct gil_parts parts;
	uint64_t ns = 0;

	gil_parts_init(&parts, m, model_find_thread(m, tid), locks);
	for (unsigned i = 0; i < GIL_PARTS; i++)
		ns += parts.ns[PART_WAIT][i];
	return ns;
}

/* With a GIL, a thread releases it before it waits for a lock of the program. */
static void test_with_gil(void)
{
	begin_whole();
	new_thread(110, 8, 7);
	release(140, 7);
	released(141, 7);
	request(150, 8);
	acquire(151, 8);
	feed(200, 8, EV_RELEASE, EV(.gil = { .address = gil_now, .frame = 3 }));
	released(201, 8);
	parks(210, 8, LOCK, PARK_LOCK);
	unparks(300, 7, LOCK);
	parked(310, 8);
	request(312, 8);
	acquire(320, 8);
	finish();
	is_str(gil_lane(8), "110:N 150:F 151:H 200:N 210:L 310:N 312:F 320:H/ 1000",
	       "the wait for the lock is a part of the time without the GIL");
	is_u64(thread(8)->gil.spans.v[4].gil.frame, 3,
	       "its frame is that in which the GIL was released");
	is_u64(lock_blame(8, 7), 90, "it is charged to the thread that released the lock");
	is_u64(lock_blame(8, MODEL_NONE), 10, "until it did");
	is_u64(shown_waiting(8, false), 0, "the picture of the GIL does not show it as a wait");
	is_u64(shown_waiting(8, true), 100, "that of what blocks threads without a GIL does");
}

static void test_releases(void)
{
	struct model_blocked_list list = { 0 };
	uint64_t work = 2;

	begin_off();
	unparks(150, 7, LOCK);
	parks(200, 8, LOCK, PARK_LOCK);
	parks(220, 9, LOCK, PARK_LOCK);
	unparks(300, 7, LOCK);
	parked(310, 8);
	unparks(400, 8, LOCK);
	parked(420, 9);
	unparks(500, 9, LOCK);
	finish();
	is_u64(lock_blame(8, 7), 100, "a wait up to a release is charged to the releasing thread");
	ok(m->locks.v[0].most_waiters == 2 && m->locks.v[0].wanted_ns == 220 &&
	           m->locks.v[0].releases == 2,
	   "two threads waited at a time, for so long, until two releases");
	is_u64(lock_blame(8, MODEL_NONE), 10,
	       "the time after the last release is charged to no thread");
	is_u64(lock_blame(9, 7), 80, "the first of two releases ends the first stretch");
	is_u64(lock_blame(9, 8), 100, "the second release ends the second stretch");
	is_u64(lock_blame(9, MODEL_NONE), 20, "after the last release the lock is free");
	is_u64(thread(9)->longest_lock_wait_ns, 200, "the longest lock wait is the complete wait");
	ok(model_blocked(m, model_find_thread(m, 9), 1, &work, &list) && !work,
	   "each release of a wait is work");
	ok(list.v.n == 3 && list.v.v[0].start_ns == 220 && list.v.v[1].start_ns == 300 &&
	           list.v.v[2].end_ns == 420 && list.v.v[2].by == MODEL_NONE,
	   "the stretches of a wait cover the wait");
	ok(model_blocked(m, model_find_thread(m, 9), 0, &work, &list),
	   "a span that is not a wait is no work");
	is_u64(list.v.n, 3, "a span that is not a wait has no stretches");
	list.v.n = 0;
	work = 1;
	ok(!model_blocked(m, model_find_thread(m, 9), 1, &work, &list) && list.v.n == 2 &&
	           list.v.v[0].end_ns == 300 && list.v.v[1].by == MODEL_UNKNOWN &&
	           list.v.v[1].start_ns == 300 && list.v.v[1].end_ns == 420,
	   "the wait after the last release that may be examined is charged to an unknown thread");
	vec_done(&list.v);
}

/* 8 got the lock, and it is not known from whom: that may not be charged to the next that releases it. */
static void test_missed(void)
{
	begin_off();
	parks(200, 8, LOCK, PARK_LOCK);
	parks(220, 9, LOCK, PARK_LOCK);
	feed(300, 8, EV_PARKED, EV(.flags = EVF_MISSED));
	unparks(400, 8, LOCK);
	parked(420, 9);
	finish();
	is_u64(lock_blame(8, MODEL_UNKNOWN), 100, "a release that was not recorded is unknown");
	is_u64(lock_blame(9, MODEL_UNKNOWN), 80, "of all threads that wait for the lock");
	is_u64(lock_blame(9, 8), 100, "the next holder is not charged for it");
	is_u64(lock_blame(9, MODEL_NONE), 20, "after the last release the lock is free");
}

/* 7 releases the lock twice in a row, then 8 and 7 do in turn, each for longer than before. */
static void test_page(void)
{
	struct model_blocked_list list;
	uint64_t work, t = 220;

	begin_with(&(struct model_options){ .start_ns = 100,
	                                    .end_ns = 100000,
	                                    .start_pid = 7,
	                                    .start_tid = 7,
	                                    .gil_off = true });
	new_thread(110, 8, 7);
	new_thread(120, 9, 7);
	parks(200, 9, LOCK, PARK_LOCK);
	unparks(210, 7, LOCK);
	unparks(220, 7, LOCK);
	for (uint32_t i = 0; i < 100; i++)
		unparks(t += 30 + i, i % 2 ? 7 : 8, LOCK);
	parked(t, 9);
	finish();
	work = model_blocked_work(m);
	released_find(&list, m, model_find_thread(m, 9), &work);
	if (is_u64(list.v.n, RELEASED_ROWS, "the page gets a limited number of stretches")) {
		is_u64(list.v.v[RELEASED_ROWS - 1].end_ns, t, "the longest stretches are kept");
		ok(list.v.v[0].start_ns < list.v.v[1].start_ns, "stretches are in order of time");
	}
	vec_done(&list.v);
	work = 10;
	released_find(&list, m, model_find_thread(m, 9), &work);
	ok(list.v.n == 10 && list.v.v[0].start_ns == 200 && list.v.v[0].end_ns == 220 &&
	           list.v.v[1].start_ns == 220,
	   "neighbours that are charged to the same thread are one stretch");
	vec_done(&list.v);
}

static void test_own(void)
{
	begin_off();
	parks(200, 8, LOCK, PARK_LOCK);
	unparks(210, 8, LOCK);
	parked(250, 8);
	finish();
	is_u64(lock_blame(8, MODEL_NONE), 50,
	       "a wait that the thread ended itself is charged to no thread");
}

static void test_world(void)
{
	begin_off();
	stops_world(200, 7);
	feed(210, 8, EV_PARK, EV(.park = { .address = WORLD, .kind = PARK_WORLD, .frame = 6 }));
	parks(205, 7, 0x1234, PARK_EVENT);
	parked(206, 7);
	starts_world(300, 7);
	unparks(302, 7, WORLD);
	started_world(305, 7);
	parked(310, 8);
	finish();
	is_str(gil_lane(7), "100:N 200:X 305:N 1000",
	       "stopping the world lasts from the request to the end of the restart");
	is_u64(thread(7)->gil.spans.v[1].gil.frame, 9,
	       "the function that stopped the world is known");
	is_str(gil_lane(8), "110:N 210:T 310:N 1000",
	       "a thread is stopped from parking to its return");
	is_u64(thread(8)->gil.spans.v[1].gil.frame, 6,
	       "the function in which the thread was stopped is known");
	is_u64(lock_blame(8, 7), 92, "the stop is charged to the thread that ended it");
	is_u64(lock_blame(8, MODEL_NONE), 8, "the wake-up is charged to no thread");
	is_u64(thread(8)->stops, 1, "stops are counted");
	is_u64(thread(7)->worlds_stopped, 1, "stops of the world are counted");
	is_u64(thread(7)->longest_stopping_ns, 105, "the longest stop of the world is known");
}

/* A thread that had noticed the request to stop and was released before it slept. */
#define STOP_EVENT 0x5004

/* As the library records it: the thread waits for the others, and looks after a while. */
static void test_late(void)
{
	begin_off();
	parks(190, 9, WORLD + 0x100, PARK_WORLD);
	feed(200, 7, EV_STOP_WORLD,
	     EV(.flags = EVF_COLLECTS, .park = { .address = STOP_EVENT, .frame = 5 }));
	feed(250, 7, EV_STOPPED_WORLD, EV(.flags = EVF_LOOKS));
	feed(251, 7, EV_LATE, EV(.park = { .address = 8, .frame = 6 }));
	feed(252, 7, EV_STOP_WORLD,
	     EV(.flags = EVF_COLLECTS, .park = { .address = STOP_EVENT, .frame = 5 }));
	feed(300, 8, EV_UNPARK, EV(.park = { .address = STOP_EVENT, .frame = 7 }));
	feed(301, 7, EV_STOPPED_WORLD, EV(0));
	parks(302, 8, WORLD, PARK_WORLD);
	starts_world(400, 7);
	unparks(400, 7, WORLD);
	unparks(410, 7, WORLD + 0x100);
	parked(420, 8);
	parked(430, 9);
	finish();
	is_u64(m->stops.n, 1, "a thread that looks for itself goes on stopping the world");
	is_u64(m->stops.v[0].request_ns, 190,
	       "a stop was requested before the first thread stopped");
	is_u64(m->stops.v[0].stopped_ns, 301, "and took until the last one had");
	ok(m->stops.v[0].collects, "it is a collection");
	ok(m->threads.v[m->stops.v[0].last].tid == 8, "the last thread is the one that says so");
	is_u64(m->stops.v[0].last_frame, 6, "in what it ran while others waited for it");
	is_str(gil_lane(7), "100:N 190:X^ 410:N 1000", "the stop lasts until all may continue");
}

/* The thread that stops the world does something else before any other one sleeps. */
static void test_brief(void)
{
	begin_off();
	feed(200, 7, EV_STOP_WORLD, EV(.park = { .address = STOP_EVENT }));
	feed(250, 7, EV_STOPPED_WORLD, EV(0));
	parks(400, 7, LOCK, PARK_LOCK);
	parked(500, 7);
	finish();
	ok(m->stops.v[0].last == MODEL_NONE, "a thread that nobody saw is not the last one");
	is_u64(thread(7)->gil_ns[GIL_STOPPING], 50,
	       "a stop whose end is not recorded ends at once");
	is_u64(thread(7)->gil_ns[GIL_LOCK_WAIT], 100, "and is followed by a wait");
}

static void test_spin(void)
{
	begin_off();
	feed(200, 8, EV_SPIN, EV(.park = { .address = LOCK, .kind = PARK_LOCK, .frame = 4 }));
	feed(250, 8, EV_SPUN, EV(0));
	parks(260, 8, LOCK, PARK_LOCK);
	unparks(300, 9, LOCK);
	parked(300, 8);
	finish();
	is_u64(thread(8)->gil_ns[GIL_SPINNING], 50, "a thread that spins does not sleep");
	is_u64(thread(8)->gil_ns[GIL_LOCK_WAIT], 40, "as it does then");
	is_u64(model_thread_no_gil_ns(thread(8)), thread(8)->end_ns - thread(8)->start_ns,
	       "both are without a GIL");
	ok(m->locks.v[0].spins == 1 && m->locks.v[0].spin_ns == 50 && m->locks.v[0].wait_ns == 40,
	   "for the same lock");
	is_u64(lock_blame(8, 9), 40, "of which only the sleep is charged");
}

static void test_world_missed(void)
{
	begin_off();
	stops_world(200, 7);
	parks(210, 8, WORLD, PARK_WORLD);
	starts_world(300, 7);
	unparks(302, 7, WORLD);
	parked(310, 8);
	stops_world(400, 7);
	starts_world(500, 7);
	unparks(502, 7, WORLD);
	parks(503, 8, WORLD, PARK_WORLD);
	parked(505, 8);
	stops_world(600, 7);
	parks(610, 8, WORLD, PARK_WORLD);
	parked(620, 8);
	finish();
	is_u64(lock_blame(8, 7), 92, "only the first stop is charged to the other thread");
	is_u64(lock_blame(8, MODEL_NONE), 8 + 2,
	       "a thread that sleeps after the restart was already released");
	is_u64(lock_blame(8, MODEL_UNKNOWN), 10,
	       "a stop without a release since its last sleep is charged to an unknown thread");
}

static void test_world_no_return(void)
{
	begin_off();
	stops_world(200, 7);
	starts_world(300, 7);
	unparks(302, 7, WORLD);
	parks(400, 7, LOCK, PARK_LOCK);
	parked(410, 7);
	started_world(500, 7);
	stops_world(600, 7);
	finish();
	is_str(gil_lane(7), "100:N 200:X 300:N 400:L 410:N 600:X 1000",
	       "a return that is missing, or follows another event, ends nothing");
}

/* A thread that was there before. */
static void test_before_start(void)
{
	begin_with(&(struct model_options){
		.start_ns = 100, .end_ns = 1000, .start_pid = 7, .start_tid = 7, .gil_off = true });
	new_thread(50, 8, 7);
	parks(200, 8, LOCK, PARK_LOCK);
	parked(300, 8);
	finish();
	is_str(gil_lane(8), "100:N 200:L 300:N 1000",
	       "a thread that exists when tracing starts has no GIL if that is off");
}

static void test_idle(void)
{
	begin_off();
	parks(500, 9, LOCK, PARK_EVENT);
	parked(600, 9);
	finish();
	is_str(gil_lane(9), "120:N 1000", "waiting for an event is not a lock wait");
	is_u64(m->lock_blame.n, 0, "there is no lock blame");
}

/* A lock that 7 releases, but has not taken, is a signal for all threads that wait for it, but for
 * those that are known to wait for their turn. */
static void test_signal(void)
{
	begin_off();
	new_thread(130, 10, 7);
	parks(200, 8, LOCK, PARK_LOCK);
	parks(220, 9, LOCK, PARK_LOCK);
	feed(240, 10, EV_PARK,
	     EV(.flags = EVF_TURN, .park = { .address = LOCK, .kind = PARK_LOCK }));
	feed(300, 7, EV_UNPARK, EV(.flags = EVF_SIGNAL, .park = { .address = LOCK }));
	parked(320, 9);
	parked(330, 10);
	parks(400, 9, LOCK, PARK_LOCK);
	unparks(500, 7, LOCK);
	parked(520, 9);
	finish();
	is_str(gil_lane(8), "110:N 1000", "a thread that still waits for a signal is idle");
	is_str(gil_lane(9), "120:N 400:L 520:N 1000",
	       "so was the one that got it; another wait is for a lock");
	is_u64(thread(9)->signals.n, 1, "there was one signal");
	is_u64(thread(9)->signals.v[0].from_ns, 220, "for which it waited from the start");
	is_u64(thread(9)->signals.v[0].by, model_find_thread(m, 7), "and which 7 sent");
	is_str(gil_lane(10), "130:N 240:L 330:N 1000", "a turn is waited for");
}

/* It is not known which thread took the lock, before the library was loaded. */
static void doubts(uint64_t t, uint32_t tid)
{
	feed(t, tid, EV_PARK,
	     EV(.flags = EVF_DOUBT, .park = { .address = LOCK, .kind = PARK_LOCK }));
}

static void test_doubt(void)
{
	begin_off();
	doubts(200, 8);
	parked(300, 8);
	doubts(310, 8);
	doubts(320, 9);
	unparks(400, 7, LOCK);
	parked(420, 9);
	parked(430, 8);
	doubts(500, 8);
	finish();
	is_str(gil_lane(8), "110:N 310:L 430:N 1000",
	       "a wait is for a lock only if it was released meanwhile");
	is_str(gil_lane(9), "120:N 320:L 420:N 1000", "for all threads that wait for it");
}

static void test_module(void)
{
	begin_off();
	is_u64(m->imports.n, 0, "no import needs the GIL");
	for (unsigned i = 0; i < 2; i++)
		model_feed(m, &EV(.time_ns = 50, .pid = 7 + i, .type = EV_NEEDS_GIL,
		                  .import = { .name = names_id(names, "old", 3), .frame = 3 }));
	ok(!m->imports_known, "there may have been others");
	model_feed(m, &EV(.time_ns = 50, .pid = 7, .type = EV_NEEDS_GIL));
	model_feed(m, &EV(.time_ns = 60, .pid = 7, .type = EV_NEEDS_GIL,
	                  .import = { .name = names_id(names, "more", 4) }));
	ok(!m->imports.v[0].module, "a name is not looked up while the source may add names");
	finish();
	is_u64(m->imports.n, 2, "two imports before tracing started, one of them in a child, too");
	is_str(m->imports.v[0].module, "old", "the first one");
	is_u64(m->imports.v[0].frame, 3, "and where");
	is_str(m->imports.v[1].module, "more", "the other one");
	ok(m->imports_known, "these are all");
}

/* A lock of an object whose type is known. */
static void parks_for(uint64_t t, uint32_t tid, const char *type)
{
	feed(t, tid, EV_PARK,
	     EV(.park = { .address = LOCK,
	                  .kind = PARK_LOCK,
	                  .of = type ? names_id(names, type, strlen(type)) : 0 }));
}

static void test_type(void)
{
	begin_off();
	parks_for(200, 8, "list");
	parked(300, 8);
	parks_for(400, 8, "dict");
	parked(500, 8);
	parks_for(600, 8, NULL);
	is_str(m->locks.v[0].of, "", "a type is not looked up while the source may add names");
	finish();
	is_str(m->locks.v[0].of, "list", "a lock has the type of its object");
	ok(m->locks.n == 2 && !strcmp(m->locks.v[1].of, "dict") && m->locks.v[1].waits == 2,
	   "another object at its address has another lock");
}

static void test_lost(void)
{
	begin_off();
	parks(200, 8, LOCK, PARK_LOCK);
	cpu_now = 0;
	loses(250, 300, -1, 5);
	parked(400, 8);
	finish();
	is_str(gil_lane(8), "110:N 200:L 250:?x 1000",
	       "the end of a wait does not tell what came before it");
}

static void test_exit(void)
{
	begin_off();
	parks(200, 8, LOCK, PARK_LOCK);
	ends(300, 8);
	parks(300, 9, LOCK, PARK_LOCK);
	finish();
	is_str(gil_lane(8), "110:N 200:L 300", "a wait ends with its thread");
	is_str(gil_lane(9), "120:N 300:L 1000", "a wait ends with the recording");
}

/* A thread begins to wait for a lock that another one has. */
static void wants(uint64_t t, uint32_t tid, uint64_t lock, uint32_t holder)
{
	parks(t, tid, lock, PARK_LOCK);
	feed(t, tid, EV_HOLDER, EV(.holder = { .tid = holder }));
}

static bool is_deadlock(size_t i, uint32_t first, uint32_t second, uint64_t from, uint64_t to)
{
	const struct model_deadlock *d = &m->deadlocks.v[i];

	return i < m->deadlocks.n && d->count == 2 && m->threads.v[d->threads[0]].tid == first &&
	       m->threads.v[d->threads[1]].tid == second && d->start_ns == from && d->end_ns == to;
}

static void test_deadlock(void)
{
	begin_off();
	wants(200, 8, LOCK, 9);
	wants(220, 9, LOCK + 16, 8);
	finish();
	ok(is_deadlock(0, 9, 8, 220, 1000), "two threads wait for each other until the end");
	is_u64(lock_blame(8, 9), 800,
	       "a wait that nobody ends is charged to the thread with the lock");
	is_u64(m->deadlocks.n, 1, "which is one deadlock");

	begin_off();
	wants(200, 8, LOCK, 9);
	wants(220, 9, LOCK + 16, 8);
	feed(300, 9, EV_PARKED, EV(.flags = EVF_LEFT));
	unparks(310, 9, LOCK);
	parked(320, 8);
	wants(400, 8, LOCK, 9);
	wants(410, 9, LOCK + 16, 8);
	finish();
	ok(is_deadlock(0, 9, 8, 220, 300), "one of the threads gives up");
	is_u64(m->deadlocks.n, 1, "the same threads are in one deadlock");
	is_u64(m->deadlocks.v[0].times, 2, "twice");

	/* A lock may be released by a thread that did not take it. */
	begin_off();
	wants(200, 8, LOCK, 9);
	wants(220, 9, LOCK + 16, 8);
	unparks(300, 7, LOCK);
	parked(310, 8);
	finish();
	is_u64(m->deadlocks.n, 0, "what ends by a release was no deadlock");

	begin_off();
	wants(200, 8, LOCK, 9);
	wants(220, 9, LOCK + 16, 7);
	wants(240, 7, LOCK + 32, 7);
	finish();
	is_u64(m->deadlocks.n, 0, "nor is a thread that waits for itself: that may be a signal");
}

int main(void)
{
	test_lock();
	test_deadlock();
	test_with_gil();
	test_releases();
	test_missed();
	test_page();
	test_own();
	test_world();
	test_late();
	test_brief();
	test_spin();
	test_world_missed();
	test_world_no_return();
	test_before_start();
	test_idle();
	test_signal();
	test_doubt();
	test_module();
	test_type();
	test_lost();
	test_exit();
	model_free(m);
	names_free(names);
	return done_testing();
}

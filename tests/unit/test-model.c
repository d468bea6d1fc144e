/* SPDX-License-Identifier: MIT */
/* GIL lanes and owners: each rule of the model, with a sequence of events made by hand. */
#include "model-events.h"

static void test_start(void)
{
	begin();
	release(200, 7);
	released(205, 7);
	request(300, 7);
	acquire(310, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 200:N 300:F 310:H/ 1000",
	       "the thread that switches tracing on, and the one that switches it off, hold the "
	       "GIL");
	is_str(owners(0), "100:7 200:- 300:- 310:7 1000", "the GIL has owners from the start");
	is_u64(m->gils.v[0].address, GIL, "the GIL's address is learnt from the first release");
	is_u64(m->gils.n, 1, "there is one GIL");
	is_u64(m->caveats[CAVEAT_OPEN_HOLD], 0, "the hold at the end is not a caveat");
	is_u64(thread(7)->holds, 2, "holds are counted");
	is_u64(thread(7)->releases_probed, 1, "probed releases are counted");
	is_u64(thread(7)->longest_hold_ns, 690, "the longest hold is known");
	is_u64(thread(7)->longest_hold_at_ns, 310, "the start of the longest hold is known");
	is_u64(m->gils.v[0].held_ns, 790, "the held time is the sum of the holds");
	is_u64(m->gils.v[0].wanted_ns, 0, "no time is wanted");
	is_u64(m->gils.v[0].handover_ns, 0, "no time is handover");
}

static void test_no_probes(void)
{
	begin_with(&(struct model_options){ .start_ns = 100,
	                                    .end_ns = 1000,
	                                    .start_pid = 7,
	                                    .start_tid = 7,
	                                    .no_probes = true });
	new_process(200, 20, 7);
	finish();
	is_str(gil_lane(7), "100:? 1000", "without probes no thread is assumed to hold the GIL");
	is_u64(m->gils.n, 0, "without probes there is no GIL");
	is_u64(m->caveats[CAVEAT_FORKED] + m->caveats[CAVEAT_OPEN_HOLD], 0,
	       "without probes no hold is inherited or left open");
	is_u64(m->caveats[CAVEAT_NO_GIL_EVENTS], 0,
	       "without probes the lack of GIL events is not a caveat");
}

static void test_start_unbound(void)
{
	begin();
	new_thread(150, 8, 7);
	request(160, 8);
	release(200, 7);
	acquire(210, 8);
	finish();
	is_str(owners(0), "100:7 160:7+1 200:-+1 210:8 1000",
	       "a request before the first release is for the same GIL");

	begin();
	new_thread(150, 8, 7);
	gil_now = 0x9000;
	request(160, 8);
	acquire(170, 8);
	release(180, 8);
	gil_now = GIL;
	release(200, 7);
	finish();
	is_str(gil_lane(7), "100:H1^ 200:N 1000",
	       "another address in the release moves the hold at the start to that GIL");
	is_u64(m->gils.n, 2, "there are two GILs then");
	is_str(owners(1), "100:7 200:- 1000", "the GIL of the hold at the start has its owners");
	is_str(owners(0), "100:- 160:- 170:8 180:- 1000", "the other GIL was free");

	begin_with(&(struct model_options){ .end_ns = 1000 });
	request(300, 7);
	acquire(310, 7);
	finish();
	is_str(gil_lane(7), "300:W 310:H/ 1000",
	       "without a known start the recording starts with its first event");
	is_str(owners(0), "300:?+1 310:7 1000", "no holder is known then");
	is_u64(blame(7, MODEL_UNKNOWN), 10, "a wait is charged to an unknown thread then");
}

/* The probes fire a moment after the start that the program reports. */
static void test_start_withdrawn(void)
{
	begin();
	new_thread(110, 8, 7);
	request(120, 8);
	request(150, 7);
	acquire(160, 7);
	release(170, 7);
	acquire(180, 8);
	finish();
	is_str(gil_lane(7), "100:? 150:W 160:H 170:N 1000",
	       "a first request before any release makes the hold at the start unknown");
	is_str(owners(0), "100:? 120:?+1 150:?+2 160:7+1 170:-+1 180:8 1000",
	       "the holder is unknown, too");
	is_u64(m->caveats[CAVEAT_INFERRED_RELEASE], 0, "no release is inferred");

	begin();
	new_thread(110, 8, 7);
	request(120, 8);
	acquire(140, 8);
	request(150, 7);
	finish();
	is_str(gil_lane(7), "100:H^! 140:N 150:W/ 1000",
	       "another thread's acquire ends the hold at the start");
}

/* A Python without probes and without the library makes no event; its threads may well have waited
 * for each other. */
static void test_unrecorded_python(void)
{
	begin();
	release(150, 7);
	new_process(200, 20, 7);
	new_process(200, 40, 7);
	new_process(200, 50, 7);
	pid_now = 20;
	execs(210, 20, "python3");
	maps_python(220, 20, 0);
	new_thread(300, 21, 20);
	new_process(400, 30, 20);
	ends(500, 21);
	pid_now = 40;
	execs(610, 40, "python3");
	maps_python(620, 40, 0);
	request(630, 40);
	acquire(640, 40);
	pid_now = 50;
	maps_python(710, 50, EVF_RECORDED);
	maps_python(720, 50, 0);
	pid_now = 20;
	execs(800, 20, "sh");
	pid_now = 7;
	finish();
	is_str(gil_lane(20), "200:N 220:? 800:N 1000", "a Python of whose GIL there is no event");
	is_str(gil_lane(21), "300:? 500", "its threads, too");
	is_str(gil_lane(30), "400:? 1000", "and its children");
	is_str(gil_lane(40), "200:N 630:W1 640:H1/ 1000", "not one whose GIL is recorded");
	is_str(gil_lane(50), "200:N 1000", "nor one that would be recorded if it had a GIL");
	is_u64(m->caveats[CAVEAT_OTHER_PYTHON], 2, "the processes are counted");
}

static void test_before_and_after(void)
{
	begin();
	new_process(10, 20, 7);
	is_called(12, 7, "python3");
	new_thread(20, 9, 7);
	new_thread(21, 10, 7);
	is_called(22, 9, "worker");
	request(30, 9);
	acquire(40, 7);
	ends(50, 10);
	release(200, 7);
	release(1001, 9);
	is_called(1002, 9, "late");
	finish();
	is_str(gil_lane(9), "100:? 1000", "events before the start and after the end are ignored");
	is_str(thread(9)->name, "worker", "names from before the start are kept");
	is_str(thread(7)->name, "python3", "so is the name of the first thread");
	ok(!thread(10), "a thread that ended before the start is not in the model");
	ok(thread(20) && thread(20)->main, "a process that began before the start is in the model");
	is_u64(m->caveats[CAVEAT_UNORDERED], 0, "events before the start are not out of order");
}

static void test_births(void)
{
	begin();
	is_called(110, 7, "main");
	new_thread(150, 8, 7);
	release(200, 7);
	request(250, 8);
	acquire(251, 8);
	release(300, 8);
	ends(320, 8);
	request(400, 9);
	acquire(410, 9);
	finish();
	is_str(gil_lane(8), "150:N 250:F 251:H 300:N 320",
	       "a thread that is born during the recording has no GIL");
	is_str(thread(8)->name, "main", "it has its parent's name");
	is_str(gil_lane(9), "100:N 400:F 410:H/ 1000",
	       "an older thread had no GIL until its request if another thread held it");
	is_str(thread(9)->name, "", "a thread without a known name has an empty name");
	is_u64(m->gils.n, 1, "all threads of a process share the GIL");

	begin();
	new_thread(150, 8, 7);
	release(200, 7);
	request(210, 8);
	acquire(220, 8);
	ends(230, 8);
	leaves(231, 8);
	new_thread(300, 8, 7);
	request(310, 8);
	ends(320, 8);
	finish();
	is_u64(m->threads.n, 3, "a tid that is used again is another thread");
	is_str(lane_text(&m->threads.v[1].gil, "?NHWS", true), "150:N 210: 220:H/ 230",
	       "an exit ends the hold");
	is_u64(m->caveats[CAVEAT_OPEN_HOLD], 1, "an exit during a hold is a caveat");
	is_str(gil_lane(8), "300:N 310:W/ 320", "an exit ends the wait");
	is_u64(m->caveats[CAVEAT_REQUEST_NO_ACQUIRE], 1, "an exit during a wait is a caveat");
	is_str(owners(0), "100:7 200:- 210:- 220:8 230:- 310:-+1 320:- 1000",
	       "the GIL is free after the exit");

	begin();
	new_thread(150, 8, 7);
	new_thread(300, 8, 7);
	finish();
	is_u64(m->threads.v[1].end_ns, 300, "a birth ends the last life of a tid");
}

static void test_fork(void)
{
	begin();
	new_process(200, 20, 7);
	pid_now = 20;
	request(210, 20);
	acquire(220, 20);
	release(230, 20);
	ends(240, 20);
	pid_now = 7;
	release(250, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 250:N 1000", "a fork does not change the parent's hold");
	is_str(gil_lane(20), "200:H1^ 210:F1 220:H1 230:N 240",
	       "the child has its own GIL, which it holds until it takes it again");
	is_u64(m->gils.v[1].pid, 20, "the child's GIL belongs to its process");
	is_u64(m->caveats[CAVEAT_FORKED], 1, "an inherited hold is counted");
	is_u64(m->caveats[CAVEAT_TWO_HOLDERS], 0, "an inherited hold is not a contradiction");
	is_str(owners(1), "200:20 210:- 220:20 230:- 240", "the child's GIL ends with the child");

	begin();
	new_process(200, 20, 7);
	pid_now = 20;
	execs(220, 20, "ls");
	finish();
	is_str(gil_lane(20), "200:H1^/ 220:N 1000", "after exec there is no GIL");
	is_u64(m->caveats[CAVEAT_OPEN_HOLD], 0,
	       "an inherited hold that ends with exec is not a caveat");
	is_str(thread(20)->name, "ls", "after exec the process has its new name");

	begin();
	release(150, 7);
	new_process(200, 20, 7);
	finish();
	is_str(gil_lane(20), "200:N 1000",
	       "a child of a process without the GIL is without it, too");

	begin();
	new_thread(150, 8, 7);
	execs(200, 7, "python3");
	gil_now = 0x8000;
	request(300, 7);
	acquire(301, 7);
	finish();
	is_str(gil_lane(7), "100:H^/ 200:N 300:F 301:H/ 1000",
	       "exec ends the old states, and the next program starts anew");
}

static void test_inferred(void)
{
	begin();
	new_thread(110, 8, 7);
	release(120, 7);
	request(200, 7);
	acquire(210, 7);
	request(250, 8);
	acquire(300, 8);
	request(320, 7);
	release(350, 8);
	acquire(360, 7);
	request(400, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 120:N 200:F 210:H! 300:N 320:W 360:H! 400:W/ 1000",
	       "a release without a probe ends at another thread's acquire or at its own next "
	       "request");
	is_str(gil_lane(8), "110:N 250:W 300:H 350:N 1000",
	       "a probed release ends the hold at its time");
	is_u64(m->caveats[CAVEAT_INFERRED_RELEASE], 2, "inferred releases are counted");
	is_u64(thread(7)->releases_inferred, 2, "inferred releases are counted per thread");
	is_u64(m->caveats[CAVEAT_TWO_HOLDERS], 0, "inferred releases are not a contradiction");
	is_str(owners(0),
	       "100:7 120:- 200:- 210:7 250:7+1 300:8 320:8+1 350:-+1 360:7 400:-+1 1000",
	       "there are never two holders");

	begin();
	new_thread(110, 8, 7);
	request(150, 8);
	acquire(200, 8);
	release(300, 7);
	finish();
	is_u64(m->caveats[CAVEAT_TWO_HOLDERS], 1,
	       "a probed release after another thread's acquire is a contradiction");
	is_str(owners(0), "100:7 150:7+1 200:8 1000",
	       "the contradiction does not change the owners");
}

static void test_save(void)
{
	begin();
	new_thread(110, 8, 7);
	save(200, 7);
	request(205, 8);
	release(210, 7);
	released(215, 7);
	acquire(220, 8);
	save(300, 8);
	request(400, 7);
	acquire(401, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 210:S 215:N 400:F 401:H/ 1000",
	       "EV_SAVE and a following EV_RELEASE are one release, at the time of the latter");
	is_u64(thread(7)->releases_probed, 1, "the release is counted once");
	is_str(gil_lane(8), "110:N 205:W 220:H 300:N 1000", "EV_SAVE alone is the release");
	is_u64(thread(8)->releases_probed, 1, "EV_SAVE alone is not an inferred release");
	is_str(owners(0), "100:7 205:7+1 210:-+1 220:8 300:- 400:- 401:7 1000",
	       "the GIL is held until EV_RELEASE");
	is_u64(m->caveats[CAVEAT_RELEASE_NO_HOLD], 0, "there is no other caveat");

	begin();
	release(150, 7);
	request(200, 7);
	acquire(210, 7);
	save(210, 7);
	release(230, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 150:N 200:F 210:H 230:N 1000",
	       "EV_SAVE and EV_RELEASE extend a hold of length 0, too");
	is_str(owners(0), "100:7 150:- 200:- 210:7 230:- 1000",
	       "the owner of a hold of length 0 is extended, too");

	begin();
	new_thread(110, 8, 7);
	request(150, 8);
	save(200, 7);
	acquire(205, 8);
	release(210, 7);
	release(220, 8);
	finish();
	is_str(owners(0), "100:7 150:7+1 200:-+1 205:8 220:- 1000",
	       "the hold is not extended if another thread had the GIL in between");
	is_u64(m->caveats[CAVEAT_RELEASE_NO_HOLD], 0,
	       "EV_RELEASE then is not a release without a hold");
	is_u64(m->caveats[CAVEAT_TWO_HOLDERS], 1, "EV_RELEASE then is a contradiction");
}

/* 9 has no GIL events; 10 has been waiting since before the start. */
static void bystanders(uint64_t unit)
{
	begin_with(&(struct model_options){
		.start_ns = 100 * unit, .end_ns = 1000 * unit, .start_pid = 7, .start_tid = 7 });
	run(110 * unit, 9, 0);
	run(110 * unit, 10, 0);
	release(200 * unit, 7);
	acquire(300 * unit, 10);
	release(400 * unit, 10);
	finish();
}

static void test_bystanders(void)
{
	bystanders(1000000);
	is_str(gil_lane(9), "100000000:N 1000000000",
	       "a thread did not wait if the GIL was free for long");
	is_str(gil_lane(10), "100000000:? 300000000:H 400000000:N 1000000000",
	       "for an acquire without a request, the start of the wait is unknown");
	bystanders(1);
	is_str(gil_lane(9), "100:? 1000", "a GIL that is free for a short time proves nothing");
}

static void test_switch_wait(void)
{
	begin();
	new_thread(110, 8, 7);
	request(150, 8);
	release(200, 7);
	acquire(210, 8);
	released(230, 7);
	request(231, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 200:S 230:N 231:W/ 1000", "a forced switch is a switch wait");
	is_u64(model_thread_wait_ns(thread(7)), 30 + 769,
	       "a switch wait is part of the waiting time");
	is_u64(thread(7)->waits, 1, "a switch wait is not counted as a wait");
	is_u64(blame(7, 8), 769, "a switch wait is not charged");

	begin();
	release(200, 7);
	released(230, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 200:N 1000", "without a waiter there is no switch wait");

	begin();
	release(200, 7);
	request(300, 7);
	released(310, 7);
	acquire(320, 7);
	released(330, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 200:N 300:F 320:H/ 1000",
	       "a return of drop_gil out of place changes nothing");

	begin();
	released(200, 8);
	finish();
	is_str(gil_lane(8), "100:? 200:N 1000",
	       "a return of drop_gil proves that the thread has no GIL");
}

static void test_missing(void)
{
	begin();
	acquire(200, 8);
	release(300, 8);
	acquire(400, 8);
	acquire(500, 8);
	finish();
	is_str(gil_lane(8), "100:? 200:H 300:N 400:H! 500:H/ 1000",
	       "an acquire without a request starts a hold");
	is_u64(m->caveats[CAVEAT_ACQUIRE_NO_REQUEST], 3, "an acquire without a request is counted");
	is_str(gil_lane(7), "100:H^! 200:N 1000", "it ends another thread's hold");

	begin();
	release(150, 7);
	request(200, 7);
	request(300, 7);
	acquire(310, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 150:N 200:?x 300:F 310:H/ 1000",
	       "between two requests in a row the state is unknown");
	is_u64(m->caveats[CAVEAT_REQUEST_NO_ACQUIRE], 1, "a request without an acquire is counted");

	begin();
	release(150, 7);
	request(200, 7);
	release(300, 7);
	release(400, 7);
	release(450, 9);
	finish();
	is_str(gil_lane(7), "100:H^ 150:N 200:?x 300:N 1000",
	       "a release during a wait makes the wait unknown");
	is_u64(m->caveats[CAVEAT_RELEASE_NO_HOLD], 3, "a release without a hold is counted");
	is_str(gil_lane(9), "100:? 450:N 1000",
	       "a release of an unknown thread proves its state from then on");
	is_str(owners(0), "100:7 150:- 200:? 300:- 1000", "an unknown owner is not a free GIL");
}

static void test_addresses(void)
{
	begin();
	gil_now = 0;
	release(200, 7);
	request(300, 7);
	acquire(310, 7);
	gil_now = GIL;
	release(400, 7);
	gil_now = 0x9000;
	request(500, 7);
	acquire(510, 7);
	gil_now = 0;
	release(600, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 200:N 300:F 310:H 400:N 500:W1 510:H1 600:N 1000",
	       "without an address an event is about the thread's GIL; an acquire is about that of "
	       "the request");
	is_u64(m->gils.v[0].address, GIL, "a GIL gets its address from a later event");
	is_u64(m->gils.v[1].address, 0x9000, "another address is another GIL");

	begin();
	gil_now = 0;
	request(300, 8);
	pid_now = 20;
	request(300, 20);
	finish();
	is_u64(m->gils.n, 2, "without an address an event is about the only GIL of its process");
	is_u64(blame(8, 7), 700, "the wait is charged to the thread that holds it at the start");
	is_u64(blame(20, MODEL_UNKNOWN), 700, "the GIL of another process has an unknown holder");
}

static void test_order(void)
{
	begin();
	release(200, 7);
	request(150, 7);
	acquire(300, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 200:F 300:H/ 1000",
	       "an event out of order happens at the latest time so far");
	is_u64(m->caveats[CAVEAT_UNORDERED], 1, "an event out of order is counted");

	begin_with(&(struct model_options){ .start_ns = 100, .start_tid = 7 });
	finish();
	is_u64(m->end_ns, 100, "an empty recording ends at its start");
	is_u64(m->caveats[CAVEAT_NO_GIL_EVENTS], 1,
	       "an empty recording has the caveat that there are no GIL events");

	begin_with(&(struct model_options){ 0 });
	finish();
	is_u64(m->threads.n, 0, "without a known thread the model is empty");

	begin_with(&(struct model_options){ .start_ns = 100, .start_tid = 7, .start_pid = 7 });
	request(200, 8);
	finish();
	is_u64(m->end_ns, 200, "without a known end the recording ends with its last event");
	is_u64(m->caveats[CAVEAT_OPEN_HOLD], 1, "a hold that is open then is a caveat");
}

/* Breaks a finished model in several ways, to prove that model_check detects each. */
static void test_check(void)
{
	struct error err = { 0 };
	struct model_thread *t;

	begin();
	new_thread(110, 8, 7);
	request(150, 8);
	release(200, 7);
	acquire(210, 8);
	finish();
	t = &m->threads.v[1];
	t->gil.spans.v[2].start_ns -= 30;
	ok(model_check(m, &err) < 0, "model_check detects two holders: %s", err.text);
	t->gil.spans.v[2].start_ns += 30;
	t->gil_ns[GIL_NO]++;
	ok(model_check(m, &err) < 0, "model_check detects a sum that is off by 1 ns: %s", err.text);
	t->gil_ns[GIL_NO]--;
	m->blame.v[0].wait_ns--;
	ok(model_check(m, &err) < 0, "model_check detects blame that is off by 1 ns: %s", err.text);
	m->blame.v[0].wait_ns++;
	m->gils.v[0].owners.v[3].thread = 0;
	ok(model_check(m, &err) < 0, "model_check detects an owner without a hold: %s", err.text);
	m->gils.v[0].owners.v[3].thread = 1;
	ok(model_check(m, &err) == 0, "model_check accepts the unchanged model");
}

static void test_caveats(void)
{
	unsigned missing = 0;

	for (unsigned i = 0; i < CAVEAT_CODES; i++)
		missing += !caveat_kinds[i].name;
	is_u64(missing, 0, "each caveat has a name");
}

/* The frame of a request also ran at the end of the hold before it. */
static void test_frames(void)
{
	const struct span *spans;

	begin();
	release(200, 7);
	feed(210, 7, EV_RELEASED, EV(.pid = 7));
	feed(300, 7, EV_REQUEST, EV(.gil = { .address = GIL, .frame = 5 }));
	acquire(310, 7);
	release(400, 7);
	feed(410, 7, EV_REQUEST, EV(.gil = { .address = GIL }));
	acquire(420, 7);
	finish();
	spans = m->threads.v[0].gil.spans.v;
	ok(spans[0].state == GIL_HOLD && spans[0].gil.frame == 5,
	   "a hold has the frame of the next request");
	for (size_t i = 1, waits = 0; i < m->threads.v[0].gil.spans.n; i++)
		if (spans[i].state == GIL_FREE_WAIT)
			ok(spans[i].gil.frame == (waits++ ? 0 : 5),
			   "a wait has the frame of its own request");
		else
			ok(!spans[i].gil.frame, "other spans have no frame");
}

int main(void)
{
	test_start();
	test_no_probes();
	test_start_unbound();
	test_start_withdrawn();
	test_unrecorded_python();
	test_before_and_after();
	test_births();
	test_fork();
	test_inferred();
	test_save();
	test_bystanders();
	test_switch_wait();
	test_missing();
	test_addresses();
	test_order();
	test_check();
	test_caveats();
	test_frames();
	model_free(m);
	names_free(names);
	return done_testing();
}

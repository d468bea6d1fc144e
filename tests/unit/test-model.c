/* SPDX-License-Identifier: MIT */
/* GIL lanes and owners: each rule of DESIGN 2 and 5 by a sequence made by hand. */
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
	       "who switches tracing on holds the GIL, and who switches it off");
	is_str(owners(0), "100:7 200:- 300:- 310:7 1000", "the GIL has owners from the start");
	is_u64(m->gils.v[0].address, GIL, "its address is learnt from the first release");
	is_u64(m->gils.n, 1, "and there is one GIL");
	is_u64(m->caveats[CAVEAT_OPEN_HOLD], 0, "the hold at the end is no caveat");
	is_u64(thread(7)->holds, 2, "holds are counted");
	is_u64(thread(7)->releases_probed, 1, "and probed releases");
	is_u64(thread(7)->longest_hold_ns, 690, "the longest hold");
	is_u64(thread(7)->longest_hold_at_ns, 310, "and where it is");
	is_u64(m->gils.v[0].held_ns, 790, "held");
	is_u64(m->gils.v[0].wanted_ns, 0, "not wanted by anybody else");
	is_u64(m->gils.v[0].handover_ns, 0, "nor handed over");
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
	is_str(gil_lane(7), "100:? 1000", "without probes nobody is taken to hold the GIL");
	is_u64(m->gils.n, 0, "and there is none");
	is_u64(m->caveats[CAVEAT_FORKED] + m->caveats[CAVEAT_OPEN_HOLD], 0,
	       "to inherit or to keep");
	is_u64(m->caveats[CAVEAT_NO_GIL_EVENTS], 0, "and that no probe fired is no news");
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
	       "unless the release says another: nobody's acquire ended that hold");
	is_u64(m->gils.n, 2, "then there are two GILs");
	is_str(owners(1), "100:7 200:- 1000", "each with its owners");
	is_str(owners(0), "100:- 160:- 170:8 180:- 1000", "and the other one was free");

	begin_with(&(struct model_options){ .end_ns = 1000 });
	request(300, 7);
	acquire(310, 7);
	finish();
	is_str(gil_lane(7), "300:W 310:H/ 1000", "an unknown start is the first event");
	is_str(owners(0), "300:?+1 310:7 1000", "and nobody is known to have held the GIL");
	is_u64(blame(7, MODEL_UNKNOWN), 10, "nor is a wait for it charged to anybody");
}

/* The probes fire a moment after the start that the program says. */
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
	       "a request before any release: it cannot be said how long it held");
	is_str(owners(0), "100:? 120:?+1 150:?+2 160:7+1 170:-+1 180:8 1000", "nor who did");
	is_u64(m->caveats[CAVEAT_INFERRED_RELEASE], 0, "and nothing is inferred");

	begin();
	new_thread(110, 8, 7);
	request(120, 8);
	acquire(140, 8);
	request(150, 7);
	finish();
	is_str(gil_lane(7), "100:H^! 140:N 150:W/ 1000", "unless another one took it meanwhile");
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
	is_str(gil_lane(9), "100:? 1000", "events before the start and after the end are left out");
	is_str(thread(9)->name, "worker", "but names are kept");
	is_str(thread(7)->name, "python3", "of the first thread too");
	ok(!thread(10), "a thread that ended before the start is not shown");
	ok(thread(20) && thread(20)->main, "a process that began before it is");
	is_u64(m->caveats[CAVEAT_UNORDERED], 0, "none of that is out of order");
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
	is_str(gil_lane(8), "150:N 250:F 251:H 300:N 320", "a thread born in it has no GIL");
	is_str(thread(8)->name, "main", "and its parent's name");
	is_str(gil_lane(9), "100:N 400:F 410:H/ 1000",
	       "one from before had none until it asked: another one had it");
	is_str(thread(9)->name, "", "and has no name");
	is_u64(m->gils.n, 1, "all of one process share the GIL");

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
	is_u64(m->caveats[CAVEAT_OPEN_HOLD], 1, "which is a caveat");
	is_str(gil_lane(8), "300:N 310:W/ 320", "and the wait");
	is_u64(m->caveats[CAVEAT_REQUEST_NO_ACQUIRE], 1, "which is one too");
	is_str(owners(0), "100:7 200:- 210:- 220:8 230:- 310:-+1 320:- 1000",
	       "the GIL is free again");

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
	is_str(gil_lane(7), "100:H^ 250:N 1000", "a fork leaves the parent's hold alone");
	is_str(gil_lane(20), "200:H1^ 210:F1 220:H1 230:N 240",
	       "the child has its own GIL, held until it takes it anew");
	is_u64(m->gils.v[1].pid, 20, "of its own process");
	is_u64(m->caveats[CAVEAT_FORKED], 1, "which is counted");
	is_u64(m->caveats[CAVEAT_TWO_HOLDERS], 0, "and contradicts nothing");
	is_str(owners(1), "200:20 210:- 220:20 230:- 240", "its GIL ends with it");

	begin();
	new_process(200, 20, 7);
	pid_now = 20;
	execs(220, 20, "ls");
	finish();
	is_str(gil_lane(20), "200:H1^/ 220:N 1000", "another program has no GIL");
	is_u64(m->caveats[CAVEAT_OPEN_HOLD], 0, "an inherited hold that ends so is no caveat");
	is_str(thread(20)->name, "ls", "but its own name");

	begin();
	release(150, 7);
	new_process(200, 20, 7);
	finish();
	is_str(gil_lane(20), "200:N 1000", "who forks without the GIL has a child without");

	begin();
	new_thread(150, 8, 7);
	execs(200, 7, "python3");
	gil_now = 0x8000;
	request(300, 7);
	acquire(301, 7);
	finish();
	is_str(gil_lane(7), "100:H^/ 200:N 300:F 301:H/ 1000",
	       "exec ends what was known; the next program is a new beginning");
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
	       "a release that no probe saw ends at another's acquire or the own request");
	is_str(gil_lane(8), "110:N 250:W 300:H 350:N 1000", "a probed one where it is");
	is_u64(m->caveats[CAVEAT_INFERRED_RELEASE], 2, "inferred releases are counted");
	is_u64(thread(7)->releases_inferred, 2, "by thread");
	is_u64(m->caveats[CAVEAT_TWO_HOLDERS], 0, "and are no contradiction");
	is_str(owners(0),
	       "100:7 120:- 200:- 210:7 250:7+1 300:8 320:8+1 350:-+1 360:7 400:-+1 1000",
	       "at no instant two holders");

	begin();
	new_thread(110, 8, 7);
	request(150, 8);
	acquire(200, 8);
	release(300, 7);
	finish();
	is_u64(m->caveats[CAVEAT_TWO_HOLDERS], 1,
	       "a probed release after another's acquire is a contradiction");
	is_str(owners(0), "100:7 150:7+1 200:8 1000", "that changes nothing");
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
	       "EV_SAVE and then EV_RELEASE are one release, the latter");
	is_u64(thread(7)->releases_probed, 1, "counted once");
	is_str(gil_lane(8), "110:N 205:W 220:H 300:N 1000", "EV_SAVE alone is the release");
	is_u64(thread(8)->releases_probed, 1, "and not an inferred one");
	is_str(owners(0), "100:7 205:7+1 210:-+1 220:8 300:- 400:- 401:7 1000",
	       "meanwhile the GIL was held");
	is_u64(m->caveats[CAVEAT_RELEASE_NO_HOLD], 0, "and nothing else");

	begin();
	release(150, 7);
	request(200, 7);
	acquire(210, 7);
	save(210, 7);
	release(230, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 150:N 200:F 210:H 230:N 1000",
	       "even of a hold that just began");
	is_str(owners(0), "100:7 150:- 200:- 210:7 230:- 1000", "and its owner too");

	begin();
	new_thread(110, 8, 7);
	request(150, 8);
	save(200, 7);
	acquire(205, 8);
	release(210, 7);
	release(220, 8);
	finish();
	is_str(owners(0), "100:7 150:7+1 200:-+1 205:8 220:- 1000",
	       "not so if another one has had the GIL in between");
	is_u64(m->caveats[CAVEAT_RELEASE_NO_HOLD], 0, "which is a contradiction");
	is_u64(m->caveats[CAVEAT_TWO_HOLDERS], 1, "and counted as one");
}

/* 9 never has to do with the GIL, 10 waits for it since before. */
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
	is_str(gil_lane(9), "100000000:N 1000000000", "a GIL that is free for long: nobody waits");
	is_str(gil_lane(10), "100000000:? 300000000:H 400000000:N 1000000000",
	       "who gets it without having asked waited since when is not known");
	bystanders(1);
	is_str(gil_lane(9), "100:? 1000", "free for too short a time to tell");
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
	is_u64(model_thread_wait_ns(thread(7)), 30 + 769, "which is part of the wait");
	is_u64(thread(7)->waits, 1, "but no wait of its own");
	is_u64(blame(7, 8), 769, "and charged to nobody");

	begin();
	release(200, 7);
	released(230, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 200:N 1000", "nobody waits, so nobody asked to let go");

	begin();
	release(200, 7);
	request(300, 7);
	released(310, 7);
	acquire(320, 7);
	released(330, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 200:N 300:F 320:H/ 1000",
	       "a return of drop_gil out of place says nothing");

	begin();
	released(200, 8);
	finish();
	is_str(gil_lane(8), "100:? 200:N 1000", "but that its thread has no GIL");
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
	       "an acquire without a request is a hold");
	is_u64(m->caveats[CAVEAT_ACQUIRE_NO_REQUEST], 3, "and counted");
	is_str(gil_lane(7), "100:H^! 200:N 1000", "it ends another's");

	begin();
	release(150, 7);
	request(200, 7);
	request(300, 7);
	acquire(310, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 150:N 200:?x 300:F 310:H/ 1000",
	       "two requests in a row: what was between is unknown");
	is_u64(m->caveats[CAVEAT_REQUEST_NO_ACQUIRE], 1, "and counted");

	begin();
	release(150, 7);
	request(200, 7);
	release(300, 7);
	release(400, 7);
	release(450, 9);
	finish();
	is_str(gil_lane(7), "100:H^ 150:N 200:?x 300:N 1000",
	       "a release in a wait: it had the GIL, we do not know since when");
	is_u64(m->caveats[CAVEAT_RELEASE_NO_HOLD], 3, "and counted");
	is_str(gil_lane(9), "100:? 450:N 1000", "a release of who was unknown");
	is_str(owners(0), "100:7 150:- 200:? 300:- 1000", "unknown is not free");
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
	       "without an address it is the thread's GIL; the acquire takes it from the request");
	is_u64(m->gils.v[0].address, GIL, "which gets its address when one comes");
	is_u64(m->gils.v[1].address, 0x9000, "another address is another GIL");

	begin();
	gil_now = 0;
	request(300, 8);
	pid_now = 20;
	request(300, 20);
	finish();
	is_u64(m->gils.n, 2, "without an address it is the process's only GIL");
	is_u64(blame(8, 7), 700, "held by who started");
	is_u64(blame(20, MODEL_UNKNOWN), 700, "and another process's is not");
}

static void test_order(void)
{
	begin();
	release(200, 7);
	request(150, 7);
	acquire(300, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 200:F 300:H/ 1000",
	       "an event out of order happens at the latest time before it");
	is_u64(m->caveats[CAVEAT_UNORDERED], 1, "and is counted");

	begin_with(&(struct model_options){ .start_ns = 100, .start_tid = 7 });
	finish();
	is_u64(m->end_ns, 100, "a recording of nothing ends where it starts");
	is_u64(m->caveats[CAVEAT_NO_GIL_EVENTS], 1, "and says so");

	begin_with(&(struct model_options){ 0 });
	finish();
	is_u64(m->threads.n, 0, "and has nobody in it if nobody is known");

	begin_with(&(struct model_options){ .start_ns = 100, .start_tid = 7, .start_pid = 7 });
	request(200, 8);
	finish();
	is_u64(m->end_ns, 200, "without an end it is the last event");
	is_u64(m->caveats[CAVEAT_OPEN_HOLD], 1, "and who holds then is a caveat");
}

/* A check that finds nothing is no check. */
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
	ok(model_check(m, &err) < 0, "model_check sees two holders: %s", err.text);
	t->gil.spans.v[2].start_ns += 30;
	t->gil_ns[GIL_NO]++;
	ok(model_check(m, &err) < 0, "and a sum that is off by 1 ns: %s", err.text);
	t->gil_ns[GIL_NO]--;
	m->blame.v[0].wait_ns--;
	ok(model_check(m, &err) < 0, "and blame that is: %s", err.text);
	m->blame.v[0].wait_ns++;
	m->gils.v[0].owners.v[3].thread = 0;
	ok(model_check(m, &err) < 0, "and an owner without a hold: %s", err.text);
	m->gils.v[0].owners.v[3].thread = 1;
	ok(model_check(m, &err) == 0, "and otherwise nothing");
}

static void test_caveats(void)
{
	unsigned missing = 0;

	for (unsigned i = 0; i < CAVEAT_CODES; i++)
		missing += !caveat_name(i);
	is_u64(missing, 0, "each caveat has a name");
}

/* The frame of a request ran at the end of the hold before it, too. */
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
	   "a hold gets the next request's frame");
	for (size_t i = 1, waits = 0; i < m->threads.v[0].gil.spans.n; i++)
		if (spans[i].state == GIL_FREE_WAIT)
			ok(spans[i].gil.frame == (waits++ ? 0 : 5), "a wait has its own request's");
		else
			ok(!spans[i].gil.frame, "nothing else has any");
}

int main(void)
{
	test_start();
	test_no_probes();
	test_start_unbound();
	test_start_withdrawn();
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

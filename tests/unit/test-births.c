/* SPDX-License-Identifier: MIT */
/* Recordings in which births of threads may be lost: when a life begins, and what is known. */
#include "model-events.h"

/* Records of births may be missing, too. */
static void test_birth(void)
{
	begin_whole();
	run(110, 7, 0);
	loses(130, 200, -1, 5);
	request(300, 8);
	finish();
	is_str(gil_lane(8), "130:?x 200:N^ 300:W/ 1000",
	       "the life of a thread whose birth may be lost begins with the loss");
	is_str(cpu_lane(8), "130:?x 200:R^ 1000", "its CPU state is unknown until the loss ends");

	begin_whole();
	run(110, 7, 0);
	request(120, 8);
	loses(130, 200, -1, 5);
	finish();
	is_str(gil_lane(8), "100:N 120:W 130:?x 1000",
	       "a thread that is seen before the loss existed before");

	begin_whole();
	is_called(50, 8, "old");
	loses(130, 200, -1, 5);
	request(300, 8);
	finish();
	is_str(gil_lane(8), "100:? 130:?x 200:N^ 300:W/ 1000",
	       "and so did a thread that is known from before the recording");

	begin_whole();
	run(110, 7, 0);
	loses(150, 160, 0, 5);
	run(170, 9, 0);
	run(180, 8, 1);
	loses(120, 200, 1, 5);
	run(300, 8, 1);
	finish();
	is_str(cpu_lane(9), "120:?x 1000", "a loss that is reported later may have begun earlier");
	is_str(cpu_lane(8), "120:?x 300:R 1000", "it makes the life begin earlier");

	begin_whole();
	cpu_now = 1;
	request(170, 8);
	acquire(180, 8);
	loses(130, 200, 0, 5);
	release(300, 8);
	finish();
	is_str(gil_lane(8), "130:?x 200:H^ 300:N 1000",
	       "a loss that is reported after the thread's first event concerns its birth");
	is_str(cpu_lane(8), "130:? 1000", "without switches its CPU state is unknown");
}

/* A tid is used again, and the second birth may be lost. */
static void test_rebirth(void)
{
	begin_whole();
	new_thread(110, 8, 7);
	run(115, 8, 1);
	ends(130, 8);
	loses(200, 250, 1, 5);
	request(300, 8);
	finish();
	is_str(gil_lane(8), "200:?x 250:N^ 300:W/ 1000",
	       "the second thread of a tid does not live since the first one ended");

	begin_whole();
	new_thread(110, 8, 7);
	run(115, 8, 1);
	loses(120, 125, 1, 5);
	ends(130, 8);
	request(300, 8);
	finish();
	is_str(gil_lane(8), "130:N 300:W/ 1000", "an earlier loss has no record of its birth");
}

/* Births are recorded by perf, which may lose records that the library has, and vice versa. */
static void test_birth_part(void)
{
	begin_whole();
	run(110, 7, 0);
	loses_part(130, 200, EVF_NO_GIL);
	request(300, 8);
	run(310, 9, 1);
	finish();
	is_str(gil_lane(8), "130:? 200:N 300:W/ 1000",
	       "if no GIL event is lost, no thread is suspected to hold a GIL before its birth");
	is_str(cpu_lane(8), "130:?x 200:R^ 1000", "its CPU state is unknown");

	begin_whole();
	run(110, 7, 0);
	request(170, 8);
	loses_part(130, 200, EVF_NO_GIL);
	finish();
	is_str(gil_lane(8), "130:? 170:W/ 1000", "its GIL events during the loss are kept");

	begin_whole();
	run(110, 7, 0);
	request(170, 8);
	loses_part(130, 200, EVF_GIL_ONLY);
	run(300, 9, 1);
	leaves(310, 10);
	finish();
	is_str(gil_lane(8), "100:N 130:?x 1000", "lost GIL events contain no births");
	is_str(cpu_lane(10), "100:R 310:S 1000", "of threads that are seen later, neither");
}

/* A thread that was born during a loss held the GIL since, as its release proves. */
static void test_hold(void)
{
	begin_whole();
	cpu_now = 0;
	save(120, 7);
	loses(130, 200, 1, 5);
	cpu_now = 1;
	save(300, 8);
	cpu_now = 0;
	release(310, 7);
	finish();
	is_str(gil_lane(8), "130:?x 200:H^ 300:N 1000", "the release proves a hold");
	is_str(gil_lane(7), "100:H^ 120:N 1000", "no other thread's hold lasts until after it");
}

/* Everything before tracing starts is known, as of a flight recorder. */
static void test_before(void)
{
	begin_with(&(struct model_options){
		.start_ns = 100, .end_ns = 1000, .start_pid = 7, .before_known = true });
	request(10, 7);
	acquire(10, 7);
	new_thread(20, 8, 7);
	request(30, 8);
	new_thread(40, 9, 7);
	request(42, 9);
	acquire(43, 9);
	release(44, 9);
	parks(50, 9, 0xa0, PARK_LOCK);
	new_thread(52, 10, 7);
	new_thread(54, 11, 7);
	parks(56, 11, 0xa0, PARK_LOCK);
	parked(58, 11);
	ends(60, 11);
	release(200, 7);
	acquire(200, 8);
	unparks(300, 8, 0xa0);
	parked(310, 9);
	finish();
	is_str(gil_lane(7), "100:F 100:H 200:N 1000",
	       "a thread that had taken the GIL holds it from the start");
	is_str(gil_lane(8), "100:W 200:H/ 1000", "one that had requested it waits from the start");
	is_str(gil_lane(9), "100:L 310:N 1000",
	       "one that waited for a lock does so from the start");
	is_str(gil_lane(10), "100:N 1000",
	       "one that had no event since it began is without the GIL");
	is_str(gil_lane(11), "no such thread", "one that has ended is not there");
	is_u64(blame(8, 7), 100, "waits are charged from the start on");
}

int main(void)
{
	test_before();
	test_birth();
	test_rebirth();
	test_birth_part();
	test_hold();
	model_free(m);
	names_free(names);
	return done_testing();
}

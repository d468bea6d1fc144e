/* SPDX-License-Identifier: MIT */
/* GIL lanes: each rule of DESIGN 2 and 5 by a sequence made by hand. */
#include "model-events.h"

static void test_start(void)
{
	begin();
	release(200, 7);
	released(205, 7);
	request(300, 7);
	acquire(310, 7);
	finish();
	is_str(gil_lane(7), "100:H^ 200:S 205:N 300:W 310:H/ 1000",
	       "who switches tracing on holds the GIL, and who switches it off");
	is_str(owners(0), "100:7 200:- 300:-+1 310:7 1000", "the GIL is bound to its address");
	is_u64(m->gils.v[0].address, GIL, "at its first release");
	is_u64(m->gils.n, 1, "and there is one");
	is_u64(m->caveats[CAVEAT_OPEN_HOLD], 0, "the hold at the end is no caveat");
	is_u64(thread(7)->holds, 2, "holds are counted");
	is_u64(thread(7)->releases_probed, 1, "and probed releases");
	is_u64(thread(7)->longest_hold_ns, 690, "the longest hold");
	is_u64(thread(7)->longest_hold_at_ns, 310, "and where it is");

	begin();
	new_thread(150, 8, 7);
	request(160, 8);
	release(200, 7);
	acquire(210, 8);
	finish();
	is_str(owners(0), "100:7 160:7+1 200:-+1 210:8 1000", "owner and waiters at each change");
	is_u64(blame(8, 7), 40, "a wait before the first release is charged to who started");
	is_u64(blame(8, MODEL_NONE), 10, "and then the handover");

	begin_with(&(struct model_options){ .end_ns = 1000 });
	request(300, 7);
	acquire(310, 7);
	finish();
	is_str(gil_lane(7), "300:W 310:H/ 1000", "without a start it is the first event");
	is_u64(blame(7, MODEL_UNKNOWN), 10, "and nobody is known to have held the GIL");
}

int main(void)
{
	test_start();
	model_free(m);
	names_free(names);
	return done_testing();
}

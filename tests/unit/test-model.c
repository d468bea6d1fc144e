/* SPDX-License-Identifier: MIT */
/* What the tables in tests/unit/model do not show: the checks of the model itself, frames and stacks. */
#include "trace/stacks.h"

#include "model-events.h"

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

int main(void)
{
	test_check();
	test_caveats();
	test_frames();
	test_stacks();
	model_free(m);
	names_free(names);
	return done_testing();
}

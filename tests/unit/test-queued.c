/* SPDX-License-Identifier: MIT */
/* Runnable spans, and which programs had the CPU during them, as the page gets them. */
#include "model-events.h"

#include "report/html/encode.h"

#define US 1000

static void begin_long(void)
{
	begin_with(&(struct model_options){
		.start_ns = 100, .end_ns = 9000 * US, .start_pid = 7, .start_tid = 7 });
}

static void is_row(const struct queued_row *row, uint64_t start_ns, uint32_t name, uint64_t ns,
                   const char *what)
{
	ok(row->start_ns == start_ns && row->by == MODEL_NONE && row->name == name && row->ns == ns,
	   "%s", what);
}

static void test_rows(void)
{
	struct queued q;

	begin_long();
	run(200, 7, 0);
	picks(1000 * US, 0, 7, 99, 3, EVF_PREEMPT);
	picks(1040 * US, 0, 99, 98, 4, EVF_PREEMPT);
	picks(1100 * US, 0, 98, 97, 3, EVF_PREEMPT);
	picks(1200 * US, 0, 97, 7, 0, 0);
	picks(1300 * US, 0, 7, 99, 3, EVF_PREEMPT);
	picks(1399 * US, 0, 99, 7, 0, 0);
	picks(2000 * US, 0, 7, 99, 3, EVF_PREEMPT);
	picks(2100 * US, 0, 99, 7, 0, 0);
	finish();
	queued_find(&q, m, model_find_thread(m, 7));
	if (is_u64(q.rows.n, 3, "two runnable spans have rows; one is too short")) {
		is_row(&q.rows.v[0], 1000 * US, 3, 140 * US,
		       "the program with the most time comes first");
		is_row(&q.rows.v[1], 1000 * US, 4, 60 * US, "other programs follow");
		is_row(&q.rows.v[2], 2000 * US, 3, 100 * US, "the next runnable span follows");
		is_u64((uint64_t)q.rows.v[0].cpu, 0, "a row has its CPU");
	}
	vec_done(&q.rows);
}

static void test_many(void)
{
	struct queued q;

	begin_long();
	run(200, 7, 0);
	for (uint32_t i = 0; i < 20; i++)
		picks((1000 + 10 * i) * US, 0, i ? 99 : 7, 98, i + 1, i ? 0 : EVF_PREEMPT);
	picks(1300 * US, 0, 98, 7, 0, 0);
	finish();
	queued_find(&q, m, model_find_thread(m, 7));
	if (is_u64(q.rows.n, QUEUED_ROWS, "a span has a limited number of rows"))
		is_row(&q.rows.v[0], 1000 * US, 20, 110 * US, "the row with the most time is kept");
	vec_done(&q.rows);

	begin_long();
	run(200, 7, 0);
	preempted(1000 * US, 7);
	run(2000 * US, 7, 0);
	finish();
	queued_find(&q, m, model_find_thread(m, 7));
	is_u64(q.rows.n, 0, "without records of all CPUs there are no rows");
}

int main(void)
{
	test_rows();
	test_many();
	model_free(m);
	names_free(names);
	return done_testing();
}

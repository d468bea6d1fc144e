/* SPDX-License-Identifier: MIT */
/* The fast half of a group of tasks beside its slowest part: classes, quantiles and causes. */
#include "analysis/tasks.h"

#include <stdlib.h>
#include <string.h>

#include "model/span.h"
#include "tap.h"
#include "trace/names.h"

#define TASKS 40
#define SLOT  10000 /* each task has this time to itself */

static struct names *names;

static uint32_t name_of(const char *text)
{
	return names_id(names, text, strlen(text));
}

static void add_step(struct aio *aio, uint32_t task, uint64_t from_ns, uint64_t wait_ns,
                     uint64_t late_ns, uint64_t run_ns, uint32_t place, uint32_t line)
{
	struct aio_task *t = &aio->v.v[task];
	uint64_t ready_ns = from_ns + wait_ns, start_ns = ready_ns + late_ns;

	*vec_push(&aio->steps) = (struct aio_step){
		.task = task,
		.from_ns = from_ns,
		.ready_ns = ready_ns,
		.known_ns = ready_ns,
		.start_ns = start_ns,
		.end_ns = start_ns + run_ns,
		.waker = { 0, AIO_NONE, 0 },
		.place = place,
		.line = line,
	};
	t->steps++;
	t->last_ns = start_ns + run_ns;
}

/* Task i waits 60 ns in read, is late for 10 and runs for 30 + i. The last two of 40 also wait for 800 ns in
 * query, and are late for 100 more, in 40 of which their thread waits for the GIL. Those after them are no
 * requests: one is alive, one was not seen from its creation. */
static void make(struct aio *aio)
{
	uint32_t read = name_of("read (a.py:1)"), query = name_of("query (a.py:2)");

	for (uint32_t i = 0; i < TASKS + 2; i++) {
		uint64_t from_ns = (uint64_t)SLOT * (i + 1);

		*vec_push(&aio->v) = (struct aio_task){
			.pid = 1,
			.function = name_of("handle (a.py:9)"),
			.created = i != TASKS,
			.end = i == TASKS + 1 ? AIO_ALIVE : AIO_DONE,
			.first_ns = from_ns,
			.creator = { 0, AIO_NONE, 0 },
		};
		add_step(aio, i, from_ns, 60, 10, 30 + i, read, 5);
		if (i == TASKS - 1 || i == TASKS - 2)
			add_step(aio, i, from_ns + 100 + i, 800, 100, 5, query, 7);
		if (i >= TASKS)
			add_step(aio, i, from_ns + 100 + i, 9000, 0, 5, query, 7);
	}
}

/* The thread waits for the GIL while the second steps of the slow tasks are late. */
static void make_lane(struct lane *lane)
{
	*vec_push(&lane->spans) = gil_span(0, GIL_NO, 0, 0);
	for (uint32_t i = TASKS - 2; i < TASKS; i++) {
		uint64_t late_ns = (uint64_t)SLOT * (i + 1) + 100 + i + 800;

		*vec_push(&lane->spans) = gil_span(late_ns + 10, GIL_WAIT, 0, 0);
		*vec_push(&lane->spans) = gil_span(late_ns + 50, GIL_HOLD, 0, 0);
	}
	lane->end_ns = SLOT * (TASKS + 3);
}

static const struct request_cause *cause_of(const struct task_requests *r, enum request_state state,
                                            uint32_t line)
{
	static const struct request_cause none;

	for (size_t i = 0; i < r->causes.n; i++)
		if (r->causes.v[i].state == state && r->causes.v[i].line == line)
			return &r->causes.v[i];
	return &none;
}

static void test_causes(const struct task_requests *r)
{
	uint64_t fast_ns = 0, slow_ns = 0;

	is_u64(r->count, TASKS, "only tasks whose whole life is known are requests");
	ok(r->fast == 20 && r->slow == 2, "half of them, and a twentieth");
	is_u64(r->p50_ns, 120, "the median");
	is_u64(r->longest_ns, 60 + 10 + 30 + 39 + 905, "the longest");
	is_u64(r->p99_ns, r->longest_ns, "which is also the 99th percentile of 40");
	is_u64(r->p95_ns, r->longest_ns - 1, "and the 95th");
	ok(r->slowest.n == REQUESTS_SLOWEST && r->slowest.v[0] == TASKS - 1 &&
	           r->slowest.v[1] == TASKS - 2,
	   "the slowest come first");
	ok(r->causes.v[0].state == REQUEST_WAITING && r->causes.v[0].line == 7,
	   "the largest difference is the wait that only the slow ones have");
	is_u64(r->causes.v[0].slow_ns, 1600, "for both of them");
	is_u64(r->causes.v[0].fast_ns, 0, "and none of the fast half");
	is_u64(cause_of(r, REQUEST_WAITING, 5)->fast_ns, 20 * 60, "which waits where all do");
	is_u64(cause_of(r, REQUEST_LATE_GIL, 0)->slow_ns, 80, "a part of being late is the GIL's");
	is_u64(cause_of(r, REQUEST_LATE, 0)->slow_ns, 2 * 110 - 80, "the rest is not");
	for (size_t i = 0; i < r->causes.n; i++) {
		fast_ns += r->causes.v[i].fast_ns;
		slow_ns += r->causes.v[i].slow_ns;
	}
	is_u64(fast_ns, 20 * 100 + 19 * 20 / 2, "the causes are all of the fast half's time");
	is_u64(slow_ns, 2 * r->longest_ns - 1, "and of the slow ones'");
}

/* Of many causes, the rest is one. */
static void test_many(struct aio *aio, const struct recording_pass *pass)
{
	struct task_groups groups;
	const struct task_requests *r;
	uint64_t ns = 0;

	for (size_t i = 0; i < aio->steps.n; i++)
		aio->steps.v[i].line = (uint32_t)i + 1;
	task_groups_init(&groups, pass);
	r = &groups.v.v[0].requests;
	is_u64(r->causes.n, REQUESTS_CAUSES, "so many causes");
	is_u64(r->causes.v[REQUESTS_CAUSES - 1].state, REQUEST_OTHERS, "the last is the others");
	for (size_t i = 0; i < r->causes.n; i++)
		ns += r->causes.v[i].fast_ns;
	is_u64(ns, 20 * 100 + 19 * 20 / 2, "with their time");
	task_groups_done(&groups);
}

static void test_few(struct aio *aio, const struct recording_pass *pass)
{
	struct task_groups groups;

	aio->v.n = REQUESTS_LEAST - 1;
	aio->steps.n = REQUESTS_LEAST - 1;
	task_groups_init(&groups, pass);
	is_u64(groups.v.v[0].requests.count, 0, "a few tasks have no fast half");
	task_groups_done(&groups);
}

int main(void)
{
	struct aio aio = { 0 };
	struct slice_thread thread = { .pid = 1, .tid = 1 };
	struct slices slices = { .threads = &thread, .thread_count = 1, .tasks = &aio };
	struct model_thread of_model = { .pid = 1, .tid = 1 };
	struct model model = { .threads = { &of_model, 1, 1 }, .end_ns = SLOT * (TASKS + 3) };
	const struct recording_pass pass = { .slices = &slices, .model = &model };
	struct task_groups groups;

	names = slices.names = names_new();
	make(&aio);
	make_lane(&of_model.gil);
	task_groups_init(&groups, &pass);
	is_u64(groups.v.n, 1, "one group");
	test_causes(&groups.v.v[0].requests);
	task_groups_done(&groups);
	test_many(&aio, &pass);
	test_few(&aio, &pass);
	vec_done(&of_model.gil.spans);
	aio_done(&aio);
	names_free(names);
	return done_testing();
}

/* SPDX-License-Identifier: MIT */
/* How many tasks ran, were late and waited over time: small cases, and sums of random cases. */
#include <stdlib.h>
#include <string.h>

#include "analysis/tasks.h"
#include "tap.h"

#define TASKS 40

struct fixture {
	struct aio aio;
	struct slices slices;
	struct model model;
	struct recording_pass pass;
	struct task_groups groups;
	uint32_t of[TASKS];
};

static void init(struct fixture *f, uint64_t start_ns, uint64_t end_ns)
{
	*f = (struct fixture){ .model = { .start_ns = start_ns, .end_ns = end_ns } };
	f->slices.tasks = &f->aio;
	f->pass.slices = &f->slices;
	f->pass.model = &f->model;
	f->groups.of = f->of;
}

/* Adds the task's first or next step, in group 0. */
static void put(struct fixture *f, uint32_t task, const uint64_t times[4])
{
	while (f->aio.v.n <= task)
		*vec_push(&f->aio.v) = (struct aio_task){ .first_ns = times[0] };
	*vec_push(&f->aio.steps) = (struct aio_step){ .task = task,
		                                      .from_ns = times[0],
		                                      .ready_ns = times[1],
		                                      .start_ns = times[2],
		                                      .end_ns = times[3] };
	f->aio.v.v[task].last_ns = times[3];
}

/* "duration: running late waiting unknown" of each level. */
static void is_levels(struct fixture *f, bool exact, const char *wanted, const char *what)
{
	CLEANUP(task_levels_done) struct task_levels levels;
	char text[512] = "";

	task_levels_init(&levels, &f->groups, &f->pass, 0);
	for (size_t i = 0; i < levels.v.n; i++) {
		const struct task_level *l = &levels.v.v[i];
		size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len, "%s%d: %d %d %d %d", i ? ", " : "",
		         (int)l->dur_ns, (int)l->ns[TASK_RUNNING], (int)l->ns[TASK_LATE],
		         (int)l->ns[TASK_WAITING], (int)l->ns[TASK_UNKNOWN]);
	}
	is_str(text, wanted, "%s", what);
	ok(levels.exact == exact, "the levels are exact: %d", exact);
	aio_done(&f->aio);
}

static void test_small(void)
{
	struct fixture f;

	init(&f, 100, 200);
	put(&f, 0, (uint64_t[]){ 110, 120, 130, 140 });
	is_levels(&f, true, "10: 0 0 0 0, 10: 0 0 10 0, 10: 0 10 0 0, 10: 10 0 0 0, 60: 0 0 0 0",
	          "one step gives its states");

	init(&f, 100, 200);
	put(&f, 0, (uint64_t[]){ 50, 120, 120, 140 });
	put(&f, 1, (uint64_t[]){ 120, 140, 160, 500 });
	is_levels(&f, true, "20: 0 0 20 0, 20: 20 0 20 0, 20: 0 20 0 0, 40: 40 0 0 0",
	          "two tasks are counted within the recording");

	init(&f, 100, 200);
	put(&f, 0, (uint64_t[]){ 100, 110, 110, 120 });
	f.aio.steps.v[0].unknown = true;
	f.aio.v.v[0].ready_ns = 150;
	f.aio.v.v[0].last_ns = 200;
	is_levels(&f, true, "10: 0 0 0 10, 10: 10 0 0 0, 30: 0 0 30 0, 50: 0 50 0 0",
	          "an unknown state, and a task that is ready in the end and never runs again");

	init(&f, 100, 200);
	put(&f, 0, (uint64_t[]){ 100, 110, 120, 130 });
	f.of[0] = 1;
	is_levels(&f, true, "100: 0 0 0 0", "tasks of another group are not counted");

	init(&f, 100, 100);
	put(&f, 0, (uint64_t[]){ 100, 100, 100, 100 });
	is_levels(&f, true, "", "a recording without a length has no levels");
}

static uint32_t draw(uint32_t *seed, uint32_t below)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % below;
}

/* Adds up the levels. Returns whether they are contiguous and no level has more time than
 * possible. */
static bool add_up(const struct task_levels *levels, uint64_t dur_ns, uint64_t sums[TASK_STATES])
{
	for (size_t i = 0; i < levels->v.n; i++) {
		const struct task_level *l = &levels->v.v[i];
		uint64_t all_ns = 0;

		for (unsigned s = 0; s < TASK_STATES; s++) {
			sums[s] += l->ns[s];
			all_ns += l->ns[s];
		}
		if (!l->dur_ns || l->dur_ns > dur_ns || all_ns > TASKS * l->dur_ns)
			return false;
		dur_ns -= l->dur_ns;
	}
	return !dur_ns && levels->v.n <= TASK_LEVELS;
}

static void test_random(unsigned steps, bool exact)
{
	uint64_t wanted[TASK_STATES] = { 0 }, sums[TASK_STATES] = { 0 }, end_ns = 0;
	CLEANUP(task_levels_done) struct task_levels levels;
	uint64_t now[TASKS] = { 0 };
	uint32_t seed = steps;
	struct fixture f;

	init(&f, 0, 0);
	while (steps--) {
		uint32_t task = draw(&seed, TASKS);
		uint64_t times[4] = { now[task] };

		for (unsigned i = 1; i < 4; i++)
			times[i] = times[i - 1] + draw(&seed, 1000);
		put(&f, task, times);
		now[task] = times[3];
		wanted[TASK_WAITING] += times[1] - times[0];
		wanted[TASK_LATE] += times[2] - times[1];
		wanted[TASK_RUNNING] += times[3] - times[2];
		end_ns = times[3] > end_ns ? times[3] : end_ns;
	}
	f.model.end_ns = end_ns;
	task_levels_init(&levels, &f.groups, &f.pass, 0);
	ok(levels.exact == exact, "random steps: the levels are exact: %d", exact);
	ok(add_up(&levels, end_ns, sums), "random steps: the levels are contiguous");
	ok(!memcmp(sums, wanted, sizeof(sums)),
	   "random steps: the levels contain all time of the tasks");
	aio_done(&f.aio);
}

int main(void)
{
	test_small();
	test_random(60, true);
	test_random(130, false);
	test_random(5000, false);
	return done_testing();
}

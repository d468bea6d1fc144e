/* SPDX-License-Identifier: MIT */
/* Recordings constructed to be slow to analyse: the cost must not be quadratic. */
#include <stdlib.h>

#include "analysis/diff.h"
#include "analysis/facts.h"
#include "analysis/hogs.h"
#include "analysis/locks.h"
#include "analysis/patterns.h"
#include "analysis/sampled.h"
#include "model/model.h"
#include "trace/names.h"
#include "trace/samples.h"
#include "trace/source.h"
#include "trace/stacks.h"

#include "growth.h"

/* As many counters as threads. Each thread has one sample. */
static void count_events(size_t n)
{
	struct source source = { .counter_count = n };
	struct model model = { 0 };
	struct recording_pass pass = { .model = &model, .source = &source };
	uint32_t *order = calloc(n, sizeof(*order));
	struct counter_rows rows;
	size_t wrong = 0;

	for (uint32_t i = 0; order && i < n; i++) {
		order[i] = (uint32_t)n - 1 - i;
		*vec_push(&model.threads) = (struct model_thread){ 0 };
		*vec_push(&model.counts) = (struct model_counter_sample){
			.thread = i, .counter = (uint32_t)n - 1 - i / 2 * 2, .value = i
		};
	}
	rows = counters_find(&pass, order);
	for (uint32_t i = 0; i < rows.v.n; i++)
		wrong += rows.v.v[i].thread != n - 1 - i || rows.v.v[i].count != n - 1 - i;
	if (rows.v.n != n || wrong)
		abort();
	vec_done(&rows.v);
	vec_done(&model.counts);
	vec_done(&model.threads);
	free(order);
}

/* ---- samples */

static void add_run(struct samples *s, uint32_t thread, struct sample_run run)
{
	while (s->threads.n <= thread)
		*vec_push(&s->threads) = (struct sample_thread){ .pid = 1 };
	*vec_push(&s->threads.v[thread].runs) = run;
}

/* As many samples as threads, which all wait in all of them for one that has the GIL. */
static void wait_for_sampled(size_t n)
{
	struct names *names = names_new();
	struct samples s = { .names = names, .stacks = stacks_new(names) };
	struct stack_frame frame = { .name = names_id(names, "f", 1) };
	uint32_t stack = stacks_id(s.stacks, &frame);
	struct model model = { 0 };
	struct sampled sampled;

	for (uint32_t i = 0; i < n; i++) {
		*vec_push(&s.times) = i;
		add_run(&s, i, (struct sample_run){ .gil = SAMPLE_GIL_WAITS, .stack = stack });
	}
	s.threads.v[0].runs.v[0].gil = SAMPLE_GIL_HOLDS;
	sampled = sampled_find(&(struct recording_pass){ .model = &model, .samples = &s });
	if (sampled.held != n || sampled.gils.n != 1 || sampled.gils.v[0].held != n ||
	    sampled.places.n != 2 || sampled.places.v[1].waiters != n * (n - 1))
		abort();
	sampled_done(&sampled);
	for (uint32_t i = 0; i < n; i++)
		vec_done(&s.threads.v[i].runs);
	vec_done(&s.threads);
	vec_done(&s.times);
	stacks_free(s.stacks);
	names_free(names);
}

/* ---- patterns */

#define MS 1000000ULL

static void add_thread(struct model *m, enum gil_state state)
{
	struct model_thread t = { .start_ns = m->start_ns, .end_ns = m->end_ns };

	t.gil.end_ns = t.cpu.end_ns = m->end_ns;
	t.cpu_ns[CPU_SLEEPING] = (m->end_ns - m->start_ns) / 2;
	*vec_push(&t.gil.spans) = (struct span){ .state = (uint8_t)state };
	*vec_push(&m->threads) = t;
}

/* Sleeps without the GIL half the time, until woken by threads 0 and 1 in turn. */
static void add_sleeper(struct model *m)
{
	struct lane *lane;

	add_thread(m, GIL_NO);
	lane = &m->threads.v[m->threads.n - 1].cpu;
	for (uint32_t i = 0; i < 2 * PATTERN_COUNT; i++) {
		*vec_push(&lane->spans) = (struct span){ .start_ns = 10 * MS * i,
			                                 .state = CPU_SLEEPING,
			                                 .cpu.waker = MODEL_NONE };
		*vec_push(&lane->spans) = (struct span){ .start_ns = 10 * MS * i + 5 * MS,
			                                 .state = CPU_RUNNABLE,
			                                 .cpu.waker = i % 2 };
	}
}

/* Threads that all sleep until they are woken by a thread that waits for the GIL. */
static void sleep_across_waits(size_t n)
{
	struct model m = { .end_ns = 20 * MS * PATTERN_COUNT };
	struct patterns patterns;

	add_thread(&m, GIL_WAIT);
	add_thread(&m, GIL_WAIT);
	for (size_t i = 0; i < n; i++)
		add_sleeper(&m);
	patterns_find(&patterns, &m, NULL, HOGS_INTERVAL_NS);
	if (patterns.v.n != 2 * n)
		abort();
	for (size_t i = 0; i < 2 * n; i++)
		if (patterns.v.v[i].count != PATTERN_COUNT || patterns.v.v[i].other > 1)
			abort();
	patterns_done(&patterns);
	for (size_t i = 0; i < m.threads.n; i++) {
		vec_done(&m.threads.v[i].gil.spans);
		vec_done(&m.threads.v[i].cpu.spans);
	}
	vec_done(&m.threads);
}

/* ---- summaries */

static void sum_up(struct summary *s, size_t n, const char *prefix)
{
	for (size_t i = 0; i < 2 * n; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%s%zu", prefix, i % n);
		summary_add_thread(s, &(struct summary_thread){ .name = name, .total_ns = 1 });
		summary_add_function(s, &(struct summary_function){ "f", name, 1, 1, 1, 0, 0 });
	}
	summary_finish(s);
}

/* Threads and functions that each have another name. */
static void compare_names(size_t n)
{
	struct summary a = { 0 }, b = { 0 };
	struct diff diff;

	sum_up(&a, n, "a");
	sum_up(&b, n, "b");
	sum_up(&b, n, "a");
	diff_init(&diff, &a, &b);
	if (a.threads.v.n != n || a.threads.v.v[0].count != 2 || b.functions.v.n != 2 * n ||
	    diff.threads.v.n != 2 * n || diff.functions.v.n != 2 * n)
		abort();
	diff_done(&diff);
	summary_done(&a);
	summary_done(&b);
}

/* ---- the critical path */

/* Bytes of the critical path of a thread that takes and releases the GIL n times. */
static size_t bytes_of_path(size_t n)
{
	struct names *names = names_new();
	struct source source = { .names = names, .frames = stacks_new(names) };
	struct model *m = model_new(&(struct model_options){ 0 });
	struct recording_pass pass = { .model = m, .source = &source, .locks_known = true };
	struct path path;
	size_t bytes;

	for (size_t i = 0; i < 3 * n; i++)
		model_feed(m, &(struct event){ .type = (uint16_t)(EV_REQUEST + i % 3),
		                               .pid = 1,
		                               .tid = 1,
		                               .time_ns = MS + 100 * i });
	model_finish(m);
	bytes = growth_bytes();
	path = path_find(&pass, NULL);
	bytes = growth_bytes() - bytes;
	if (path.rows.n < 2 || path.rows.v[0].parts < n - 1)
		abort();
	vec_done(&path.rows);
	model_free(m);
	stacks_free(source.frames);
	names_free(names);
	return bytes;
}

static void test_path_memory(void)
{
	size_t few = bytes_of_path(100), many = bytes_of_path(10000);

	if (!ok(many <= few, "the critical path takes no memory for each of its parts"))
		printf("# %zu bytes, %zu bytes\n", few, many);
}

/* ---- a free-threaded interpreter, in which no thread ever holds a GIL */

static void feed_lock(struct model *m, uint64_t t, uint32_t tid, enum event_type type)
{
	model_feed(m, &(struct event){ .time_ns = t,
	                               .pid = 7,
	                               .tid = tid,
	                               .cpu = -1,
	                               .type = (uint16_t)type,
	                               .park = { .address = 0x7f0a, .kind = PARK_LOCK } });
}

/* Two threads wait for each other n times. */
static void wait_for_locks(size_t n)
{
	struct names *names = names_new();
	struct model *m = model_new(&(struct model_options){ .start_ns = 1,
	                                                     .end_ns = n * 40 + 100,
	                                                     .start_pid = 7,
	                                                     .start_tid = 7,
	                                                     .gil_off = true,
	                                                     .names = names });
	struct source source = { .names = names };
	struct recording_pass pass = { .model = m, .source = &source, .locks_known = true };
	struct chains chains;
	struct path path;

	model_feed(m, &(struct event){ .time_ns = 2,
	                               .pid = 7,
	                               .tid = 8,
	                               .cpu = -1,
	                               .type = EV_FORK,
	                               .fork = { .parent_pid = 7, .parent_tid = 7 } });
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < 2; k++) {
			uint64_t t = 10 + 40 * i + 20 * k;

			feed_lock(m, t, 7 + k, EV_PARK);
			feed_lock(m, t + 10, 8 - k, EV_UNPARK);
			feed_lock(m, t + 15, 7 + k, EV_PARKED);
		}
	model_finish(m);
	chains = chains_find(&pass);
	path = path_find(&pass, NULL);
	if (!chains.ns || path.ns != n * 40 + 99)
		abort();
	vec_done(&chains.v);
	vec_done(&path.rows);
	model_free(m);
	names_free(names);
}

int main(void)
{
	growth_ok(wait_for_locks, 4000, "waits for locks without a GIL");
	test_path_memory();

	growth_ok(count_events, 1000, "counters of as many threads");
	growth_ok(wait_for_sampled, 2000, "samples in which all threads wait");
	growth_ok(sleep_across_waits, 500, "threads that sleep until others wake them");
	growth_ok(compare_names, 500, "names of threads and functions");
	return done_testing();
}

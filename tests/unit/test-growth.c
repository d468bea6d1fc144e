/* SPDX-License-Identifier: MIT */
/*
 * Files constructed to be slow: the cost of N records must not be quadratic, whatever they contain.
 * Each case once took minutes or gigabytes.
 */
#include <stdlib.h>
#include <unistd.h>

#include "analysis/facts.h"
#include "analysis/hogs.h"
#include "base/idmap.h"
#include "model/model.h"
#include "perfdata/event_sort.h"
#include "perfdata/header.h"
#include "perfdata/maps.h"
#include "trace/names.h"
#include "trace/perf/from_perf.h"
#include "trace/slices.h"
#include "trace/source.h"

#include "growth.h"
#include "perfbuild.h"

/* The inverse of the usual multiplier of hash tables: their product is 1. */
#define INVERSE 0xf1de83e19937733dULL

static struct error err;

/* ---- tables */

/* Numbers that collide if they are hashed by multiplication, or by their low bits. */
static void put_colliding(size_t n)
{
	struct idmap map = { 0 };
	size_t missing = 0;

	for (uint64_t i = 1; i <= n; i++) {
		idmap_set(&map, i * INVERSE, (uint32_t)i);
		idmap_set(&map, i << 40, (uint32_t)i);
	}
	for (uint64_t i = 1; i <= n; i++)
		missing += idmap_get(&map, i * INVERSE) != i || idmap_get(&map, i << 40) != i;
	if (missing)
		abort();
	idmap_done(&map);
}

/* ---- headers */

static void put_ids(size_t n)
{
	struct perf_header h = { 0 };

	for (uint64_t i = 1; i <= n; i++)
		header_add_id(&h, i * INVERSE, 0);
	if (h.ids.n != n)
		abort();
	header_done(&h);
}

static void read_all(struct str *file)
{
	struct source *source;
	struct event ev;

	if (from_perf_open_memory(&source, file->s, file->len, NULL, &err) < 0)
		abort();
	while (source_next(source, &ev, &err) > 0)
		;
	source_close(source);
	str_done(file);
}

static const struct perf_event_attr tracepoint = {
	.type = PERF_TYPE_TRACEPOINT,
	.config = 7,
	.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
	.sample_id_all = 1,
};

static void put_sample(struct str *b, uint64_t id, uint64_t time_ns)
{
	size_t at = put_begin(b, PERF_RECORD_SAMPLE, 0);

	put64(b, id);
	put32(b, 1);
	put32(b, 1);
	put64(b, time_ns);
	put_end(b, at);
}

/* A new event before each sample. */
static void put_attributes(size_t n)
{
	struct str file = { 0 };

	put_pipe_header(&file);
	for (uint64_t i = 1; i <= n; i++) {
		put_attr(&file, tracepoint, i);
		put_sample(&file, i, i * 1000);
		put_round(&file);
	}
	read_all(&file);
}

/* A record in each round, and none with a time. */
static void put_untimed(size_t n)
{
	CLEANUP(str_done) struct str file = { 0 };
	CLEANUP(perfdata_close) struct perfdata *pd = NULL;
	CLEANUP(event_sort_free) struct event_sort *order = NULL;
	struct perfdata_record rec;
	uint64_t ns;

	put_pipe_header(&file);
	put_attr(&file, (struct perf_event_attr){ .type = PERF_TYPE_SOFTWARE }, 1);
	for (size_t i = 0; i < n; i++) {
		put_record(&file, PERF_RECORD_SAMPLE, NULL);
		put_round(&file);
	}
	if (perfdata_open_memory(&pd, file.s, file.len, &err) < 0)
		abort();
	order = event_sort_new(pd);
	while (event_sort_next(order, &rec, &ns))
		n--;
	if (n)
		abort();
}

static void put_tracing_data(size_t n)
{
	struct str file = { 0 };

	put_pipe_header(&file);
	for (uint64_t i = 1; i <= n; i++) {
		CLEANUP(free) char *text = xasprintf("name: e%zu\nID: %zu\n", (size_t)i, (size_t)i);
		struct perf_event_attr attr = tracepoint;

		attr.config = n - i;
		put_attr(&file, attr, i);
		put_format(&file, "group", text);
	}
	read_all(&file);
}

/* ---- mappings */

#define PAGE 4096

static void map_descending(size_t n)
{
	struct modules *modules = modules_new(false);
	struct maps *maps = maps_new();
	struct module *module = modules_get(modules, "/lib/a.so", NULL);

	for (size_t i = n; i > 0; i--)
		maps_mmap(maps, 1, i * 2 * PAGE, PAGE, 0, module);
	maps_free(maps);
	modules_free(modules);
}

static void map_paths(size_t n)
{
	struct modules *modules = modules_new(false);

	for (size_t i = 0; i < n; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/lib/%zu.so", i);
		modules_get(modules, path, NULL);
	}
	modules_free(modules);
}

/* Memory of n processes that each fork the next one and map one file. */
static size_t bytes_of_forks(size_t n)
{
	struct modules *modules = modules_new(false);
	struct maps *maps = maps_new();
	struct module *module = modules_get(modules, "/lib/a.so", NULL);
	size_t before = growth_bytes(), bytes;

	for (uint32_t pid = 1; pid <= n; pid++) {
		maps_fork(maps, pid + 1, pid);
		maps_mmap(maps, pid + 1, pid * 2 * PAGE, PAGE, 0, module);
	}
	bytes = growth_bytes() - before;
	maps_free(maps);
	modules_free(modules);
	return bytes;
}

static void test_fork_memory(void)
{
	size_t small = bytes_of_forks(500), large = bytes_of_forks(500 * GROWTH_FACTOR);

	if (!ok(large <= 2 * GROWTH_FACTOR * small,
	        "the memory of children that map one file each grows linearly"))
		printf("# %zu bytes, %zu bytes\n", small, large);
}

/* ---- VizTracer */

static void read_one_tid(size_t n)
{
	CLEANUP(str_done) struct str text = { 0 };
	char path[] = "/tmp/test-growth-XXXXXX";
	int fd = mkstemp(path);
	struct slices *slices;

	str_adds(&text, "[");
	for (size_t pid = 1; pid <= n; pid++)
		str_addf(&text,
		         "%s{\"ph\":\"X\",\"pid\":%zu,\"tid\":1,\"ts\":1,\"dur\":1,\"name\":\"f\"}",
		         pid > 1 ? "," : "", pid);
	str_adds(&text, "]");
	if (fd < 0 || write(fd, text.s, text.len) != (ssize_t)text.len)
		abort();
	close(fd);
	if (from_viztracer_read(&slices, path, 0, NULL, &err) < 0)
		abort();
	unlink(path);
	slices_free(slices);
}

/* ---- analysis */

#define MS 1000000

static void feed(struct model *m, enum event_type type, uint32_t tid, uint64_t time_ns)
{
	model_feed(m, &(struct event){ .type = type, .pid = 1, .tid = tid, .time_ns = time_ns });
}

/* Threads that each hold the GIL once, for long, while the next one waits. */
static struct model *chain(size_t n)
{
	struct model *m = model_new(&(struct model_options){ 0 });

	for (uint32_t i = 1; i <= n; i++) {
		feed(m, EV_REQUEST, i, i * 20ULL * MS + MS);
		feed(m, EV_SWITCH_OUT, i, i * 20ULL * MS + MS);
		feed(m, EV_SWITCH_IN, i, i * 20ULL * MS + 6 * MS);
		feed(m, EV_SWITCH_OUT, i, i * 20ULL * MS + 7 * MS);
		feed(m, EV_RELEASE, i - 1, (i + 1) * 20ULL * MS);
		feed(m, EV_ACQUIRE, i, (i + 1) * 20ULL * MS);
	}
	model_finish(m);
	return m;
}

/* Threads that all wait for one thread until the end. */
static void wait_all(size_t n)
{
	struct model *m = model_new(&(struct model_options){ 0 });

	feed(m, EV_REQUEST, 1, MS);
	feed(m, EV_ACQUIRE, 1, MS);
	for (uint32_t i = 2; i <= n; i++)
		feed(m, EV_REQUEST, i, MS + i);
	feed(m, EV_RELEASE, 1, 2 * MS);
	model_finish(m);
	if (m->blame.n < n - 1 || model_check(m, &err) < 0)
		abort();
	model_free(m);
}

static void finish(struct model *m, bool coarse)
{
	model_finish(m);
	if (model_check(m, &err) < 0) {
		printf("# %s\n", err.text);
		abort();
	}
	if (coarse && !m->caveats[CAVEAT_COARSE])
		abort();
}

/* Threads that all wait until each has had the GIL. */
static void wait_in_turn(size_t n)
{
	struct model *m = model_new(&(struct model_options){ 0 });

	for (uint32_t i = 1; i <= n; i++)
		feed(m, EV_REQUEST, i, MS + i);
	for (uint32_t i = 1; i <= n; i++) {
		feed(m, EV_ACQUIRE, i, 100 * MS + 10ULL * i);
		feed(m, EV_RELEASE, i, 100 * MS + 10ULL * i + 5);
	}
	finish(m, n > 10000);
	if (m->blame.n > MODEL_BLAME_ROWS + MODEL_BLAME_ROWS_PER_EVENT * m->gil_events + n)
		abort();
	model_free(m);
}

/* The same, but all waits and all holds end at the same time, so no holder is known. */
static void wait_for_nobody(size_t n)
{
	struct model *m = model_new(&(struct model_options){ 0 });

	feed(m, EV_REQUEST, 1, MS);
	feed(m, EV_ACQUIRE, 1, MS);
	feed(m, EV_RELEASE, 1, MS);
	for (uint32_t i = 1; i <= n; i++)
		feed(m, EV_REQUEST, i, MS + i);
	for (uint32_t i = 1; i <= n; i++) {
		feed(m, EV_ACQUIRE, i, 100 * MS);
		feed(m, EV_RELEASE, i, 100 * MS);
	}
	finish(m, false);
	model_free(m);
}

/* Two threads that take many GILs in turn, and wait for each. */
static void wait_for_many(size_t n)
{
	struct model *m = model_new(&(struct model_options){ 0 });

	for (uint32_t i = 1; i <= n; i++)
		for (enum event_type type = EV_REQUEST; type <= EV_RELEASE; type++)
			for (uint32_t tid = 1; tid <= 2; tid++)
				model_feed(m, &(struct event){
						      .type = type,
						      .pid = 1,
						      .tid = tid,
						      .time_ns = MS + 100 * i + 10 * type + tid,
						      .gil = { .address = 0x1000ULL * i } });
	finish(m, false);
	if (m->gils.n != n || m->blame.n > 4 * n)
		abort();
	model_free(m);
}

static void lose(struct model *m, uint64_t since_ns, uint64_t time_ns, int32_t cpu)
{
	model_feed(m, &(struct event){ .type = EV_LOST,
	                               .cpu = cpu,
	                               .time_ns = time_ns,
	                               .lost = { .since_ns = since_ns, .count = 1 } });
}

static void lose_threads(size_t n)
{
	struct model *m = model_new(&(struct model_options){ 0 });

	for (uint32_t i = 1; i <= n; i++)
		feed(m, EV_REQUEST, i, MS + i);
	for (uint32_t i = 1; i <= n; i++)
		lose(m, 2 * MS + 10 * i, 2 * MS + 10 * i + 5, -1);
	finish(m, n > 10000);
	if (m->caveats[CAVEAT_LOST] != n || m->lost.n != n)
		abort();
	model_free(m);
}

/* Threads that all wait for a lock until each has had it, and threads that are all stopped. */
static void park_all(size_t n)
{
	struct model *m = model_new(&(struct model_options){
		.start_ns = MS, .start_pid = 1, .start_tid = 1, .gil_off = true });

	for (uint32_t i = 2; i <= n; i++)
		model_feed(m, &(struct event){ .type = EV_FORK,
		                               .pid = 1,
		                               .tid = i,
		                               .time_ns = MS + i,
		                               .fork = { .parent_pid = 1, .parent_tid = 1 } });
	for (unsigned kind = 0; kind < 2; kind++) {
		uint64_t start_ns = (kind + 1) * 100ULL * MS;
		uint64_t address = 0x1000 + kind;

		for (uint32_t i = 1; i <= n; i++)
			model_feed(m, &(struct event){
					      .type = EV_PARK,
					      .pid = 1,
					      .tid = i,
					      .time_ns = start_ns + i,
					      .park = { .address = address,
			                                .kind = kind ? PARK_WORLD : PARK_LOCK } });
		for (uint32_t i = 1; i <= n; i++)
			model_feed(m, &(struct event){ .type = EV_UNPARK,
			                               .pid = 1,
			                               .tid = 1000000 + i,
			                               .time_ns = start_ns + MS + 10ULL * i,
			                               .park = { .address = address } });
		for (uint32_t i = 1; i <= n; i++)
			feed(m, EV_PARKED, i, start_ns + 2 * MS + i);
	}
	finish(m, n > 10000);
	if (m->lock_blame.n >
	    MODEL_BLAME_ROWS + MODEL_BLAME_ROWS_PER_EVENT * m->park_events + 4 * n)
		abort();
	model_free(m);
}

/* GILs of a process with many stretches of losses. */
static void lose_gils(size_t n)
{
	struct model *m = model_new(&(struct model_options){ 0 });

	for (uint32_t i = 1; i <= n; i++)
		for (enum event_type type = EV_REQUEST; type <= EV_RELEASE; type++)
			model_feed(m, &(struct event){ .type = type,
			                               .pid = 1,
			                               .tid = 1,
			                               .time_ns = MS + 10 * i + type,
			                               .gil = { .address = 0x1000ULL * i } });
	for (uint32_t i = 1; i <= n; i++) {
		lose(m, 9 * MS + 10 * i, 9 * MS + 10 * i + 3, -1);
		feed(m, EV_REQUEST, 1, 9 * MS + 10 * i + 5);
		feed(m, EV_ACQUIRE, 1, 9 * MS + 10 * i + 6);
		feed(m, EV_RELEASE, 1, 9 * MS + 10 * i + 7);
	}
	finish(m, n > 10000);
	model_free(m);
}

/* Processes that have all lost records. */
static void lose_processes(size_t n)
{
	struct model *m = model_new(&(struct model_options){ 0 });

	for (uint32_t i = 1; i <= n; i++)
		model_feed(m, &(struct event){
				      .type = EV_REQUEST, .pid = i, .tid = i, .time_ns = MS + i });
	lose(m, 2 * MS, 3 * MS, -1);
	finish(m, false);
	model_free(m);
}

/* Losses on any of many CPUs. */
static void lose_cpus(size_t n)
{
	struct model *m = model_new(&(struct model_options){ .all_wakeups = true });

	feed(m, EV_REQUEST, 1, MS);
	model_feed(m, &(struct event){ .type = EV_PICK, .cpu = 8191, .time_ns = 2 * MS });
	for (uint32_t i = 1; i <= n; i++)
		lose(m, 2 * MS + 10 * i, 2 * MS + 10 * i + 5, -1);
	finish(m, false);
	model_free(m);
}

/* Processes with a GIL each. */
static void hold_alone(size_t n)
{
	struct model *m = model_new(&(struct model_options){ 0 });

	for (uint32_t i = 1; i <= n; i++)
		for (enum event_type type = EV_REQUEST; type <= EV_RELEASE; type++)
			model_feed(m, &(struct event){ .type = type,
			                               .pid = i,
			                               .tid = i,
			                               .time_ns = MS + 10 * i + type });
	model_finish(m);
	if (m->gils.n != n || model_check(m, &err) < 0)
		abort();
	model_free(m);
}

static void find_hogs(size_t n)
{
	struct model *m = chain(n);
	struct hogs hogs;

	hogs_find(&hogs, m, NULL, HOGS_INTERVAL_NS);
	if (hogs.overdue.n < n / 2)
		abort();
	hogs_done(&hogs);
	model_free(m);
}

/* Threads that were each runnable while a program of their own had the CPU. */
static void wait_for_cpus(size_t n)
{
	struct names *names = names_new();
	struct source source = { .cpu_names = names };
	struct model model = { 0 };
	struct recording_pass pass = { .model = &model, .source = &source };
	struct cpu_users users;

	for (uint32_t i = 0; i < n; i++) {
		char name[32];
		int len = snprintf(name, sizeof(name), "program-%u", i);

		*vec_push(&model.cpu_blame) = (struct model_cpu_blame){
			i, MODEL_NONE, names_id(names, name, (size_t)len), 5
		};
	}
	users = cpu_users_find(&pass);
	if (users.list.n != n)
		abort();
	vec_done(&users.list);
	vec_done(&model.cpu_blame);
	names_free(names);
}

int main(void)
{
	growth_ok(put_colliding, 4000, "numbers made to collide");
	growth_ok(put_ids, 4000, "event ids made to collide");
	growth_ok(put_attributes, 1000, "an event's attributes before each sample");
	growth_ok(put_untimed, 2000, "rounds of records without times");
	growth_ok(put_tracing_data, 1000, "TRACING_DATA of each event");
	growth_ok(map_descending, 8000, "mappings from the top down");
	growth_ok(map_paths, 1500, "paths of modules");
	test_fork_memory();
	growth_ok(read_one_tid, 3000, "one thread id in many processes");
	growth_ok(wait_all, 6000, "threads that all wait for one");
	growth_ok(wait_in_turn, 1000, "threads that wait until all have had their turn");
	growth_ok(wait_for_nobody, 1000, "waits that end together");
	growth_ok(wait_for_many, 1000, "waits of two threads for many GILs");
	growth_ok(park_all, 2000, "waits for locks and stops of many threads");
	growth_ok(lose_threads, 1000, "losses in which there are many threads");
	growth_ok(lose_gils, 1000, "losses in a process of many GILs");
	growth_ok(lose_processes, 1000, "processes that lost records");
	growth_ok(lose_cpus, 500, "losses on any of many CPUs");
	growth_ok(hold_alone, 2000, "processes with a GIL each");
	growth_ok(find_hogs, 2000, "threads that each hold the GIL for long");
	growth_ok(wait_for_cpus, 1000, "programs that had a CPU");
	return done_testing();
}

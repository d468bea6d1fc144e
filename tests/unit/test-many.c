/* SPDX-License-Identifier: MIT */
/* What the page has of threads that are many: little to read, and all the waiting. */
#include <jansson.h>

#include "analysis/analysis.h"
#include "base/cleanup.h"
#include "report-fixture.h"
#include "report/html/meta.h"
#include "report/json.h"

#include "tap.h"

#define THREADS 150 /* that all waited for each other: 22,350 pairs */

static char names_of[THREADS][16];

/* Thread 3 caused most; 40 and 41 have the longest overlap. */
static void fixture_many(struct fixture *f, bool digits, bool locks)
{
	fixture_init(f, 100);
	for (uint32_t i = 0; i < THREADS; i++) {
		if (digits)
			snprintf(names_of[i], sizeof(names_of[i]), "pool-%u", i);
		else
			snprintf(names_of[i], sizeof(names_of[i]), "p%c%c", 'a' + (int)(i % 26),
			         'a' + (int)(i / 26));
		fixture_thread(f, 7, 100 + i, names_of[i]);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		for (uint32_t k = 0; k < THREADS; k++) {
			uint64_t ns = k == 3 ? 9000 : 1000 + i;
			uint64_t longest_ns = i == 40 && k == 41 ? 800 : 300;
			uint64_t at_ns = FIXTURE_START + i;

			if (i == k)
				continue;
			if (locks)
				*vec_push(&f->model.lock_blame) = (struct model_lock_blame){
					i, k, GIL_LOCK_WAIT, ns, longest_ns, at_ns
				};
			else
				*vec_push(&f->model.blame) =
					(struct model_blame){ i, k, 0, ns, longest_ns, at_ns, 0 };
		}
	f->pass.free_threaded = f->report.python.free_threaded = locks;
}

static uint64_t all_waiting(const struct fixture *f)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < f->model.blame.n; i++)
		sum += f->model.blame.v[i].wait_ns;
	for (size_t i = 0; i < f->model.lock_blame.n; i++)
		sum += f->model.lock_blame.v[i].wait_ns;
	return sum;
}

static uint64_t sum_of(const json_t *rows, const char *key)
{
	uint64_t sum = 0;
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
		sum += (uint64_t)json_integer_value(key ? json_object_get(row, key) : row);
	return sum;
}

static int64_t number(const json_t *row, const char *key)
{
	return json_integer_value(json_object_get(row, key));
}

/* The page's meta, or its document with most rows; caller decrefs. */
static json_t *written(const struct recording *report, size_t most)
{
	struct rows rows = { 0 };
	CLEANUP(free) char *text = NULL;
	json_error_t bad;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct analysis *a = analysis_new(report);
	json_t *ret;

	if (most)
		json_write(a, most, out);
	else
		meta_write(a, &rows, NULL, out);
	analysis_free(a);
	fclose(out);
	ret = json_loadb(text, len, 0, &bad);
	ok(ret != NULL, "it is JSON %s", ret ? "" : bad.text);
	return ret;
}

static const json_t *pass_of(const json_t *meta)
{
	return json_array_get(json_object_get(meta, "passes"), 0);
}

/* What is said of one group, by either key. */
static void test_group(bool locks)
{
	struct fixture f;
	json_auto_t *meta = NULL;
	const json_t *rows, *row, *caused;

	fixture_many(&f, true, locks);
	meta = written(&f.report, 0);
	rows = json_object_get(pass_of(meta), locks ? "lock_blame" : "blame");
	row = json_array_get(rows, 0);
	is_u64(json_array_size(rows), 1, "pairs of threads of like names are one row");
	is_u64((uint64_t)number(row, "wait_ns"), all_waiting(&f), "with all their waiting");
	is_u64((uint64_t)number(row, "pairs"), THREADS * (THREADS - 1), "of how many pairs");
	ok(number(row, "waiter") == 40 && number(row, "holder") == 41 &&
	           number(row, "longest_ns") == 800 && number(row, "longest_at_ns") == 40,
	   "under the two threads of the longest overlap");
	caused = json_object_get(pass_of(meta), locks ? "lock_caused" : "caused");
	is_u64(json_array_size(caused), THREADS, "what each thread caused");
	is_u64((uint64_t)json_integer_value(json_array_get(caused, 3)), (THREADS - 1) * 9000,
	       "is that");
	is_u64(sum_of(caused, NULL), all_waiting(&f), "and is all that was caused");
	fixture_done(&f);
}

/* Groups that are as many as the threads are no help. */
static void test_distinct(void)
{
	struct fixture f;
	json_auto_t *meta = NULL;
	const json_t *rows, *row;
	uint64_t most_left = 0, least = UINT64_MAX, left = 0;
	size_t i;

	fixture_many(&f, false, false);
	meta = written(&f.report, 0);
	rows = json_object_get(pass_of(meta), "blame");
	/* 149 rows of thread 3, then all those of the last 66 threads and some of the one before.
	 */
	is_u64(json_array_size(rows), META_BLAME_ROWS + THREADS - 66,
	       "so many rows, and one for each that has more");
	is_u64(sum_of(rows, "wait_ns"), all_waiting(&f), "with all the waiting");
	is_u64(sum_of(rows, "pairs"), THREADS * (THREADS - 1), "and all the pairs");
	json_array_foreach(rows, i, row)
	{
		uint64_t ns = (uint64_t)number(row, "wait_ns");

		if (number(row, "holder") != -2) {
			least = ns < least ? ns : least;
			continue;
		}
		left += (uint64_t)number(row, "pairs");
		ns /= (uint64_t)number(row, "pairs");
		most_left = ns > most_left ? ns : most_left;
	}
	is_u64(left, THREADS * (THREADS - 1) - META_BLAME_ROWS, "so many pairs are left out");
	ok(most_left <= least, "those with the least waiting");
	fixture_done(&f);
}

static void test_few(void)
{
	struct fixture f;
	json_auto_t *meta = NULL;
	const json_t *rows;

	fixture_many(&f, true, false);
	f.model.blame.n = META_BLAME_ROWS;
	meta = written(&f.report, 0);
	rows = json_object_get(pass_of(meta), "blame");
	is_u64(json_array_size(rows), META_BLAME_ROWS, "what can be read is not put together");
	ok(!json_object_get(json_array_get(rows, 0), "pairs"), "each row is a pair");
	ok(!json_object_get(pass_of(meta), "caused"), "and says who caused it");
	fixture_done(&f);
}

static void test_document(void)
{
	struct fixture f;
	json_auto_t *whole = NULL, *page = NULL;
	const json_t *blame, *line, *last;

	fixture_many(&f, false, false);
	for (uint32_t i = 0; i < THREADS; i++) {
		*vec_push(&f.model.cpu_blame) = (struct model_cpu_blame){ i, MODEL_NONE, 0, 1 };
		*vec_push(&f.model.cpu_blame) = (struct model_cpu_blame){ i, (i + 1) % THREADS, 0,
			                                                  i == 7 ? 500 : 2 };
	}
	whole = written(&f.report, SIZE_MAX);
	page = written(&f.report, 100);
	ok(!json_object_get(whole, "shortened"), "the document for machines is complete");
	is_u64(sum_of(json_object_get(whole, "blame"), "wait_ns"), all_waiting(&f),
	       "with all the blame");
	is_u64(json_array_size(json_object_get(whole, "starvation")), 2 * THREADS,
	       "and with who had the CPUs while threads were runnable");
	blame = json_object_get(page, "blame");
	line = json_object_get(page, "starvation");
	is_u64(json_array_size(blame), 100, "that of the page has the largest rows");
	is_u64((uint64_t)number(json_array_get(blame, 99), "wait_ns"), 9000, "of blame");
	is_u64((uint64_t)number(json_object_get(page, "shortened"), "blame"),
	       THREADS * (THREADS - 1), "and says how many there are");
	is_u64((uint64_t)number(json_object_get(page, "shortened"), "starvation"), 2 * THREADS,
	       "of each");
	is_u64(json_array_size(line), 101, "it has as many of who had the CPUs, and their rest");
	is_u64((uint64_t)number(json_array_get(line, 0), "runnable_ns"), 500, "the largest first");
	last = json_array_get(line, 100);
	is_str(json_string_value(json_object_get(
		       json_array_get(json_object_get(whole, "starvation"), 0), "by")),
	       "nobody", "who had the CPU is told from");
	is_str(json_string_value(json_object_get(json_array_get(line, 0), "by")), "thread",
	       "a thread");
	ok(json_is_null(json_object_get(last, "tid")) &&
	           json_is_null(json_object_get(last, "by_tid")),
	   "and the last is of nobody");
	is_str(json_string_value(json_object_get(last, "by")), "several", "but of several rows");
	is_u64(sum_of(line, "runnable_ns"),
	       sum_of(json_object_get(whole, "starvation"), "runnable_ns"),
	       "so that the sum is the same");
	fixture_done(&f);
}

/* Of what is as long as tasks are, fewer are listed. */
static void test_tasks(void)
{
	struct slice_thread thread = { .pid = 1, .tid = 1 };
	struct slices slices = { .threads = &thread, .thread_count = 1, .names = names_new() };
	json_auto_t *whole = NULL, *page = NULL;
	struct aio aio = { 0 };
	struct fixture f;

	fixture_many(&f, true, false);
	for (unsigned i = 0; i < 11; i++)
		*vec_push(&aio.v) = (struct aio_task){ .first_ns = 1, .last_ns = 2 };
	slices.tasks = &aio;
	f.pass.slices = &slices;
	whole = written(&f.report, SIZE_MAX);
	page = written(&f.report, 100);
	is_u64(json_array_size(json_object_get(json_object_get(whole, "tasks"), "list")), 11,
	       "all tasks are listed for machines");
	is_u64(json_array_size(json_object_get(json_object_get(page, "tasks"), "list")), 10,
	       "a tenth of other rows for the page");
	is_u64((uint64_t)number(json_object_get(page, "shortened"), "tasks"), 11,
	       "which says how many there are");
	is_u64((uint64_t)number(json_object_get(page, "tasks"), "count"), 11, "in both places");
	names_free(slices.names);
	aio_done(&aio);
	fixture_done(&f);
}

static void test_document_groups(void)
{
	struct fixture f;
	json_auto_t *page = NULL;
	const json_t *line;

	fixture_many(&f, true, true);
	f.pass.locks_known = true;
	for (uint32_t i = 0; i < THREADS; i++)
		*vec_push(&f.model.cpu_blame) = (struct model_cpu_blame){ i, (i + 1) % THREADS, 0,
			                                                  i };
	for (uint64_t i = 0; i < 300; i++)
		*vec_push(&f.model.locks) = (struct model_lock){ .of = "list",
			                                         .waits = i != 5,
			                                         .wait_ns = i * 7 % 300 };
	for (uint32_t i = 0; i < 200; i++)
		*vec_push(&f.model.imports) = (struct model_import){ .module = "m" };
	f.report.python.free_threaded = true;
	page = written(&f.report, 100);
	line = json_object_get(page, "locks");
	is_u64(json_array_size(line), 100, "so many locks");
	ok(number(json_array_get(line, 0), "wait_ns") == 299 &&
	           number(json_array_get(line, 99), "wait_ns") == 200,
	   "for which threads waited longest");
	is_u64((uint64_t)number(json_object_get(page, "shortened"), "locks"), 299,
	       "of those that threads waited for");
	is_u64(json_array_size(json_object_get(json_object_get(page, "python"), "gil_modules")),
	       100, "so many modules that need the GIL");
	is_u64((uint64_t)number(json_object_get(page, "shortened"), "gil_modules"), 200, "of all");
	is_u64(json_array_size(json_object_get(page, "lock_blame")), 100, "of locks, too");
	is_u64((uint64_t)number(json_object_get(page, "shortened"), "lock_blame"),
	       THREADS * (THREADS - 1), "with their number");
	line = json_object_get(page, "starvation");
	is_u64(json_array_size(line), 1, "a group in line behind itself is one row");
	is_u64((uint64_t)number(json_array_get(line, 0), "runnable_ns"),
	       THREADS * (THREADS - 1) / 2, "with all its time");
	is_u64((uint64_t)number(json_array_get(line, 0), "tid"), 100 + THREADS - 1,
	       "under the one that stood longest");
	is_u64((uint64_t)number(json_array_get(line, 0), "by_tid"), 100,
	       "and the one it stood behind");
	fixture_done(&f);
}

/* The keys of the columns of the page's table of threads. */
static struct str columns_of(struct fixture *f, bool locks)
{
	json_auto_t *meta = NULL;
	struct str keys = { 0 };
	const json_t *column;
	size_t i;

	f->pass.free_threaded = locks;
	f->model.gil_events = !locks;
	f->model.park_events = locks;
	meta = written(&f->report, 0);
	json_array_foreach(json_object_get(pass_of(meta), "columns"), i, column) str_addf(
		&keys, "%s%s%s", i ? " " : "", json_string_value(json_object_get(column, "key")),
		json_is_true(json_object_get(column, "longest")) ? "!" : "");
	return keys;
}

static void columns_are(struct fixture *f, bool locks, const char *want, const char *name)
{
	CLEANUP(str_done) struct str keys = columns_of(f, locks);

	is_str(str_get(&keys), want, "%s", name);
}

/* The page draws the columns that it is sent: those that matter, by the rules of the terminal. */
static void test_columns(void)
{
	json_auto_t *meta = NULL;
	struct fixture f;
	struct model_thread *t;

	fixture_init(&f, 100);
	fixture_thread(&f, 1, 1, "t");
	fixture_gil(&f, 0, GIL_HOLD, 100);
	t = &f.model.threads.v[0];
	columns_are(&f, false, "no_gil_ns hold_ns wait_ns longest_wait_ns! longest_hold_ns!",
	            "the columns of each recording");
	t->gil_ns[GIL_LOCK_WAIT] = FIXTURE_MS / 100;
	t->calls_cost_ns = 2 * FIXTURE_MS - 1;
	columns_are(&f, false, "no_gil_ns hold_ns wait_ns longest_wait_ns! longest_hold_ns!",
	            "0.01 % of lock waits and 1.9 % for calls have no column");
	t->gil_ns[GIL_LOCK_WAIT] = FIXTURE_MS;
	t->gil_ns[GIL_FREE_WAIT] = t->gil_ns[GIL_UNKNOWN] = 1;
	t->calls_cost_ns = 2 * FIXTURE_MS;
	f.model.caveats[CAVEAT_PROBE_COST] = 1;
	columns_are(&f, false,
	            "no_gil_ns lock_wait_ns hold_ns wait_ns free_wait_ns unknown_ns "
	            "longest_wait_ns! longest_hold_ns! probe_cost_ns calls_cost_ns",
	            "1 % and 2 % have");
	columns_are(&f, true,
	            "no_gil_ns free_wait_ns hold_ns wait_ns unknown_ns longest_wait_ns! "
	            "longest_hold_ns!",
	            "without a GIL, what blocks threads");
	meta = written(&f.report, 0);
	is_u64(json_array_size(json_object_get(pass_of(meta), "state_columns")), CPU_STATES,
	       "each state has a column");
	is_u64(json_integer_value(json_object_get(meta, "crowds_from")), GROUPS_FROM,
	       "groups on the page are those of the tables");
	is_u64(json_integer_value(json_object_get(meta, "crowd_least")), GROUP_MIN_THREADS,
	       "  with as many threads");
	fixture_done(&f);
}

int main(void)
{
	test_group(false);
	test_group(true);
	test_distinct();
	test_few();
	test_document();
	test_document_groups();
	test_tasks();
	test_columns();
	return done_testing();
}

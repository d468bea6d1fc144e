/* SPDX-License-Identifier: MIT */
/* The JSON document: schema 1. */
#include <jansson.h>

#include "golden.h"
#include "report-fixture.h"
#include "analysis/analysis.h"
#include "analysis/facts.h"

static char *json_of(const struct recording *report)
{
	struct error err;
	char *ret = NULL;
	size_t len;
	FILE *out = open_memstream(&ret, &len);
	struct analysis *a = analysis_new(report);

	ok(report_json(a, out, &err) == 0, "it is written");
	analysis_free(a);
	fclose(out);
	return ret;
}

static json_int_t get(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static void check_thread(const json_t *thread)
{
	const json_t *states = json_object_get(thread, "states");
	const char *key;
	json_t *value;
	json_int_t cpu = 0;

	json_object_foreach((json_t *)(uintptr_t)states, key, value)
		cpu += json_integer_value(value);
	is_u64((uint64_t)(get(thread, "hold_ns") + get(thread, "wait_ns") +
	                  get(thread, "no_gil_ns") + get(thread, "unknown_ns")),
	       (uint64_t)get(thread, "total_ns"), "thread %d: the parts are the whole",
	       (int)get(thread, "tid"));
	is_u64((uint64_t)cpu, (uint64_t)get(thread, "total_ns"), "and so are the states");
}

static void test_hog(void)
{
	struct fixture f;
	json_t *root, *thread;
	char *text;
	size_t i;

	fixture_hog(&f);
	f.model.caveats[CAVEAT_INFERRED_RELEASE] = 1;
	text = json_of(&f.report);
	golden_is("hog.json", text);
	ok(!strpbrk(text, "<>&\x1b\xff"), "nothing that could end a script element");
	root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	ok(root != NULL, "another reader takes it");
	ok(get(root, "schema") == 1, "schema 1");
	json_array_foreach(json_object_get(root, "threads"), i, thread) check_thread(thread);
	is_str(json_string_value(json_object_get(
		       json_array_get(json_object_get(root, "threads"), 0), "name")),
	       "</script><b>\"'&\x1b[31m\xe2\x80\xae\xef\xbf\xbd",
	       "a hostile name is kept as it is");
	json_decref(root);
	free(text);
	fixture_done(&f);
}

static void test_unknown_holder(void)
{
	struct fixture f;
	json_t *root, *row;
	char *text;

	fixture_init(&f, 10);
	fixture_thread(&f, 1, 1, "x");
	fixture_gil(&f, 0, GIL_WAIT, 10);
	fixture_cpu(&f, 0, CPU_UNKNOWN, 10);
	fixture_blame(&f, 0, MODEL_NONE, 6, 6, 0);
	fixture_blame(&f, 0, MODEL_UNKNOWN, 4, 4, 6);
	text = json_of(&f.report);
	root = json_loads(text, 0, NULL);
	row = json_array_get(json_object_get(root, "blame"), 0);
	ok(json_is_null(json_object_get(row, "holder_tid")), "the handover has no holder");
	row = json_array_get(json_object_get(root, "blame"), 1);
	ok(json_is_integer(json_object_get(row, "holder_tid")) && get(row, "holder_tid") == 0,
	   "a holder that cannot be told is tid 0");
	json_decref(root);
	free(text);
	fixture_done(&f);
}

static void test_names(void)
{
	struct fixture f;

	fixture_hog(&f);
	fixture_slices(&f, 1);
	f.slices.threads[0].pid = 100;
	f.slices.threads[0].tid = 101;
	f.slices.threads[0].name = fixture_name(&f, "Thread-1 (hog)");
	is_str(facts_thread_name(&f.pass, 1), "Thread-1 (hog)", "Python's name of a thread");
	is_str(facts_thread_name(&f.pass, 0), "python3", "else the kernel's");
	f.model.threads.v[0].name = "";
	is_str(facts_thread_name(&f.pass, 0), "?", "else none");
	fixture_done(&f);
}

/* Who had the CPU while a thread was runnable. */
static void test_starvation(void)
{
	static const char *const kinds[] = { "thread", "program", "nobody", "unknown" };
	struct names *programs = names_new();
	struct fixture f;
	json_t *root, *rows;
	char *text;

	fixture_hog(&f);
	f.source.cpu_names = programs;
	*vec_push(&f.model.cpu_blame) = (struct model_cpu_blame){ 0, 1, 0, 4 };
	*vec_push(&f.model.cpu_blame) = (struct model_cpu_blame){ 0, MODEL_NONE,
		                                                  names_id(programs, "cc1", 3), 3 };
	*vec_push(&f.model.cpu_blame) = (struct model_cpu_blame){ 0, MODEL_NONE, 0, 2 };
	*vec_push(&f.model.cpu_blame) = (struct model_cpu_blame){ 0, MODEL_UNKNOWN, 0, 1 };
	text = json_of(&f.report);
	root = json_loads(text, 0, NULL);
	rows = json_object_get(root, "starvation");
	for (size_t i = 0; i < 4; i++) {
		const json_t *row = json_array_get(rows, i);
		const char *name = json_string_value(json_object_get(row, "by_name"));

		is_str(json_string_value(json_object_get(row, "by")), kinds[i], "by: %s", kinds[i]);
		is_str(name ? name : "-", i == 1 ? "cc1" : "-", "only a program has a name");
		ok(json_is_null(json_object_get(row, "by_tid")) == (i > 0), "only a thread an id");
	}
	json_decref(root);
	free(text);
	fixture_done(&f);
	names_free(programs);
}

int main(void)
{
	test_hog();
	test_unknown_holder();
	test_names();
	test_starvation();
	return done_testing();
}

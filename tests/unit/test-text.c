/* SPDX-License-Identifier: MIT */
/* The terminal table. */
#include "golden.h"
#include "columns.h"
#include "report-fixture.h"
#include "analysis/analysis.h"
#include "analysis/facts.h"
#include "report/terminal.h"

/* The report as text; caller frees. */
static char *text_of(const struct recording *report)
{
	struct error err;
	char *ret = NULL;
	size_t len;
	FILE *out = open_memstream(&ret, &len);
	struct analysis *a = analysis_new(report);

	ok(report_text(a, out, &err) == 0, "it is written");
	analysis_free(a);
	fclose(out);
	return ret;
}

static void test_hog(void)
{
	static const struct recording_note note = { "two-runs", 0, "the program was run twice" };
	struct fixture f;
	char *text;

	fixture_hog(&f);
	f.model.caveats[CAVEAT_INFERRED_RELEASE] = 1;
	f.report.notes = &note;
	f.report.note_count = 1;
	text = text_of(&f.report);
	golden_is("hog.txt", text);
	ok(!strpbrk(text, "\x1b\xff"), "no escape sequence comes through");
	ok(!strstr(text, "\xe2\x80\xae"), "no bidi control comes through");
	free(text);
	fixture_done(&f);
}

/* States where they were asked for, and instead of the GIL where it was not. */
static void test_states(void)
{
	struct fixture f;
	char *text;

	fixture_hog(&f);
	f.report.state_detect = true;
	text = text_of(&f.report);
	golden_is("states.txt", text);
	free(text);
	f.report.gil_detect = false;
	text = text_of(&f.report);
	ok(!strstr(text, "has gil%") && strstr(text, "GIL sleep%"), "states alone");
	free(text);
	fixture_done(&f);
}

/* Of threads without a GIL, too, the most blocked is first in all tables. */
static void test_locks_order(void)
{
	struct fixture f;
	const char *states;
	char *text;
	uint32_t t;

	fixture_init(&f, 100);
	f.report.state_detect = f.pass.free_threaded = f.report.python.free_threaded = true;
	f.model.gil_events = 0;
	f.model.park_events = 100;
	for (uint32_t i = 0; i < 3; i++) {
		static const uint64_t blocked_ms[] = { 10, 80, 40 };

		t = fixture_thread(&f, 7, 100 + i, i == 1 ? "most" : i ? "some" : "least");
		fixture_gil(&f, t, GIL_STOPPED, blocked_ms[i]);
		fixture_gil(&f, t, GIL_NO, 100 - blocked_ms[i]);
		fixture_cpu(&f, t, CPU_SLEEPING, 100);
	}
	text = text_of(&f.report);
	states = strstr(text, "running%");
	ok(strstr(text, "lock wait%") < strstr(text, "\n  most") &&
	           strstr(text, "\n  most") < strstr(text, "\n  some") &&
	           strstr(text, "\n  some") < strstr(text, "\n  least"),
	   "the most blocked is first of those without a GIL");
	ok(states && strstr(states, "\n  most") < strstr(states, "\n  some") &&
	           strstr(states, "\n  some") < strstr(states, "\n  least"),
	   "and in the table of states");
	free(text);
	fixture_done(&f);
}

/* Groups of those that locks block. */
static void test_locks_groups(void)
{
	static char names[20][16];
	struct fixture f;
	char *text;

	fixture_init(&f, 100);
	f.pass.free_threaded = f.report.python.free_threaded = true;
	f.model.gil_events = 0;
	f.model.park_events = 100;
	for (uint32_t i = 0; i < 20; i++) {
		snprintf(names[i], sizeof(names[i]), "pool-%u", i);
		fixture_gil(&f, fixture_thread(&f, 7, 100 + i, names[i]), GIL_STOPPED, 10);
		f.model.threads.v[i].longest_stop_ns = i * FIXTURE_MS;
		*vec_push(&f.model.lock_blame) = (struct model_lock_blame){
			i, (i + 1) % 20, GIL_STOPPED, 10 * FIXTURE_MS, 10 * FIXTURE_MS, 0
		};
	}
	text = text_of(&f.report);
	ok(strstr(text, "\n  pool-* 20 threads    2,000.0"), "threads of like names are a row");
	ok(strstr(text, " 19.000\n"), "with the longest stop of any");
	ok(strstr(text, "\n  pool-* 20 threads   pool-* 20 threads   stopped     200.0"),
	   "and so is what they did to each other");
	free(text);
	fixture_done(&f);
}

static void test_many(void)
{
	struct fixture f;
	char *text;

	fixture_init(&f, 1000);
	for (uint32_t i = 0; i < 42; i++) {
		uint32_t t = fixture_thread(&f, 7 + i % 2, 100 + i,
		                            i == 3 ? "a name that is longer than a column should be"
		                            : i == 4 ? "\xe6\xbc\xa2\xe5\xad\x97"
		                                     : "x");

		fixture_gil(&f, t, GIL_WAIT, i);
		fixture_gil(&f, t, GIL_NO, 1000 - i);
		fixture_cpu(&f, t, CPU_UNKNOWN, 1000);
	}
	text = text_of(&f.report);
	golden_is("many.txt", text);
	free(text);
	fixture_done(&f);
}

static uint32_t python_frame(struct fixture *f, const char *name, unsigned line)
{
	struct stack_frame frame = { .name = names_id(f->source.names, name, strlen(name)),
		                     .line = line,
		                     .flags = STACK_PYTHON };

	if (!f->source.frames)
		f->source.frames = stacks_new(f->source.names);
	return stacks_id(f->source.frames, &frame);
}

/* One overdue call does not hide what else held the GIL; where it is nearly all, nothing is said
 * twice. */
static void test_functions(void)
{
	struct hogs hogs = { 0 };
	struct fixture f;
	char *text;

	fixture_hog(&f);
	f.pass.hogs = &hogs;
	*vec_push(&hogs.v) = (struct hog){ .thread = 1,
		                           .frame = python_frame(&f, "call", 7),
		                           .overdue_holds = 1,
		                           .overdue_ns = 38 * FIXTURE_MS,
		                           .overdue_wait_ns = 38 * FIXTURE_MS,
		                           .holds = 1,
		                           .hold_ns = 38 * FIXTURE_MS,
		                           .wait_ns = 38 * FIXTURE_MS };
	*vec_push(&hogs.v) = (struct hog){ .thread = 2,
		                           .frame = python_frame(&f, "loop", 9),
		                           .holds = 700,
		                           .hold_ns = 3400 * FIXTURE_MS,
		                           .wait_ns = 3400 * FIXTURE_MS };
	text = text_of(&f.report);
	ok(strstr(text, "kept the GIL") && strstr(text, "held until") && strstr(text, "3,400.0"),
	   "a late call does not hide who else held the GIL");
	free(text);
	hogs.v.v[1].wait_ns = FIXTURE_MS;
	text = text_of(&f.report);
	ok(strstr(text, "kept the GIL") && !strstr(text, "held until"),
	   "nothing is said twice where it is nearly all");
	free(text);
	vec_done(&hogs.v);
	fixture_done(&f);
}

static void test_shares(void)
{
	static const enum phrase parts[] = { PHRASE_h_no_gil,    PHRASE_h_lock_wait,
		                             PHRASE_h_has_gil,   PHRASE_h_gil_wait,
		                             PHRASE_h_free_wait, PHRASE_h_unknown };
	static const enum phrase states[] = { PHRASE_h_running,   PHRASE_h_runnable,
		                              PHRASE_h_asleep,    PHRASE_h_uninterruptible,
		                              PHRASE_h_gil_sleep, PHRASE_h_unknown };
	const struct model_thread none = { 0 };
	struct fixture f;
	struct model_thread *t;
	double sum = 0, no_gil;

	fixture_init(&f, 1);
	fixture_thread(&f, 1, 1, "t");
	t = &f.model.threads.v[0];
	t->start_ns = 0;
	t->end_ns = 300;
	t->gil_ns[GIL_UNKNOWN] = 100;
	t->gil_ns[GIL_HOLD] = 50;
	t->gil_ns[GIL_WAIT] = 30;
	t->gil_ns[GIL_SWITCH_WAIT] = 20;
	t->gil_ns[GIL_FREE_WAIT] = 10;
	t->gil_ns[GIL_NO] = 60;
	t->gil_ns[GIL_LOCK_WAIT] = 30;
	no_gil = column_percent(&f.model, THREADS_GIL, PHRASE_h_no_gil, t);
	ok(no_gil >= 20 && no_gil <= 20, "shares are of the whole life");
	for (unsigned i = 0; i < 6; i++)
		sum += column_percent(&f.model, THREADS_GIL, parts[i], t);
	ok(sum > 99.999 && sum < 100.001, "they add up to 100");
	t->cpu_ns[CPU_UNKNOWN] = 90;
	t->cpu_ns[CPU_RUNNING] = 120;
	t->cpu_ns[CPU_GIL_SLEEP] = 90;
	sum = 0;
	for (unsigned i = 0; i < 6; i++)
		sum += column_percent(&f.model, THREADS_STATES, states[i], t);
	ok(sum > 99.999 && sum < 100.001, "and so do those of the states on the CPUs");
	sum = column_percent(&f.model, THREADS_GIL, PHRASE_h_has_gil, &none) +
	      column_percent(&f.model, THREADS_GIL, PHRASE_h_unknown, &none);
	ok(sum >= 0 && sum <= 0, "a thread without a life");
	fixture_done(&f);
}

static void test_empty(void)
{
	struct fixture f;
	char *text;

	fixture_init(&f, 0);
	f.model.gil_events = 0;
	text = text_of(&f.report);
	ok(strstr(text, "Nothing was recorded") != NULL, "nothing recorded is said");
	free(text);
	fixture_done(&f);
}

static void test_wrap(void)
{
	static const struct {
		const char *text, *want;
		unsigned columns;
	} cases[] = {
		{ "one two three", "  one two three\n", 0 },
		{ "one two three", "  one two three\n", 15 },
		{ "one two three", "  one two\n    three\n", 14 },
		{ "one two three", "  one\n    two\n    three\n", 3 },
		{ "h\u00f6ren zwei", "  h\u00f6ren zwei\n", 12 },
		{ "incomprehensibilities", "  incomprehensibilities\n", 10 },
		{ "", "  \n", 10 },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct str str = { 0 };

		terminal_wrap(&str, cases[i].text, cases[i].columns);
		is_str(str_get(&str), cases[i].want, "%u columns: '%s'", cases[i].columns,
		       cases[i].text);
		str_done(&str);
	}
}

int main(void)
{
	test_hog();
	test_states();
	test_locks_order();
	test_locks_groups();
	test_many();
	test_functions();
	test_shares();
	test_empty();
	test_wrap();
	return done_testing();
}

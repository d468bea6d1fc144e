/* SPDX-License-Identifier: MIT */
/* Summaries of documents, conditions on them, and comparisons. */
#include <stdlib.h>

#include "analysis/diff.h"
#include "report-fixture.h"
#include "report/diff_write.h"
#include "report/fail_on.h"
#include "report/json.h"
#include "report/report.h"

#include "tap.h"

/* Two threads of one second; the second waits for wait_ms, because of f in /x/y.py, late for half.
 */
static struct summary made(unsigned wait_ms, const char *folder)
{
	struct summary ret;
	struct error err = { .text = "" };
	CLEANUP(str_done) struct str doc = { 0 };

	str_addf(&doc,
	         "{\"schema\": 1, \"passes\": [{\"name\": \"gil\", \"lost\": 3}], \"threads\": ["
	         "{\"name\": \"main\", \"total_ns\": 1000000000, \"hold_ns\": 500000000, "
	         "\"wait_ns\": 0, \"unknown_ns\": 0, \"longest_hold_ns\": 30000000, "
	         "\"longest_wait_ns\": 0}, {\"name\": \"w\", \"total_ns\": 1000000000, "
	         "\"hold_ns\": 1, \"wait_ns\": %u000000, \"unknown_ns\": 500000000, "
	         "\"longest_hold_ns\": 1, \"longest_wait_ns\": 7000000}],",
	         wait_ms);
	str_addf(
		&doc,
		"\"functions\": [{\"function\": \"f\", \"file\": \"%s/y.py\", \"line\": 3, "
		"\"hold_ns\": 5, \"wait_caused_ns\": %u000000}], \"hogs\": [{\"function\": \"f\", "
		"\"file\": \"%s/y.py\", \"line\": 3, \"holds\": 2, \"wait_caused_ns\": %u000000}]}",
		folder, wait_ms, folder, wait_ms / 2);
	ok(summary_read(&ret, doc.s, doc.len, &err) == 0, "a document is read %s", err.text);
	return ret;
}

static void test_summary(void)
{
	struct summary s = made(150, "/x");

	ok(s.percent[FACT_GIL_WAIT] == 10, "150 ms of 1.5 s that are known");
	ok(s.percent[FACT_THREAD_WAIT] == 30, "and of 0.5 s of the thread");
	ok(s.percent[FACT_HOG_WAIT] == 5, "half for hogs");
	ok(s.percent[FACT_UNKNOWN] == 25, "what is unknown is a share of all");
	is_u64(s.recording_ns, 1000000000, "the recording is as long as its longest thread");
	is_u64(s.value[FACT_GIL_HOLD], 500000001, "held");
	is_u64(s.value[FACT_LONGEST_HOLD], 30000000, "longest hold");
	is_u64(s.value[FACT_LONGEST_WAIT], 7000000, "longest wait");
	is_u64(s.value[FACT_HOGS], 2, "late holds");
	is_u64(s.value[FACT_LOST], 3, "lost records");
	is_u64(s.functions.v.n, 1, "a hog is a function");
	is_str(s.functions.v.v[0].file, "y.py", "without folders");
	summary_done(&s);
}

/* Of an interpreter without a GIL: of two seconds, half of one unknown, so long for locks. */
static struct summary made_locks(unsigned wait_ms)
{
	struct summary ret;
	struct error err = { .text = "" };
	CLEANUP(str_done) struct str doc = { 0 };

	str_addf(&doc,
	         "{\"schema\": 1, \"threads\": [{\"name\": \"main\", \"total_ns\": 1000000000, "
	         "\"unknown_ns\": 500000000, \"no_gil_ns\": 500000000}, {\"name\": \"w\", "
	         "\"total_ns\": 1000000000, \"no_gil_ns\": 1000000000, \"lock_wait_ns\": "
	         "%u000000, \"stopped_ns\": 30000000}]}",
	         wait_ms);
	ok(summary_read(&ret, doc.s, doc.len, &err) == 0, "a document is read %s", err.text);
	return ret;
}

static void refuses(const char *doc, const char *why)
{
	struct summary s;
	struct error err = { .text = "" };

	ok(summary_read(&s, doc, strlen(doc), &err) < 0, "%s", doc);
	ok(strstr(err.text, why) != NULL, "because: %s", err.text);
	summary_done(&s);
}

static void test_refused(void)
{
	refuses("", "neither a session folder nor JSON");
	refuses("{\"schema\": 1", "neither a session folder nor JSON: line 1");
	refuses("[1]", "not a JSON document of giltracer");
	refuses("{\"session\": 1, \"passes\": []}", "not a JSON document of giltracer");
	refuses("{\"schema\": 2, \"threads\": []}", "schema 2, this giltracer reads schema 1");
	refuses("{\"diff\": 1, \"threads\": []}", "a comparison");
}

static void test_odd(void)
{
	static const char doc[] = "{\"schema\": 1, \"threads\": [7, {\"name\": 3, \"wait_ns\": -5,"
				  "\"total_ns\": 1, \"unknown_ns\": 9}], \"hogs\": {}}";
	struct summary s;
	struct error err = { .text = "" };

	ok(summary_read(&s, doc, strlen(doc), &err) == 0, "odd values are none %s", err.text);
	ok(s.percent[FACT_GIL_WAIT] == 0 && s.known_ns == 0, "nothing is known of them");
	summary_done(&s);
}

/* "" or the error. */
static const char *parse(const char *text, bool change)
{
	static struct error err;
	struct condition c;

	err.text[0] = 0;
	condition_parse(&c, text, change, &err);
	return err.text;
}

static void test_parse(void)
{
	is_str(parse("gil_wait>10%", false), "", "the plain one");
	is_str(parse(" longest_hold >= 20 ms ", false), "", "spaces");
	is_str(parse("lost<=0", false), "", "a count");
	is_str(parse("gil_wait>+.5%", true), "", "a sign on a change");
	is_str(parse("gil_wiat>10%", false),
	       "'gil_wiat': unknown, expected one of gil_wait, gil_hold, thread_wait, hog_wait, "
	       "lock_wait, stopped, longest_wait, longest_hold, hogs, lost, unknown",
	       "an unknown fact");
	is_str(parse("", false),
	       "'': unknown, expected one of gil_wait, gil_hold, thread_wait, hog_wait, "
	       "lock_wait, stopped, longest_wait, longest_hold, hogs, lost, unknown",
	       "nothing at all");
	is_str(parse("gil_wait", false),
	       "'gil_wait': expected one of > >= < <= and a number after gil_wait", "no operator");
	is_str(parse("gil_wait=3%", false),
	       "'gil_wait=3%': expected one of > >= < <= and a number after gil_wait",
	       "another operator");
	is_str(parse("gil_wait>", false), "'gil_wait>': expected a number, as in gil_wait>10%",
	       "no number");
	is_str(parse("longest_hold>nanms", false),
	       "'longest_hold>nanms': expected a number, as in longest_hold>10ms",
	       "no such number");
	is_str(parse("lost>1.2.3", false), "'lost>1.2.3': expected a number, as in lost>10",
	       "two points");
	is_str(parse("gil_wait>+5%", false),
	       "'gil_wait>+5%': only a change has a sign, see giltracer diff", "a sign on a value");
	is_str(parse("gil_wait>5", false),
	       "'gil_wait>5': expected %, ns, us, ms or s after the number", "no unit");
	is_str(parse("longest_wait>5%", false),
	       "'longest_wait>5%': expected ns, us, ms or s after the number", "the wrong unit");
	is_str(parse("lost>5ms", false), "'lost>5ms': expected nothing after the number",
	       "a unit too many");
	is_str(parse("gil_wait>5% x", false),
	       "'gil_wait>5% x': expected %, ns, us, ms or s after the number", "a word too many");
}

/* Why it is true; "" if it is not. */
static const char *holds(const char *text, const struct summary *a, const struct summary *b)
{
	static struct str why;
	struct condition c;
	struct error err;

	str_done(&why);
	if (condition_parse(&c, text, a != NULL, &err) < 0)
		str_adds(&why, err.text);
	else
		condition_holds(&c, a, b, &why);
	return str_get(&why);
}

static void test_conditions(void)
{
	struct summary a = made(150, "/x"), b = made(300, "/x");

	is_str(holds("gil_wait>10%", NULL, &a), "", "10 is not more than 10");
	is_str(holds("gil_wait>=10%", NULL, &a), "gil_wait is 10 %", "but as much");
	is_str(holds("gil_wait<10%", NULL, &a), "", "nor less");
	is_str(holds("gil_wait<=10%", NULL, &a), "gil_wait is 10 %", "but as little");
	is_str(holds("gil_wait>0.1s", NULL, &a), "gil_wait is 150.000 ms", "as a time");
	is_str(holds("longest_hold>29999us", NULL, &a), "longest_hold is 30.000 ms", "longest");
	is_str(holds("lost>0", NULL, &a), "lost is 3", "a count");
	is_str(holds("gil_wait>+5%", &a, &b), "gil_wait changed by +10 points", "a rise");
	is_str(holds("gil_wait>+5%", &b, &a), "", "a fall is none");
	is_str(holds("gil_wait<-5%", &b, &a), "gil_wait changed by -10 points", "but a fall");
	is_str(holds("lost>0", &a, &b), "", "no change");
	summary_done(&a);
	summary_done(&b);
}

static void test_locks(void)
{
	struct summary a = made_locks(150), b = made_locks(300), gil = made(150, "/x");
	CLEANUP(free) char *text = NULL;
	struct diff diff;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	CLEANUP(str_done) struct str headline = { 0 };

	is_str(holds("lock_wait>=10%", NULL, &a), "lock_wait is 10 %", "of what is known");
	is_str(holds("lock_wait>10%", NULL, &a), "", "and not more");
	is_str(holds("lock_wait>149ms", NULL, &a), "lock_wait is 150.000 ms", "as a time");
	is_str(holds("lock_wait>+5%", &a, &b), "lock_wait changed by +10 points", "a rise");
	is_str(holds("stopped>1.9%", NULL, &a), "stopped is 2 %", "who stands waits for no lock");
	is_str(holds("lock_wait>0ns", NULL, &gil), "", "nor does who waits for a GIL");
	is_str(holds("gil_wait>0ns", NULL, &a), "", "or the other way round");
	diff_init(&diff, &a, &b);
	diff_add_headline(&headline, &diff);
	is_str(str_get(&headline),
	       "The wait for locks rose from 10.0 % to 20.0 % of all threads' time.",
	       "where there is no GIL, locks are compared");
	diff_text(&diff, false, out);
	fflush(out);
	ok(strstr(text, "\n  lock_wait %") && strstr(text, "\n  stopped %"), "in the table, too");
	diff_done(&diff);
	rewind(out);
	diff_init(&diff, &gil, &gil);
	diff_text(&diff, false, out);
	fputc(0, out);
	fclose(out);
	ok(strstr(text, "\n  gil_wait %") && !strstr(text, "lock_wait") && !strstr(text, "stopped"),
	   "which has nothing of them where there are none");
	diff_done(&diff);
	summary_done(&a);
	summary_done(&b);
	summary_done(&gil);
}

/* What is unknown meets no limit, and is not compared. */
static void test_locks_unknown(void)
{
	static const char doc[] =
		"{\"schema\": 1, \"threads\": [{\"name\": \"main\", \"total_ns\": "
		"1000000000, \"lock_wait_ns\": null}]}";
	static const char why[] = "lock_wait is unknown: waits for locks were not recorded";
	struct summary a = made_locks(150), none;
	CLEANUP(str_done) struct str headline = { 0 };
	struct diff diff;
	struct error err = { .text = "" };
	CLEANUP(free) char *json = NULL;
	size_t len;
	FILE *out = open_memstream(&json, &len);

	ok(summary_read(&none, doc, strlen(doc), &err) == 0, "a document is read %s", err.text);
	is_str(holds("lock_wait>10%", NULL, &none), why, "a limit");
	is_str(holds("lock_wait<10%", NULL, &none), why, "or the opposite");
	is_str(holds("lock_wait>+5%", &none, &a), why, "a change from there");
	is_str(holds("lock_wait>+5%", &a, &none), why, "or to there");
	is_str(holds("gil_wait>10%", NULL, &none), "", "waits for the GIL are known");
	diff_init(&diff, &a, &none);
	diff_add_headline(&headline, &diff);
	ok(!strstr(str_get(&headline), "locks"), "the headline compares no locks");
	diff_json(&diff, "1", out);
	fclose(out);
	ok(strstr(json, "\"b\": null") > strstr(json, "\"lock_wait\": {"),
	   "and JSON has no number");
	diff_done(&diff);
	summary_done(&a);
	summary_done(&none);
}

static void test_noise(void)
{
	ok(diff_is_noise(5, 5.9), "less than a point is noise");
	ok(!diff_is_noise(5, 6.1), "more is not");
	ok(diff_is_noise(50, 54), "unless it is less than a tenth");
	ok(!diff_is_noise(0, 1), "from nothing");
	ok(!diff_is_noise(48.2, 3.1) && !diff_is_noise(3.1, 48.2), "both ways");
}

/* The program of a command, which is borrowed for a test. */
static void is_program(const char *a, const char *b, const char *c, const char *d,
                       const char *expected, const char *name)
{
	const char *const command[] = { a, b, c, d, NULL };
	struct summary s = { 0 };

	summary_set_program(&s, command);
	is_str(s.program ? s.program : "-", expected, "%s", name);
	summary_done(&s);
}

static void test_programs(void)
{
	is_program("/x/app.py", "run", NULL, NULL, "app.py", "a script, wherever it is");
	is_program("-m", "pkg.app", "run", NULL, "app.py", "as a module");
	is_program("/usr/bin/python3.11", "-X", "dev", "app.py", "app.py", "behind an interpreter");
	is_program("python3", "-u", "-m", "pkg.app", "app.py", "both");
	is_program("python_app.py", "-m", "x", NULL, "python_app.py", "a script of such a name");
	is_program("python3", "-c", "pass", NULL, "-", "a program without a name");
	is_program(NULL, NULL, NULL, NULL, "-", "or none");
}

static void test_diff(void)
{
	struct summary a = made(723, "/x"), b = made(30, "/elsewhere");
	CLEANUP(free) char *text = NULL;
	struct diff diff;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	CLEANUP(str_done) struct str headline = { 0 };

	diff_init(&diff, &a, &b);
	diff_add_headline(&headline, &diff);
	is_str(str_get(&headline),
	       "The wait for the GIL fell from 48.2 % to 2.0 % of all threads' time. The largest "
	       "change is in the waiting caused by f (y.py:3): from 72.3 % to 3.0 % of the "
	       "recording.",
	       "the verdict");
	is_u64(diff.threads.v.n, 2, "threads are the same by name");
	is_str(diff.threads.v.v[0].name, "w", "largest change first");
	ok(diff.threads.v.v[1].noise && !diff.threads.v.v[0].noise, "what did not change is noise");
	is_u64(diff.functions.v.n, 1, "functions are the same wherever the program is");
	is_u64(diff.functions.v.v[0].a.overdue_wait_ns, 361000000, "with what hogs caused");
	diff_text(&diff, false, out);
	fflush(out);
	ok(strstr(text, "\n  w  ") && !strstr(text, "\n  main  "), "small changes are not shown");
	ok(strstr(text, "1 thread changed less") != NULL, "but counted");
	rewind(out);
	diff_text(&diff, true, out);
	fflush(out);
	ok(strstr(text, "\n  main  ") != NULL, "or shown");
	fclose(out);
	diff_done(&diff);
	diff_init(&diff, &a, &a);
	ok(diff.verdict == DIFF_SAME, "itself is the same");
	diff_done(&diff);
	diff_init(&diff, &b, &a);
	ok(diff.verdict == DIFF_ROSE, "the other way it rose");
	diff_done(&diff);
	summary_done(&a);
	summary_done(&b);
}

/* Three recordings a side: means, their ranges, and what these say of a change. */
static void test_several(void)
{
	struct summary few[3] = { made(100, "/x"), made(200, "/x"), made(330, "/x") };
	struct summary many[3] = { made(300, "/x"), made(600, "/x"), made(900, "/x") };
	struct summary more[2] = { made(450, "/x"), made(600, "/x") };
	struct summary a, b, c;
	CLEANUP(free) char *text = NULL;
	struct diff diff;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	summary_join(&a, few, 3);
	summary_join(&b, many, 3);
	summary_join(&c, more, 2);
	is_u64(a.value[FACT_GIL_WAIT], 210000000, "a mean");
	ok(a.percent[FACT_GIL_WAIT] > 13.99 && a.percent[FACT_GIL_WAIT] < 14.01, "of shares, too");
	ok(a.low[FACT_GIL_WAIT] * 15 > 99.9 && a.low[FACT_GIL_WAIT] * 15 < 100.1 &&
	           a.high[FACT_GIL_WAIT] * 15 > 329.9 && a.high[FACT_GIL_WAIT] * 15 < 330.1,
	   "with their range");
	diff_init(&diff, &a, &b);
	ok(diff.verdict == DIFF_SAME, "ranges that overlap are noise, although the mean is thrice");
	ok(diff.threads.v.v[0].noise && diff.functions.v.v[0].noise,
	   "of threads and functions, too");
	diff_done(&diff);
	diff_init(&diff, &a, &c);
	ok(diff.verdict == DIFF_ROSE && !diff.functions.v.v[0].noise, "others are a change");
	diff_text(&diff, false, out);
	fflush(out);
	ok(strstr(text, "means of 3 and 2 recordings") != NULL, "it says of how many");
	ok(strstr(text, " 14.0 (6.7-22.0) ") && strstr(text, " 35.0 (30.0-40.0) "),
	   "and the ranges");
	diff_done(&diff);
	summary_done(&a);
	/* A function that only one of them has. */
	free(few[0].functions.v.v[0].name);
	few[0].functions.v.v[0].name = xstrdup("g");
	idmap_done(&few[0].functions.index);
	summary_join(&a, few, 3);
	is_u64(a.functions.v.n, 2, "each function has a row");
	ok(a.functions.v.v[0].low == 0 && a.functions.v.v[0].high > 9.9 &&
	           a.functions.v.v[1].low == 0,
	   "which is 0 in the others");
	fclose(out);
	for (unsigned i = 0; i < 3; i++) {
		summary_done(&few[i]);
		summary_done(&many[i]);
	}
	summary_done(&more[0]);
	summary_done(&more[1]);
	summary_done(&a);
	summary_done(&b);
	summary_done(&c);
}

/* What an analysis comes to is what is read from the document that was made of it. */
static void test_same(void)
{
	struct fixture f;
	struct analysis *analysis;
	struct summary made, read;
	struct error err = { .text = "" };
	CLEANUP(free) char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	fixture_hog(&f);
	analysis = analysis_new(&f.report);
	summary_init(&made, analysis);
	ok(report_json(analysis, out, &err) == 0, "a document is written");
	fclose(out);
	ok(summary_read(&read, text, len, &err) == 0, "and read %s", err.text);
	ok(!memcmp(made.percent, read.percent, sizeof(read.percent)) &&
	           !memcmp(made.value, read.value, sizeof(read.value)),
	   "each fact is the same");
	ok(made.value[FACT_GIL_WAIT] && made.recording_ns == read.recording_ns &&
	           made.known_ns == read.known_ns,
	   "and so is the time");
	is_u64(made.threads.v.n, read.threads.v.n, "as many threads");
	for (size_t i = 0; i < read.threads.v.n && i < made.threads.v.n; i++)
		is_str(made.threads.v.v[i].name, read.threads.v.v[i].name, "one of them");
	summary_done(&made);
	summary_done(&read);
	analysis_free(analysis);
	fixture_done(&f);
}

int main(void)
{
	test_same();
	test_summary();
	test_refused();
	test_odd();
	test_parse();
	test_conditions();
	test_locks();
	test_locks_unknown();
	test_noise();
	test_programs();
	test_diff();
	test_several();
	return done_testing();
}

/* SPDX-License-Identifier: MIT */
/* Findings: what they add up to, their order, their places, and their words. */
#include "analysis/analysis.h"
#include "analysis/functions.h"
#include "report/findings.h"
#include "report/report.h"
#include "report/words.h"
#include "trace/source.h"
#include "trace/stacks.h"

#include "model-events.h"

#define MS   UINT64_C(1000000)
#define LOCK 0x7f0a

static struct stacks *stacks;

static uint32_t frame(const char *name, uint32_t line)
{
	struct stack_frame f = { .name = names_id(names, name, strlen(name)),
		                 .module = names_id(names, "/srv/app.py", 11),
		                 .line = line,
		                 .flags = STACK_PYTHON };

	return stacks_id(stacks, &f);
}

/* Thread 7 is without the GIL, which nobody holds, and threads 8 to 11 exist. Times are in ms. */
static void start(void)
{
	begin_with(&(struct model_options){ .start_ns = 100 * MS,
	                                    .end_ns = 1000 * MS,
	                                    .start_pid = 7,
	                                    .start_tid = 7,
	                                    .all_releases = true });
	if (!stacks)
		stacks = stacks_new(names);
	for (uint32_t i = 0; i < 4; i++)
		new_thread(101 * MS + i, 8 + i, 7);
	release(104 * MS, 7);
	released(104 * MS, 7);
}

static void holds_from(uint64_t from, uint64_t to, uint32_t tid, uint32_t f)
{
	acquire(from * MS, tid);
	feed(to * MS, tid, EV_RELEASE, EV(.gil = { .address = GIL, .frame = f }));
	released(to * MS, tid);
}

static struct analysis *a;
static struct hogs hogs;
static const struct slices *slices; /* NULL: no calls are recorded */

static void analyse(void)
{
	static struct source source;
	static struct recording_pass pass;
	static struct recording recording;

	finish();
	analysis_free(a);
	hogs_done(&hogs);
	source = (struct source){ .frames = stacks, .names = names };
	hogs_find(&hogs, m, stacks, HOGS_INTERVAL_NS);
	pass = (struct recording_pass){ .kind = PASS_GIL,
		                        .model = m,
		                        .source = &source,
		                        .hogs = &hogs,
		                        .slices = slices,
		                        .locks_known = true,
		                        .wall_ns = 900 * MS };
	recording = (struct recording){
		.version = "1", .gil_detect = true, .passes = &pass, .pass_count = 1
	};
	a = analysis_new(&recording);
}

/* "kind function ns; …" */
static const char *found(void)
{
	static struct str text;

	str_done(&text);
	for (size_t i = 0; i < a->findings.v.n; i++) {
		const struct finding *f = &a->findings.v.v[i];
		const char *name = finding_place_of(a, f).name;

		str_addf(&text, "%s%s %s %" PRIu64, i ? "; " : "", finding_kind_name(f->kind),
		         name ? name : "?", f->cost_ns / MS);
	}
	return str_get(&text);
}

static const char *title_of(size_t i)
{
	static struct str text;

	str_done(&text);
	finding_add_title(&text, a, &a->findings.v.v[i]);
	return str_get(&text);
}

static const char *words_of(size_t i)
{
	static struct str text;

	str_done(&text);
	finding_add_text(&text, a, &a->findings.v.v[i]);
	return str_get(&text);
}

/* Threads 8 and 9 wait for 10 in f, then 9 for 8 in an unknown function, and nobody for 11. */
static void test_gil(void)
{
	const char *words;
	uint64_t sum = 0;

	start();
	request(200 * MS, 10);
	acquire(200 * MS, 10);
	request(210 * MS, 8);
	request(220 * MS, 9);
	feed(400 * MS, 10, EV_RELEASE, EV(.gil = { .address = GIL, .frame = frame("f", 5) }));
	released(400 * MS, 10);
	holds_from(420, 480, 8, 0);
	holds_from(480, 490, 9, 0);
	request(600 * MS, 11);
	holds_from(600, 950, 11, frame("f", 6));
	analyse();
	is_str(found(), "function f 370; thread ? 60; no-cpu ? 40",
	       "what the function caused in any line, the rest by thread, and hand-offs");
	for (size_t i = 0; i < a->findings.v.n; i++)
		sum += a->findings.v.v[i].cost_ns;
	is_u64(sum, a->evidence.totals.blamed_ns, "they add up to all waiting for the GIL");
	is_u64(a->findings.v.v[0].places.n, 1, "a hold for which nobody waited is no place");
	is_u64(a->findings.v.v[0].places.v[0].from_ns, 200 * MS,
	       "the hold for which threads waited is");
	is_u64(a->findings.v.v[0].places.v[0].cost_ns, 370 * MS, "and knows for how long");
	words = words_of(0);
	ok(strstr(words, "Run by ? (10): 78.7 % of all waiting for the GIL") != NULL,
	   "the words have the thread and the share: %s", words);
}

/* A function keeps the GIL after a request, and is in another hold of which nobody requested the end. */
static void test_keeps(void)
{
	const char *words;

	start();
	for (unsigned i = 0; i < 2; i++) {
		uint64_t at = 200 + 200 * i, end = at + 100 - 40 * i;

		request(at * MS, 10);
		acquire(at * MS, 10);
		request((at + 10) * MS, 8);
		if (!i)
			asks((at + 15) * MS, 8);
		feed(end * MS, 10, EV_RELEASE,
		     EV(.gil = { .address = GIL, .frame = frame("f", 5) }));
		released(end * MS, 10);
		holds_from(end, end + 10, 8, 0);
	}
	analyse();
	is_str(found(), "few-cpus ? 2005; call f 140",
	       "a function that keeps the GIL has the cost of all its holds");
	words = words_of(1);
	ok(strstr(words,
	          ": 64.3 % of all waiting for the GIL (90.0 ms) passed while it kept the GIL") !=
	           NULL,
	   "the words only have what passed while it kept it: %s", words);
}

/* Two functions of libraries are called in one line. */
static void test_titles(void)
{
	static const char *const called[] = { "loads", "dumps" };
	CLEANUP(str_done) struct str full = { 0 };

	start();
	for (unsigned i = 0; i < 2; i++) {
		const struct stack_frame f = { .parent = frame("handle", 20),
			                       .name = names_id(names, called[i], 5),
			                       .module = names_id(
						       names, "/usr/lib/python3.11/json.py", 27),
			                       .line = 3 + i,
			                       .flags = STACK_PYTHON };
		uint64_t at = 200 + 200 * i;

		request(at * MS, 10);
		acquire(at * MS, 10);
		request((at + 10 + 10 * i) * MS, 8);
		feed((at + 100) * MS, 10, EV_RELEASE,
		     EV(.gil = { .address = GIL, .frame = stacks_id(stacks, &f) }));
		released((at + 100) * MS, 10);
		holds_from(at + 100, at + 101, 8, 0);
	}
	analyse();
	is_str(found(), "function handle 90; function handle 80", "both findings are about it");
	is_str(title_of(0),
	       "Holds of the GIL that end in loads (json.py:3) called by handle (app.py:20)",
	       "the title of each has what is called");
	is_str(title_of(1),
	       "Holds of the GIL that end in dumps (json.py:4) called by handle (app.py:20)",
	       "and by whom");
	a->findings.v.v[1].kind = FINDING_CALL;
	is_str(title_of(0), "Holds of the GIL that end in handle (app.py:20)",
	       "by itself, it has the line of the program");
	finding_add_full_title(&full, a, &a->findings.v.v[0]);
	ok(strstr(str_get(&full), " loads (json.py:3) called by ") != NULL,
	   "but not where it is looked for in another recording: %s", str_get(&full));
}

/* The recorded calls tell what ran while others waited, not the function in which a hold ended, which is only
 * taken where no call is recorded. */
static void test_calls(void)
{
	struct slice calls[] = {
		{ 190 * MS, 300 * MS, 0, 0, 0 },
		{ 200 * MS, 190 * MS, 0, 1, 0 },
		{ 391 * MS, 20 * MS, 0, 1, 0 },
		{ 700 * MS, 20 * MS, 0, 0, 0 },
	};
	struct slice_thread thread = { .tid = 10, .pid = 7, .v = calls, .n = 4 };
	struct slices recorded = { .names = names, .threads = &thread, .thread_count = 1 };
	const struct finding *f;
	uint64_t sum = 0;
	const char *words;

	calls[0].name = names_id(names, "handle (/srv/app.py:20)", 23);
	calls[1].name = names_id(names, "decode (/usr/lib/python3.11/json.py:3)", 38);
	calls[2].name = names_id(names, "write (/srv/app.py:30)", 22);
	calls[3].name = names_id(names, "f (/srv/app.py:5)", 17);
	slices = &recorded;
	start();
	request(200 * MS, 10);
	acquire(200 * MS, 10);
	request(210 * MS, 8);
	request(220 * MS, 9);
	feed(410 * MS, 10, EV_RELEASE, EV(.gil = { .address = GIL, .frame = frame("write", 31) }));
	released(410 * MS, 10);
	holds_from(410, 480, 8, 0);
	holds_from(480, 500, 9, frame("f", 5));
	request(600 * MS, 8);
	acquire(600 * MS, 8);
	request(601 * MS, 11);
	feed(640 * MS, 8, EV_RELEASE, EV(.gil = { .address = GIL, .frame = frame("f", 5) }));
	released(640 * MS, 8);
	holds_from(640, 641, 11, 0);
	request(700 * MS, 10);
	acquire(700 * MS, 10);
	request(701 * MS, 8);
	feed(720 * MS, 10, EV_RELEASE, EV(.gil = { .address = GIL, .frame = frame("f", 5) }));
	released(720 * MS, 10);
	holds_from(720, 721, 8, 0);
	analyse();
	slices = NULL;
	is_str(found(), "function handle 350; thread ? 70; function f 58; function write 38",
	       "what ran is charged, then where holds ended, then threads");
	for (size_t i = 0; i < a->findings.v.n; i++)
		sum += a->findings.v.v[i].cost_ns;
	is_u64(sum + 2 * MS, a->evidence.totals.blamed_ns,
	       "they add up to all waiting for the GIL, but for 2 ms in handle() itself");
	f = &a->findings.v.v[0];
	is_str(f->ran, "decode (/usr/lib/python3.11/json.py:3)",
	       "of a function of a library, the caller in the program is shown");
	is_u64(f->places.n, 1, "the hold in which it ran is its place");
	is_u64(f->places.v[0].to_ns, 410 * MS, "which lasts longer");
	is_u64(f->places.v[0].cost_ns, f->cost_ns, "but costs only what was charged to it");
	words = words_of(0);
	ok(strstr(words, "In decode (json.py:3) called by handle (app.py:20): ") == words,
	   "the words have both: %s", words);
	words = words_of(2);
	ok(strstr(words, "(39.0 ms) passed in holds that ended there") != NULL,
	   "of one whose calls are not all recorded, only the holds that ended there: %s", words);
	is_str(finding_place_of(a, &a->findings.v.v[3]).name, "write",
	       "the program's own function");
	is_u64(finding_place_of(a, &a->findings.v.v[3]).line, 31,
	       "has the line at which a hold ended");
}

/* The wait for the lock is longer than all for the GIL; the thread that has it sleeps in one line and
 * waits for the GIL in another. */
static void test_lock(void)
{
	const struct finding *f;
	const char *words;

	start();
	request(110 * MS, 8);
	holds_from(110, 120, 8, frame("take", 14));
	request(130 * MS, 9);
	holds_from(130, 140, 9, frame("get", 9));
	request(131 * MS, 10);
	holds_from(141, 142, 10, frame("get", 9));
	parks(150 * MS, 9, LOCK, PARK_LOCK);
	parks(160 * MS, 10, LOCK, PARK_LOCK);
	request(300 * MS, 11);
	acquire(300 * MS, 11);
	request(310 * MS, 8);
	feed(500 * MS, 11, EV_RELEASE, EV(.gil = { .address = GIL, .frame = frame("keep", 7) }));
	released(500 * MS, 11);
	holds_from(500, 510, 8, frame("take", 15));
	unparks(800 * MS, 8, LOCK);
	parked(800 * MS, 9);
	unparks(900 * MS, 9, LOCK);
	parked(900 * MS, 10);
	analyse();
	is_str(verdict_kind_name(a->verdict.kind), "lock-bound",
	       "locks are what the headline is about");
	is_str(found(), "lock get 1390; function keep 190",
	       "the waits in a line are one finding, before the waits for the GIL");
	f = &a->findings.v.v[0];
	is_u64(f->count, 2, "of two waits");
	is_u64(f->threads, 2, "of two threads");
	is_u64(f->cost_ns, a->chains.ns, "which are all waiting for locks");
	is_u64(f->places.v[0].from_ns, 160 * MS, "the longest first");
	is_u64(f->remedy, ADVICE_LOCK_ASLEEP, "the code with the lock sleeps for much of it");
	words = words_of(0);
	ok(strstr(words,
	          "while the thread that had the lock was without the GIL in take (app.py:15)") !=
	           NULL,
	   "the words have the line with the lock: %s", words);
	ok(strstr(words, "waited for one that held the GIL up to keep (app.py:7)") != NULL,
	   "and what it waited for itself");
}

static const struct line_times *line_of(const char *name, uint32_t line)
{
	for (size_t i = 0; i < a->lines.v.n; i++) {
		struct function f = function_at(a->pass, a->lines.v.v[i].frame);

		if (!strcmp(f.name, name) && f.line == line)
			return &a->lines.v.v[i];
	}
	return NULL;
}

/* After test_lock. */
static void test_lines(void)
{
	uint64_t caused = 0, waited = 0, locks = 0, lock_caused = 0, ended = 0;

	for (size_t i = 0; i < a->lines.v.n; i++) {
		caused += a->lines.v.v[i].caused_ns;
		waited += a->lines.v.v[i].waited_ns;
		locks += a->lines.v.v[i].lock_ns;
		lock_caused += a->lines.v.v[i].lock_caused_ns;
	}
	for (size_t i = 0; i < a->chains.v.n; i++)
		ended += a->chains.v.v[i].at ? a->chains.v.v[i].ns : 0;
	is_u64(locks, a->chains.ns, "the lines add up to all waits for locks");
	is_u64(lock_caused, ended, "and to all that is known of what was done meanwhile");
	is_u64(caused, 190 * MS, "and to all waits during holds");
	is_u64(waited, 0, "the lines of waits for the GIL were not recorded");
	is_u64(line_of("get", 9)->lock_ns, a->chains.ns, "the line that waits for the lock");
	ok(line_of("take", 15)->lock_caused_ns > line_of("keep", 7)->lock_caused_ns &&
	           line_of("keep", 7)->lock_caused_ns > 0,
	   "the lines that ran meanwhile, of the thread with the lock and of the one that it "
	   "waited for");
	is_u64(line_of("keep", 7)->held_ns, 200 * MS, "a hold has its line");
}

/* A third of the little time in which threads wanted to run, but a blink of the recording. */
static void test_idle(void)
{
	start();
	request(110 * MS, 8);
	acquire(110 * MS, 8);
	request(111 * MS, 9);
	request(111 * MS, 10);
	feed(115 * MS, 8, EV_RELEASE, EV(.gil = { .address = GIL, .frame = frame("f", 5) }));
	released(115 * MS, 8);
	holds_from(115, 116, 9, 0);
	holds_from(116, 117, 10, 0);
	analyse();
	ok(a->evidence.wait_ns * 3 > a->evidence.wanted_ns,
	   "threads waited for a third of that time");
	is_str(found(), "", "8 ms of waiting in a program that sleeps are no finding");
}

/* Less than a hundredth of the time in which threads wanted to run. */
static void test_little(void)
{
	start();
	request(110 * MS, 8);
	acquire(110 * MS, 8);
	request(500 * MS, 9);
	feed(501 * MS, 8, EV_RELEASE, EV(.gil = { .address = GIL, .frame = frame("f", 5) }));
	released(501 * MS, 8);
	holds_from(501, 502, 9, frame("f", 5));
	analyse();
	is_str(found(), "", "a little waiting is no finding");
}

/* Names are no markup. */
static void test_markdown(void)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct error err;

	start();
	request(200 * MS, 10);
	acquire(200 * MS, 10);
	request(210 * MS, 8);
	feed(400 * MS, 10, EV_RELEASE,
	     EV(.gil = { .address = GIL, .frame = frame("<b>*_`x`[y](z)\n# f|g", 5) }));
	released(400 * MS, 10);
	holds_from(400, 410, 8, 0);
	analyse();
	report_markdown(a, out, &err);
	fclose(out);
	ok(strstr(text,
	          "1. **Holds of the GIL that end in \\<b\\>\\*\\_\\`x\\`\\[y\\](z)?\\# f\\|g "
	          "(app.py:5)**") != NULL,
	   "a name is escaped: %s", text);
	ok(!strncmp(text, "## The GIL ", 11), "the headline is first");
	free(text);
}

/* A list that is cut says so. */
static void test_many(void)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct error err;

	start();
	request(110 * MS, 8);
	for (unsigned i = 0; i < FINDINGS_MAX + 4; i++) {
		char name[8];

		snprintf(name, sizeof(name), "f%u", i);
		holds_from(110 + 40 * i, 150 + 40 * i, 10, frame(name, i + 1));
	}
	analyse();
	report_markdown(a, out, &err);
	fclose(out);
	is_u64(a->findings.v.n, FINDINGS_MAX, "the findings that cost most");
	ok(strstr(text, "… and 5 more, which cost less.") != NULL,
	   "and how many more there are: %s", text);
	free(text);
}

/* One definition for tables, exports and the page. */
static void test_library(void)
{
	ok(function_in_library("loads (/usr/lib64/python3.9/json/__init__.py:4)"), "the library");
	ok(function_in_library("/venv/lib/python3.13/site-packages/a.py"), "a package");
	ok(function_in_library("<frozen importlib._bootstrap>"), "a frozen module");
	ok(!function_in_library("/home/me/python3.11/app.py"), "not a folder of that name");
	is_str(function_import_path("/opt/python3.11/lib/python3.11/json/a.py:3)"), "json/a.py:3)",
	       "what import finds");
	is_str(function_import_path("/usr/lib/python3/dist-packages/b/c.py"), "b/c.py",
	       "in a package");
	is_str(function_import_path("/home/me/python3.11/app.py"), "/home/me/python3.11/app.py",
	       "the program's own path is whole");
}

int main(void)
{
	test_library();
	test_gil();
	test_keeps();
	test_titles();
	test_calls();
	test_lock();
	test_lines();
	test_little();
	test_idle();
	test_markdown();
	test_many();
	analysis_free(a);
	hogs_done(&hogs);
	model_free(m);
	stacks_free(stacks);
	names_free(names);
	return done_testing();
}

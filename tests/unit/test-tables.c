/* SPDX-License-Identifier: MIT */
/* The page's tables for readers without JavaScript: of groups, and never silent on what is left
 * out.
 */
#include "analysis/analysis.h"
#include "analysis/groups.h"
#include "report-fixture.h"
#include "report/html/html.h"
#include "report/words.h"

#include "tap.h"

/* Caller frees. */
static char *tables_of(const struct recording *report)
{
	char *ret = NULL;
	size_t len;
	FILE *out = open_memstream(&ret, &len);
	struct analysis *a = analysis_new(report);

	html_tables(a, out);
	analysis_free(a);
	fclose(out);
	return ret;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* The part of the tables from this caption to the next one; caller frees. */
static char *table(const char *tables, const char *caption)
{
	const char *from = strstr(tables, caption), *to;

	if (!from)
		return xstrdup("");
	to = strstr(from, "<caption>");
	return xstrndup(from, to ? (size_t)(to - from) : strlen(from));
}

static void has(const char *tables, const char *caption, const char *what, const char *why)
{
	CLEANUP(free) char *text = table(tables, caption);

	ok(strstr(text, what) != NULL, "%s", why);
	if (!strstr(text, what))
		printf("# no %s in %.3000s\n", what, text);
}

static void test_hog(void)
{
	struct fixture f;
	CLEANUP(free) char *text = NULL;

	fixture_hog(&f);
	text = tables_of(&f.report);
	ok(!strstr(text, "<b>") && !strstr(text, "</script>"), "names are text");
	has(text, "Threads, by time spent waiting",
	    "<tr><th scope=\"row\">python3 100*</th><td>100.0</td>", "a thread by name and id");
	has(text, "GIL waits, by holder", "</th><td>nobody (hand-off)</td>",
	    "who waited for nobody");
	ok(!strstr(text, "Time spent runnable"), "no table of what is not known");
	ok(!strstr(text, "… and"), "nothing is left out");
	has(text, "GIL waits, by holder",
	    "<p>Not included: 1.0 ms of switch wait after forced releases.</p>",
	    "but what nobody is to blame for, which is said");
	fixture_done(&f);
}

/* n threads of like names that each wait for the next one for 2 ms, and for a CPU. */
static void fixture_group(struct fixture *f, uint32_t n, bool digits)
{
	static char text[2100][16];

	fixture_init(f, 100);
	fixture_thread(f, 7, 7, "main");
	for (uint32_t i = 1; i <= n; i++) {
		if (digits)
			snprintf(text[i], sizeof(text[i]), "pool-%u", i);
		else
			for (uint32_t k = 0, id = i; k < 4; k++, id /= 26)
				text[i][k] = (char)('a' + id % 26);
		fixture_gil(f, fixture_thread(f, 7, 100 + i, text[i]), GIL_WAIT, 2);
		f->model.threads.v[i].longest_wait_ns = i * FIXTURE_MS;
	}
	for (uint32_t i = 1; i <= n; i++)
		fixture_blame(f, i, i < n ? i + 1 : MODEL_NONE, 2, i == 5 ? 2 : 1, i);
}

static void test_group(void)
{
	struct fixture f;
	CLEANUP(free) char *text = NULL;

	fixture_group(&f, 2000, true);
	text = tables_of(&f.report);
	has(text, "Threads, by time spent waiting",
	    "<th scope=\"row\">pool-* 2000 threads</th><td>200000.0</td>",
	    "two thousand threads of like names are a row");
	has(text, "Threads, by time spent waiting", "<td>2000.000</td>",
	    "with the longest wait of any");
	has(text, "States of the threads", "pool-* 2000 threads", "as in the table of states");
	has(text, "GIL waits, by holder",
	    "pool-* 2000 threads</th><td>pool-* 2000 threads</td><td>3998.0</td><td>2.000</td>",
	    "all that they waited for each other is another row");
	ok(strlen(text) < 10000, "the tables are small");
	fixture_done(&f);
}

/* What the table of these rows shows and what it says that it left out, in tenths of a ms. */
static uint64_t sum_of(const char *text)
{
	const char *rest = strstr(text, " more, which waited ");
	uint64_t sum = rest ? (uint64_t)(strtod(rest + 20, NULL) * 10 + 0.5) : 0;

	for (; (text = strstr(text, "</td><td>")); text += 9)
		if (text[9] >= '0' && text[9] <= '9' && strstr(text + 9, "</td><td>") &&
		    strstr(text + 9, "</td><td>") < strstr(text, "</tr>"))
			sum += (uint64_t)(strtod(text + 9, NULL) * 10 + 0.5);
	return sum;
}

static void test_limit(void)
{
	struct fixture f;
	CLEANUP(free) char *text = NULL, *blame = NULL, *threads = NULL;

	fixture_group(&f, 2000, false);
	text = tables_of(&f.report);
	blame = table(text, "GIL waits, by holder");
	threads = table(text, "Threads, by time spent waiting");
	is_u64(count(blame, "<tr><th scope=\"row\">"), HTML_ROWS, "a table has so many rows");
	has(text, "GIL waits, by holder", "… and 1000 more, which waited 2000.0 ms in all.",
	    "what it leaves out is said");
	is_u64(sum_of(blame), 40000, "and with it all the waiting is there");
	is_u64(count(threads, "<tr><th scope=\"row\">"), HTML_ROWS, "of threads, too");
	ok(strstr(threads, "… and 1001 more, with lifetimes of 100100.0 ms in all.") != NULL,
	   "and what of them it leaves out");
	fixture_done(&f);
}

static void starved(struct fixture *f, uint32_t thread, uint32_t by, uint32_t name, uint64_t ms)
{
	*vec_push(&f->model.cpu_blame) = (struct model_cpu_blame){ thread, by, name,
		                                                   ms * FIXTURE_MS };
}

static void test_line(void)
{
	struct names *names = names_new();
	uint32_t other = names_id(names, "<cc1>", 5);
	struct fixture f;
	CLEANUP(free) char *text = NULL;

	fixture_group(&f, 20, true);
	f.source.cpu_names = names;
	starved(&f, 0, 3, 0, 10);
	for (uint32_t i = 1; i <= 20; i++) {
		starved(&f, i, MODEL_NONE, other, 2);
		starved(&f, i, MODEL_NONE, 0, 1);
		starved(&f, i, i % 20 + 1, 0, 1);
		starved(&f, i, MODEL_UNKNOWN, 0, i == 1 ? 10 : 0);
	}
	text = tables_of(&f.report);
	has(text, "Time spent runnable",
	    "<th scope=\"row\">pool-* 20 "
	    "threads</th><td>&lt;cc1&gt;</td><td>40.0</td><td>40.0</td>",
	    "who stood behind another program, and its share");
	has(text, "Time spent runnable",
	    "pool-* 20 threads</th><td>pool-* 20 threads</td><td>20.0</td>", "behind each other");
	has(text, "Time spent runnable",
	    "pool-* 20 threads</th><td>nobody</td><td>20.0</td><td>20.0</td>", "behind nobody");
	has(text, "Time spent runnable", "<td>unknown</td><td>10.0</td>",
	    "behind whom is not known");
	has(text, "Time spent runnable", "main 7*</th><td>pool-* 20 threads</td><td>10.0</td>",
	    "and a thread that is alone");
	fixture_done(&f);
	names_free(names);
}

static void lock_blame(struct fixture *f, enum gil_state state, uint32_t waiter, uint32_t by)
{
	*vec_push(&f->model.lock_blame) = (struct model_lock_blame){
		waiter, by, state, 3 * FIXTURE_MS, waiter * FIXTURE_MS, fixture_time(waiter)
	};
}

static void test_locks(void)
{
	struct group_blames blames;
	struct thread_groups groups;
	struct fixture f;
	CLEANUP(free) char *text = NULL;

	fixture_group(&f, 20, true);
	f.report.python.free_threaded = f.pass.free_threaded = true;
	f.model.gil_events = 0;
	f.model.park_events = 100;
	f.model.blame.n = 0;
	f.model.threads.v[9].longest_stop_ns = 7 * FIXTURE_MS;
	for (uint32_t i = 1; i <= 20; i++) {
		lock_blame(&f, GIL_LOCK_WAIT, i, i < 20 ? i + 1 : 1);
		lock_blame(&f, GIL_STOPPED, i, i % 2 ? 0 : MODEL_UNKNOWN);
	}
	text = tables_of(&f.report);
	has(text, "Threads, by time spent blocked", "pool-* 20 threads</th><td>2000.0</td>",
	    "groups of a free-threaded interpreter");
	has(text, "Threads, by time spent blocked", "<td>7.000</td></tr>",
	    "with the longest stop of any");
	has(text, "Lock waits, by releasing thread",
	    "pool-* 20 threads</th><td>pool-* 20 "
	    "threads</td><td>lock</td><td>60.0</td><td>20.000</td>",
	    "who waited for whose lock");
	has(text, "Lock waits, by releasing thread",
	    "pool-* 20 threads</th><td>main 7*</td><td>stopped</td><td>30.0</td><td>19.000</td>",
	    "is not added to who was stopped by whom");
	has(text, "Lock waits, by releasing thread",
	    "pool-* 20 threads</th><td>not recorded</td><td>stopped</td>",
	    "nor to by whom was not seen");
	thread_groups_init_table(&groups, &f.pass);
	blames = group_blames_find(&groups, &f.model, WAIT_FOR_LOCK);
	ok(blames.v.n == 3 && blames.v.v[0].pairs == 20 && blames.v.v[0].longest_waiter == 20 &&
	           blames.v.v[0].longest_holder == 1 &&
	           blames.v.v[0].longest_at_ns == fixture_time(20),
	   "which two threads the longest is of");
	vec_done(&blames.v);
	thread_groups_done(&groups);
	fixture_done(&f);
}

/* A group has the sum of each number of its threads, or the longest with its time. */
static void test_sum(void)
{
	const size_t from = offsetof(struct model_thread, gil_ns);
	const size_t longest = offsetof(struct model_thread, longest_hold_ns);
	const size_t end = offsetof(struct model_thread, gil);
	unsigned forgotten = 0, not_longest = 0;
	struct thread_groups groups;
	struct fixture f;

	fixture_init(&f, 10);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t thread = fixture_thread(&f, 1, 2 + i, i ? "w-1" : "w-2");
		char *t = (char *)&f.model.threads.v[thread];

		for (size_t at = from; at < end; at += sizeof(uint64_t))
			memcpy(t + at, &(uint64_t){ i ? 3 : 5 }, sizeof(uint64_t));
	}
	thread_groups_init(&groups, &f.pass);
	is_u64(groups.v.n, 1, "two threads of a group");
	for (size_t at = from; at < end; at += sizeof(uint64_t)) {
		uint64_t sum;

		memcpy(&sum, (const char *)&groups.v.v[0].sum + at, sizeof(sum));
		if (at < longest)
			forgotten += sum != 8;
		else
			not_longest += sum != 5;
	}
	is_u64(forgotten, 0, "each number is added up");
	is_u64(not_longest, 0, "the longest are those of one thread");
	/* A new number stands among these, or is none of a group. */
	is_u64(from, offsetof(struct model_thread, end_ns) + sizeof(uint64_t),
	       "there are no numbers before them");
	is_u64(sizeof(struct model_thread),
	       end + 2 * sizeof(struct lane) + sizeof(f.model.threads.v[0].signals) +
	               sizeof(f.model.threads.v[0].kept),
	       "  and none after them");
	thread_groups_done(&groups);
	fixture_done(&f);
}

/* Chains that differ are different rows of one table. */
static void test_chains(void)
{
	const char *words[2 * CHAIN_ENDS];
	unsigned same = 0;

	for (unsigned i = 0; i < 2 * CHAIN_ENDS; i++) {
		words[i] = wording_chain(&(struct chain){ .end = i / 2, .through = i % 2 });
		for (unsigned k = 0; k < i; k++)
			same += !strcmp(words[i], words[k]);
	}
	is_u64(same, 0, "no two ends of chains have the same words");
}

int main(void)
{
	test_chains();
	test_hog();
	test_group();
	test_limit();
	test_line();
	test_locks();
	test_sum();
	return done_testing();
}

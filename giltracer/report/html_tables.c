/* SPDX-License-Identifier: MIT */
/* The numbers of the terminal's tables as HTML, with more rows. */
#include "html_tables.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "report/crowd_blame.h"
#include "report/facts.h"
#include "report/functions.h"
#include "report/html.h"
#include "report/locks.h"
#include "report/starved.h"

#define FUNCTION_COLUMNS 80

/* Cells of the first column are headings of their rows. */
#define ROW_BEGIN "<tr><th scope=\"row\">"
#define ROW_FIRST "</th>"

static void put_name(const struct report_pass *pass, uint32_t thread, FILE *out)
{
	CLEANUP(str_done) struct str id = { 0 };

	html_text(facts_thread_name(pass, thread), out);
	facts_add_id(&id, pass, thread);
	fprintf(out, " %s", str_get(&id));
}

/* A thread, or "Thread-* 12 threads". */
static void put_crowd(const struct report_pass *pass, const struct crowd *crowd, FILE *out)
{
	if (crowd->threads == 1) {
		put_name(pass, crowd->first, out);
		return;
	}
	html_text(str_get(&crowd->name), out);
	fprintf(out, " %" PRIu32 " threads", crowd->threads);
}

static void put_number(double value, int decimals, FILE *out)
{
	fprintf(out, "<td>%.*f</td>", decimals, value);
}

static void put_headings(const char *caption, const char *const *headings, FILE *out)
{
	fprintf(out, "<table>\n<caption>%s</caption>\n<thead><tr>", caption);
	for (size_t i = 0; headings[i]; i++)
		fprintf(out, "<th scope=\"col\">%s</th>", headings[i]);
	fputs("</tr></thead>\n<tbody>\n", out);
}

/* left rows, which are so long in all, were left out. */
static void put_end(size_t left, const char *what, uint64_t ns, FILE *out)
{
	fputs("</tbody>\n</table>\n", out);
	if (left)
		fprintf(out, "<p>And %zu more, which %s %.1f ms in all.</p>\n", left, what,
		        facts_ms(ns));
}

static uint64_t life(const struct model_thread *t)
{
	return t->end_ns - t->start_ns;
}

static void put_gil_row(const struct model_thread *t, FILE *out)
{
	struct facts_shares s = facts_shares(t);

	put_number(facts_ms(life(t)), 1, out);
	put_number(s.no_gil, 1, out);
	put_number(s.hold, 1, out);
	put_number(s.wait, 1, out);
	put_number(s.unknown, 1, out);
	put_number(facts_ms(t->longest_wait_ns), 3, out);
	put_number(facts_ms(t->longest_hold_ns), 3, out);
}

static void put_lock_row(const struct model_thread *t, FILE *out)
{
	struct locks_shares s = locks_shares(t);

	put_number(facts_ms(life(t)), 1, out);
	put_number(s.free, 1, out);
	put_number(s.lock_wait, 1, out);
	put_number(s.stopped, 1, out);
	put_number(s.stops, 1, out);
	put_number(s.unknown, 1, out);
	put_number(facts_ms(t->longest_lock_wait_ns), 3, out);
	put_number(facts_ms(t->longest_stop_ns), 3, out);
}

static void put_states_row(const struct model_thread *t, FILE *out)
{
	static const enum cpu_state columns[] = { CPU_RUNNING,         CPU_RUNNABLE,  CPU_SLEEPING,
		                                  CPU_UNINTERRUPTIBLE, CPU_GIL_SLEEP, CPU_UNKNOWN };
	struct facts_states s = facts_states(t);

	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		put_number(s.percent[columns[i]], 1, out);
}

/* A row for each thread or crowd, in their order. */
static void put_threads(const struct report_pass *pass, const struct crowds *crowds,
                        void (*put)(const struct model_thread *, FILE *), FILE *out)
{
	uint64_t left_ns = 0;
	size_t n = 0;

	for (; n < crowds->v.n && n < HTML_ROWS; n++) {
		fputs(ROW_BEGIN, out);
		put_crowd(pass, &crowds->v.v[n], out);
		fputs(ROW_FIRST, out);
		put(&crowds->v.v[n].sum, out);
		fputs("</tr>\n", out);
	}
	for (size_t i = n; i < crowds->v.n; i++)
		left_ns += life(&crowds->v.v[i].sum);
	put_end(crowds->v.n - n, "lived", left_ns, out);
}

static void put_gil(const struct report_pass *pass, const struct crowds *crowds, FILE *out)
{
	static const char *const headings[] = { "thread",          "total ms",        "no gil%",
		                                "has gil%",        "gil wait%",       "unknown%",
		                                "longest wait ms", "longest hold ms", NULL };

	put_headings("Threads, most wait first; * is a main thread. Shares are of what is known.",
	             headings, out);
	put_threads(pass, crowds, put_gil_row, out);
}

static void put_locks(const struct report_pass *pass, const struct crowds *crowds, FILE *out)
{
	static const char *const headings[] = { "thread",          "total ms",
		                                "free%",           "lock wait%",
		                                "stopped%",        "stops%",
		                                "unknown%",        "longest lock wait ms",
		                                "longest stop ms", NULL };

	put_headings(
		"Threads, most blocked first; * is a main thread. Shares are of what is known.",
		headings, out);
	put_threads(pass, crowds, put_lock_row, out);
}

static void put_states(const struct report_pass *pass, const struct crowds *crowds, FILE *out)
{
	static const char *const headings[] = { "thread", "running%",   "in line%", "asleep%",
		                                "disk%",  "GIL sleep%", "unknown%", NULL };

	put_headings("What the threads did on the CPUs. Shares are of what is known.", headings,
	             out);
	put_threads(pass, crowds, put_states_row, out);
}

static void put_holder(const struct report_pass *pass, const struct crowds *crowds,
                       const struct crowd_blame *b, FILE *out)
{
	const char *program = starved_program(pass, b->holder, b->name);

	if (program)
		html_text(program, out);
	else if (b->holder >= MODEL_UNKNOWN)
		fputs(crowd_blame_nobody(b), out);
	else
		put_crowd(pass, &crowds->v.v[b->holder], out);
}

/**
 * How rows of who waited for whom are shown.
 * @waiter_first: else the holder
 * @kinds: with a column that says what it waited for
 * @longest: the last column is the longest wait; else its share of all
 */
struct blame_style {
	const char *caption;
	const char *const *headings;
	const char *what;
	bool waiter_first, kinds, longest;
};

static void put_blame_row(const struct report_pass *pass, const struct crowds *crowds,
                          const struct crowd_blame *b, const struct blame_style *style,
                          uint64_t all_ns, FILE *out)
{
	fputs(ROW_BEGIN, out);
	if (style->waiter_first)
		put_crowd(pass, &crowds->v.v[b->waiter], out);
	else
		put_holder(pass, crowds, b, out);
	fputs(ROW_FIRST "<td>", out);
	if (style->waiter_first)
		put_holder(pass, crowds, b, out);
	else
		put_crowd(pass, &crowds->v.v[b->waiter], out);
	fputs("</td>", out);
	if (style->kinds)
		fprintf(out, "<td>%s</td>", b->kind == CROWD_STOPPED ? "stopped" : "lock");
	put_number(facts_ms(b->wait_ns), 1, out);
	if (style->longest)
		put_number(facts_ms(b->longest_ns), 3, out);
	else
		put_number(facts_percent(b->wait_ns, all_ns), 1, out);
	fputs("</tr>\n", out);
}

/* Takes the rows. Whether there were any. */
static bool put_blames(const struct report_pass *pass, const struct crowds *crowds,
                       struct crowd_blames blames, const struct blame_style *style, FILE *out)
{
	uint64_t all_ns = 0, shown_ns = 0;
	size_t n = 0;

	for (size_t i = 0; i < blames.v.n; i++)
		all_ns += blames.v.v[i].wait_ns;
	if (all_ns) {
		put_headings(style->caption, style->headings, out);
		for (; n < blames.v.n && n < HTML_ROWS; n++) {
			put_blame_row(pass, crowds, &blames.v.v[n], style, all_ns, out);
			shown_ns += blames.v.v[n].wait_ns;
		}
		put_end(blames.v.n - n, style->what, all_ns - shown_ns, out);
	}
	vec_done(&blames.v);
	return all_ns;
}

static void put_note(const struct str *note, FILE *out)
{
	if (note->len)
		fprintf(out, "<p>%s</p>\n", str_get(note));
}

static void put_notes(const struct model *model, FILE *out)
{
	struct facts_totals totals = facts_totals(model);
	CLEANUP(str_done) struct str switched = { 0 }, unheld = { 0 };

	facts_add_blame_notes(&switched, &unheld, &totals);
	put_note(&switched, out);
	put_note(&unheld, out);
}

static void put_blame(const struct report_pass *pass, const struct crowds *crowds, FILE *out)
{
	static const char *const headings[] = { "held the GIL", "waited for it", "wait ms",
		                                "longest ms", NULL };
	static const char *const locks[] = { "let go",     "was blocked until then",
		                             "what",       "wait ms",
		                             "longest ms", NULL };
	static const char *const line[] = { "stood in line", "the CPU was had by", "ms",
		                            "of all time in line%", NULL };
	const struct model *model = pass->model;

	put_blames(pass, crowds, crowds_blame(crowds, model, CROWD_LOCK),
	           &(struct blame_style){ .caption = "Who was blocked until whom",
	                                  .headings = locks,
	                                  .what = "waited",
	                                  .kinds = true,
	                                  .longest = true },
	           out);
	if (put_blames(pass, crowds, crowds_blame(crowds, model, CROWD_GIL),
	               &(struct blame_style){ .caption = "Who waited for whom",
	                                      .headings = headings,
	                                      .what = "waited",
	                                      .longest = true },
	               out))
		put_notes(model, out);
	put_blames(pass, crowds, crowds_blame(crowds, model, CROWD_LINE),
	           &(struct blame_style){ .caption = "Who stood in line for a CPU behind whom",
	                                  .headings = line,
	                                  .what = "stood in line for",
	                                  .waiter_first = true },
	           out);
}

static void put_hog(const struct report_pass *pass, const struct hog *hog, FILE *out)
{
	CLEANUP(str_done) struct str name = { 0 };

	function_add_row(&name, pass, hog, FUNCTION_COLUMNS);
	fputs(ROW_BEGIN, out);
	html_text(str_get(&name), out);
	fputs(ROW_FIRST "<td>", out);
	put_name(pass, hog->thread, out);
	fputs("</td>", out);
	put_number(facts_ms(hog->late_wait_ns), 1, out);
	fprintf(out, "<td>%" PRIu64 "</td>", hog->late_holds);
	put_number(facts_ms(hog->late_ns), 1, out);
	put_number(facts_ms(hog->late_longest_ns), 3, out);
	put_number(facts_ms(hog->off_cpu_ns), 1, out);
	if (function_gain(pass, hog) == HOGS_NO_GAIN)
		fputs("<td>?</td>", out);
	else
		put_number(facts_ms(function_gain(pass, hog)), 1, out);
	fputs("</tr>\n", out);
}

/* Late holds only, as in the JSON's "hogs". */
static void put_hogs(const struct report_pass *pass, FILE *out)
{
	static const char *const headings[] = { "function",   "thread",        "others waited ms",
		                                "holds",      "held ms",       "longest ms",
		                                "off cpu ms", "would save ms", NULL };
	const struct hogs *hogs = pass->hogs;
	uint64_t left_ns = 0;
	size_t n = 0, left = 0;

	if (!hogs || !hogs->v.n || !hogs->v.v[0].late_holds)
		return;
	put_headings("Calls that kept the GIL when they were asked to let go", headings, out);
	for (; n < hogs->v.n && n < HTML_ROWS && hogs->v.v[n].late_holds; n++)
		put_hog(pass, &hogs->v.v[n], out);
	for (; n + left < hogs->v.n && hogs->v.v[n + left].late_holds; left++)
		left_ns += hogs->v.v[n + left].late_wait_ns;
	put_end(left, "made others wait", left_ns, out);
	fputs("<p>Would save: " FUNCTIONS_GAIN ".</p>\n", out);
}

void html_tables(const struct report *report, FILE *out)
{
	const struct report_pass *pass = report_main_pass(report);
	struct crowds crowds;

	crowds_init_table(&crowds, pass);
	(locks_of_pass(pass) ? put_locks : put_gil)(pass, &crowds, out);
	put_states(pass, &crowds, out);
	put_blame(pass, &crowds, out);
	put_hogs(pass, out);
	crowds_done(&crowds);
}

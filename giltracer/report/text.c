/* SPDX-License-Identifier: MIT */
/* The terminal table, who waited for whom, and what to know about the numbers. */
#include <inttypes.h>
#include <stdlib.h>

#include "report/crowd_blame.h"
#include "report/facts.h"
#include "report/functions.h"
#include "report/locks.h"
#include "report/patterns.h"
#include "report/starved.h"
#include "report/report.h"
#include "report/terminal.h"
#include "report/texttable.h"
#include "report/utf8.h"
#include "report/verdict.h"

#define THREAD_ROWS   24
#define BLAME_ROWS    8
#define BLAME_SHARE   0.5 /* percent of the waiting that is worth a row */
#define FUNCTION_ROWS 5

static void add_thread_row(struct table *table, const struct report_pass *pass,
                           const struct crowd *crowd)
{
	const struct model_thread *t = &crowd->sum;
	struct facts_shares shares = facts_shares(t);
	struct row *row = table_row(table);

	row_crowd(row, 0, pass, crowd);
	row_number(row, 1, facts_ms(t->end_ns - t->start_ns), 1);
	row_number(row, 2, shares.no_gil, 1);
	row_number(row, 3, shares.hold, 1);
	row_number(row, 4, shares.wait, 1);
	row_number(row, 5, shares.unknown, 1);
	row_number(row, 6, facts_ms(t->longest_wait_ns), 3);
	row_number(row, 7, facts_ms(t->longest_hold_ns), 3);
}

/* The order of the columns, in text and page. */
static const enum cpu_state state_columns[] = {
	CPU_RUNNING, CPU_RUNNABLE, CPU_SLEEPING, CPU_UNINTERRUPTIBLE, CPU_GIL_SLEEP, CPU_UNKNOWN,
};

static void add_states_row(struct table *table, const struct report_pass *pass,
                           const struct crowd *crowd)
{
	struct facts_states states = facts_states(&crowd->sum);
	struct row *row = table_row(table);

	row_crowd(row, 0, pass, crowd);
	row_number(row, 1, facts_ms(crowd->sum.end_ns - crowd->sum.start_ns), 1);
	for (unsigned c = 0; c < 6; c++)
		row_number(row, c + 2, states.percent[state_columns[c]], 1);
}

/* A row for each thread or crowd, those that waited most first. */
static void put_threads(
	const struct report_pass *pass, const struct crowds *crowds, const char *const *headings,
	void (*add)(struct table *, const struct report_pass *, const struct crowd *), FILE *out)
{
	struct table table = { .columns = 8, .text_columns = 1 };
	size_t n = 0;

	table_headings(&table, headings);
	for (; n < crowds->v.n && n < THREAD_ROWS; n++)
		add(&table, pass, &crowds->v.v[n]);
	table_end(&table, crowds->v.n - n, " that waited less; all are in the report", out);
}

static void add_blame_row(struct table *table, const struct report_pass *pass,
                          const struct crowds *crowds, const struct crowd_blame *blame)
{
	struct row *row = table_row(table);

	row_crowd(row, 0, pass, &crowds->v.v[blame->waiter]);
	if (blame->holder >= MODEL_UNKNOWN)
		row_text(row, 1, crowd_blame_nobody(blame));
	else
		row_crowd(row, 1, pass, &crowds->v.v[blame->holder]);
	row_number(row, 2, facts_ms(blame->wait_ns), 1);
	row_number(row, 3, facts_ms(blame->longest_ns), 3);
}

static void put_sentence(const struct str *sentence, FILE *out)
{
	if (sentence->len)
		terminal_putf(out, "%s", str_get(sentence));
}

static void put_blame(const struct report_pass *pass, const struct crowds *crowds, FILE *out)
{
	static const char *const headings[] = { "waited", "for", "wait ms", "longest ms" };
	struct crowd_blames blames = crowds_blame(crowds, pass->model, CROWD_GIL);
	struct table table = { .columns = 4, .text_columns = 2 };
	struct facts_totals totals = facts_totals(pass->model);
	CLEANUP(str_done) struct str switched = { 0 }, unheld = { 0 };
	size_t n = 0;

	if (!blames.v.n || blames.v.v[0].wait_ns < FACTS_LEAST_NS) {
		vec_done(&blames.v);
		return;
	}
	table_headings(&table, headings);
	for (; n < blames.v.n && n < BLAME_ROWS; n++) {
		if (n && facts_percent(blames.v.v[n].wait_ns, totals.wait_ns) < BLAME_SHARE)
			break;
		add_blame_row(&table, pass, crowds, &blames.v.v[n]);
	}
	putc('\n', out);
	table_end(&table, blames.v.n - n, ", of less wait", out);
	vec_done(&blames.v);
	facts_add_blame_notes(&switched, &unheld, &totals);
	put_sentence(&switched, out);
	put_sentence(&unheld, out);
}

static void add_function_row(struct table *table, const struct report_pass *pass,
                             const struct function_row *f, bool late)
{
	struct row *row = table_row(table);
	CLEANUP(str_done) struct str threads = { 0 };
	uint64_t gain_ns;

	row->widths[0] = function_add_row(&row->cells[0], pass, f->hog, TABLE_NAME_COLUMNS);
	str_addf(&threads, "%u threads", f->threads);
	if (f->threads == 1)
		row_thread(row, 1, pass, f->hog->thread);
	else
		row_text(row, 1, str_get(&threads));
	row_number(row, 2, facts_ms(f->wait_ns), 1);
	row_number(row, 3, (double)f->holds, 0);
	row_number(row, 4, facts_ms(f->ns), 1);
	row_number(row, 5, facts_ms(f->longest_ns), 3);
	if (!late)
		return;
	row_number(row, 6, facts_ms(f->off_cpu_ns), 1);
	gain_ns = functions_gain(pass, f->hog);
	if (gain_ns == HOGS_NO_GAIN)
		row_text(row, 7, "?");
	else
		row_number(row, 7, facts_ms(gain_ns), 1);
}

static void put_gain(const struct report_pass *pass, const struct hog *hog, FILE *out)
{
	CLEANUP(str_done) struct str name = { 0 };
	struct function f = function_of(pass, hog);
	uint64_t gain_ns = functions_gain(pass, hog);

	if (gain_ns == HOGS_NO_GAIN)
		return;
	function_add(&name, &f, TABLE_NAME_COLUMNS);
	terminal_putf(out, "If %s let go of the GIL, it would save about %.1f ms of waiting",
	              f.name ? str_get(&name) : "what runs there", facts_ms(gain_ns));
	terminal_putf(out, "(" FUNCTIONS_GAIN ").");
}

/* Calls that kept the GIL when asked to let go; if there are none, where holds ended that others
 * waited for. */
static void put_functions(const struct report_pass *pass, FILE *out)
{
	static const char *const headings[] = { "kept the GIL", "in thread",    "others waited ms",
		                                "holds",        "held ms",      "longest ms",
		                                "off cpu ms",   "would save ms" };
	static const char *const calm[] = { "held until", "in thread", "others waited ms",
		                            "holds",      "held ms",   "longest ms" };
	struct function_rows rows = functions_rows(pass, true, NULL, 0);
	bool late = rows.v.n;
	struct table table = { .columns = late ? 8 : 6, .text_columns = 2 };
	size_t n = 0;

	if (!late)
		rows = functions_rows(pass, false, NULL, 0);
	if (!rows.v.n || rows.v.v[0].wait_ns < FACTS_LEAST_NS) {
		vec_done(&rows.v);
		return;
	}
	table_headings(&table, late ? headings : calm);
	for (; n < rows.v.n && n < FUNCTION_ROWS; n++) {
		if (rows.v.v[n].wait_ns < FACTS_LEAST_NS)
			break;
		add_function_row(&table, pass, &rows.v.v[n], late);
	}
	putc('\n', out);
	table_end(&table, rows.v.n - n, ", of less wait", out);
	if (late)
		put_gain(pass, rows.v.v[0].hog, out);
	if (function_wants_caller(pass, rows.v.v[0].hog))
		fputs("  --frames 2 shows who called the first of them\n", out);
	vec_done(&rows.v);
}

static void put_caveat(const struct facts_caveat *caveat, bool name_pass, FILE *out)
{
	CLEANUP(str_done) struct str text = { 0 };

	str_adds(&text, "note: ");
	if (name_pass && caveat->pass)
		str_addf(&text, "%s pass: ", caveat->pass);
	utf8_add_safe(&text, caveat->text, 1000);
	if (caveat->count > 1)
		str_addf(&text, " (%" PRIu64 " times)", caveat->count);
	terminal_putf(out, "%s", str_get(&text));
}

static void put_caveats(const struct report *report, FILE *out)
{
	struct facts_caveats caveats = facts_caveats(report);
	bool any = false;

	for (size_t i = 0; i < caveats.n; i++) {
		if (caveats.v[i].minor)
			continue;
		if (!any)
			putc('\n', out);
		any = true;
		put_caveat(&caveats.v[i], report->pass_count > 1, out);
	}
	vec_done(&caveats);
}

/* Returns its kind. */
static enum verdict_kind put_verdict(const struct report *report, FILE *out)
{
	enum verdict_kind kind;
	struct verdict v;

	verdict_init(&v, report);
	put_sentence(&v.headline, out);
	put_sentence(&v.because, out);
	put_sentence(&v.also, out);
	if (v.advice.len)
		terminal_putf(out, "What helps: %s", str_get(&v.advice));
	kind = v.kind;
	verdict_done(&v);
	return kind;
}

int report_text(const struct report *report, FILE *out, struct error *err)
{
	static const char *const gil[] = { "thread",          "total ms",       "no gil%",
		                           "has gil%",        "gil wait%",      "unknown%",
		                           "longest wait ms", "longest hold ms" };
	static const char *const states[] = { "thread",  "total ms", "running%",   "in line%",
		                              "asleep%", "disk%",    "GIL sleep%", "unknown%" };
	const struct report_pass *pass = report_main_pass(report);
	struct crowds crowds;

	(void)err;
	if (put_verdict(report, out) == VERDICT_NOTHING) {
		put_caveats(report, out);
		return 0;
	}
	putc('\n', out);
	crowds_init_table(&crowds, pass);
	if (report->gil_detect && !locks_of_pass(pass))
		put_threads(pass, &crowds, gil, add_thread_row, out);
	locks_text(pass, &crowds, out);
	if (report->gil_detect && report->state_detect)
		putc('\n', out);
	if (report->state_detect || !report->gil_detect)
		put_threads(pass, &crowds, states, add_states_row, out);
	starved_text(pass, out);
	put_blame(pass, &crowds, out);
	put_functions(pass, out);
	patterns_text(pass, out);
	put_caveats(report, out);
	crowds_done(&crowds);
	return 0;
}

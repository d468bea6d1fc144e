/* SPDX-License-Identifier: MIT */
/* The terminal table, who waited for whom, and what to know about the numbers. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/facts.h"
#include "report/functions.h"
#include "report/patterns.h"
#include "report/starved.h"
#include "report/report.h"
#include "report/utf8.h"
#include "report/verdict.h"

#define NAME_COLUMNS  40
#define THREAD_ROWS   40
#define BLAME_ROWS    8
#define FUNCTION_ROWS 5
#define CELLS         8

/* Rows of cells, aligned over all of them; the first text_columns are text, the others numbers. */
struct table {
	unsigned columns, text_columns;
	VEC(struct row) rows;
};

struct row {
	struct str cells[CELLS];
	unsigned widths[CELLS];
};

static struct row *table_row(struct table *table)
{
	struct row *row = vec_push(&table->rows);

	memset(row, 0, sizeof(*row));
	return row;
}

static void row_text(struct row *row, unsigned column, const char *text)
{
	row->widths[column] = utf8_add_safe(&row->cells[column], text, 2 * NAME_COLUMNS);
}

/* Thousands apart, so that a long number can be read. */
static void row_number(struct row *row, unsigned column, double value, int decimals)
{
	char plain[64];
	int len = snprintf(plain, sizeof(plain), "%.*f", decimals, value);
	int whole = decimals ? len - decimals - 1 : len;

	for (int i = 0; i < len; i++) {
		if (i && i < whole && (whole - i) % 3 == 0)
			str_addc(&row->cells[column], ',');
		str_addc(&row->cells[column], plain[i]);
	}
	row->widths[column] = (unsigned)row->cells[column].len;
}

static void put_cell(const struct row *row, unsigned column, unsigned width, bool left, FILE *out)
{
	int pad = (int)(width - row->widths[column]);

	if (left)
		fprintf(out, "%s%*s", str_get(&row->cells[column]), pad, "");
	else
		fprintf(out, "%*s%s", pad, "", str_get(&row->cells[column]));
}

static void table_put(struct table *table, FILE *out)
{
	unsigned widths[CELLS] = { 0 };

	for (size_t r = 0; r < table->rows.n; r++)
		for (unsigned c = 0; c < table->columns; c++)
			if (table->rows.v[r].widths[c] > widths[c])
				widths[c] = table->rows.v[r].widths[c];
	for (size_t r = 0; r < table->rows.n; r++) {
		for (unsigned c = 0; c < table->columns; c++) {
			fputs(c ? "   " : "  ", out);
			put_cell(&table->rows.v[r], c, widths[c], c < table->text_columns, out);
		}
		putc('\n', out);
	}
}

static void table_done(struct table *table)
{
	for (size_t r = 0; r < table->rows.n; r++)
		for (unsigned c = 0; c < table->columns; c++)
			str_done(&table->rows.v[r].cells[c]);
	vec_done(&table->rows);
}

/* "NAME 1235*": the star marks a main thread; "1234/1235*" where there are several processes. */
static void add_thread(struct row *row, unsigned column, const struct report_pass *pass, uint32_t i)
{
	const struct model_thread *t = &pass->model->threads.v[i];
	CLEANUP(str_done) struct str id = { 0 };
	struct str *cell = &row->cells[column];

	row->widths[column] = utf8_add_safe(cell, facts_thread_name(pass, i), NAME_COLUMNS);
	str_addc(&id, ' ');
	if (facts_many_processes(pass->model))
		str_addf(&id, "%" PRIu32 "/", t->pid);
	str_addf(&id, "%" PRIu32 "%s", t->tid, t->main ? "*" : "");
	str_adds(cell, str_get(&id));
	row->widths[column] += (unsigned)id.len;
}

static void add_headings(struct table *table, const char *const *headings)
{
	struct row *row = table_row(table);

	for (unsigned c = 0; c < table->columns; c++)
		row_text(row, c, headings[c]);
}

static void add_thread_row(struct table *table, const struct report_pass *pass, uint32_t i)
{
	const struct model_thread *t = &pass->model->threads.v[i];
	struct facts_shares shares = facts_shares(t);
	struct row *row = table_row(table);

	add_thread(row, 0, pass, i);
	row_number(row, 1, facts_ms(t->end_ns - t->start_ns), 1);
	row_number(row, 2, shares.no_gil, 1);
	row_number(row, 3, shares.hold, 1);
	row_number(row, 4, shares.wait, 1);
	row_number(row, 5, shares.unknown, 1);
	row_number(row, 6, facts_ms(t->longest_wait_ns), 3);
	row_number(row, 7, facts_ms(t->longest_hold_ns), 3);
}

static void put_threads(const struct report_pass *pass, FILE *out)
{
	static const char *const headings[] = { "thread",          "total ms",       "no gil%",
		                                "has gil%",        "gil wait%",      "unknown%",
		                                "longest wait ms", "longest hold ms" };
	CLEANUP(free) uint32_t *order = facts_thread_order(pass->model);
	struct table table = { .columns = 8, .text_columns = 1 };
	size_t n = pass->model->threads.n;

	add_headings(&table, headings);
	for (size_t i = 0; i < n && i < THREAD_ROWS; i++)
		add_thread_row(&table, pass, order[i]);
	table_put(&table, out);
	table_done(&table);
	if (n > THREAD_ROWS)
		fprintf(out, "  … and %zu threads that waited less; all are in the report\n",
		        n - THREAD_ROWS);
}

/* The order of the columns, in text and page. */
static const enum cpu_state state_columns[] = {
	CPU_RUNNING, CPU_RUNNABLE, CPU_SLEEPING, CPU_UNINTERRUPTIBLE, CPU_GIL_SLEEP, CPU_UNKNOWN,
};

/* What the threads did on the CPUs, where that was asked for. */
static void put_states(const struct report_pass *pass, FILE *out)
{
	static const char *const headings[] = { "thread",  "total ms", "running%",   "in line%",
		                                "asleep%", "disk%",    "GIL sleep%", "unknown%" };
	CLEANUP(free) uint32_t *order = facts_thread_order(pass->model);
	struct table table = { .columns = 8, .text_columns = 1 };

	add_headings(&table, headings);
	for (size_t i = 0; i < pass->model->threads.n && i < THREAD_ROWS; i++) {
		const struct model_thread *t = &pass->model->threads.v[order[i]];
		struct facts_states states = facts_states(t);
		struct row *row = table_row(&table);

		add_thread(row, 0, pass, order[i]);
		row_number(row, 1, facts_ms(t->end_ns - t->start_ns), 1);
		for (unsigned c = 0; c < 6; c++)
			row_number(row, c + 2, states.percent[state_columns[c]], 1);
	}
	table_put(&table, out);
	table_done(&table);
}

static void add_blame_row(struct table *table, const struct report_pass *pass,
                          const struct model_blame *blame)
{
	struct row *row = table_row(table);

	add_thread(row, 0, pass, blame->waiter);
	if (blame->holder == MODEL_NONE)
		row_text(row, 1, "nobody (handover)");
	else if (blame->holder == MODEL_UNKNOWN)
		row_text(row, 1, "unknown (records are missing)");
	else
		add_thread(row, 1, pass, blame->holder);
	row_number(row, 2, facts_ms(blame->wait_ns), 1);
	row_number(row, 3, facts_ms(blame->longest_ns), 3);
}

static void put_blame(const struct report_pass *pass, FILE *out)
{
	static const char *const headings[] = { "waited", "for", "wait ms", "longest ms" };
	CLEANUP(free) uint32_t *order = facts_blame_order(pass->model);
	struct table table = { .columns = 4, .text_columns = 2 };
	size_t n = pass->model->blame.n;

	if (!n)
		return;
	add_headings(&table, headings);
	for (size_t i = 0; i < n && i < BLAME_ROWS; i++)
		add_blame_row(&table, pass, &pass->model->blame.v[order[i]]);
	putc('\n', out);
	table_put(&table, out);
	table_done(&table);
	if (n > BLAME_ROWS)
		fprintf(out, "  … and %zu more, of less wait\n", n - BLAME_ROWS);
}

static void add_function_row(struct table *table, const struct report_pass *pass,
                             const struct hog *hog, bool late)
{
	struct row *row = table_row(table);

	row->widths[0] = function_add_row(&row->cells[0], pass, hog, NAME_COLUMNS);
	add_thread(row, 1, pass, hog->thread);
	row_number(row, 2, facts_ms(late ? hog->late_wait_ns : hog->wait_ns), 1);
	row_number(row, 3, (double)(late ? hog->late_holds : hog->holds), 0);
	row_number(row, 4, facts_ms(late ? hog->late_ns : hog->hold_ns), 1);
	row_number(row, 5, facts_ms(late ? hog->late_longest_ns : hog->longest_ns), 3);
	if (!late)
		return;
	row_number(row, 6, facts_ms(hog->off_cpu_ns), 1);
	if (hog->gain_ns == HOGS_NO_GAIN)
		row_text(row, 7, "?");
	else
		row_number(row, 7, facts_ms(hog->gain_ns), 1);
}

static void put_gain(const struct report_pass *pass, const struct hog *hog, FILE *out)
{
	CLEANUP(str_done) struct str name = { 0 };
	struct function f = function_of(pass, hog);
	uint64_t gain_ns = functions_gain(pass, hog);

	if (gain_ns == HOGS_NO_GAIN)
		return;
	function_add(&name, &f, NAME_COLUMNS);
	fprintf(out,
	        "  If %s let go of the GIL, it would save about %.1f ms of waiting\n  "
	        "(" FUNCTIONS_GAIN ").\n",
	        f.name ? str_get(&name) : "what runs there", facts_ms(gain_ns));
}

/* Calls that kept the GIL when asked to let go; if there are none, where holds ended that others
 * waited for. */
static void put_functions(const struct report_pass *pass, FILE *out)
{
	static const char *const late_headings[] = { "kept the GIL",     "in thread",
		                                     "others waited ms", "holds",
		                                     "held ms",          "longest ms",
		                                     "off cpu ms",       "would save ms" };
	static const char *const headings[] = { "held until", "in thread", "others waited ms",
		                                "holds",      "held ms",   "longest ms" };
	const struct hogs *hogs = pass->hogs;
	bool late = hogs && hogs->v.n && hogs->v.v[0].late_holds;
	struct table table = { .columns = late ? 8 : 6, .text_columns = 2 };
	size_t n = 0;

	for (size_t i = 0; hogs && i < hogs->v.n; i++) {
		const struct hog *hog = &hogs->v.v[i];

		if (late ? !hog->late_holds : !hog->frame || !hog->wait_ns)
			continue;
		if (!n)
			add_headings(&table, late ? late_headings : headings);
		if (n++ < FUNCTION_ROWS)
			add_function_row(&table, pass, hog, late);
	}
	if (n)
		putc('\n', out);
	table_put(&table, out);
	table_done(&table);
	if (n > FUNCTION_ROWS)
		fprintf(out, "  … and %zu more, of less wait\n", n - FUNCTION_ROWS);
	if (n && late)
		put_gain(pass, &hogs->v.v[0], out);
	if (n && function_wants_caller(pass, &hogs->v.v[0]))
		fputs("  --frames 2 shows who called the first of them\n", out);
}

static void put_caveat(const struct facts_caveat *caveat, bool name_pass, FILE *out)
{
	CLEANUP(str_done) struct str text = { 0 };

	utf8_add_safe(&text, caveat->text, 1000);
	fputs("  note: ", out);
	if (name_pass && caveat->pass)
		fprintf(out, "%s pass: ", caveat->pass);
	fputs(str_get(&text), out);
	if (caveat->count > 1)
		fprintf(out, " (%" PRIu64 " times)", caveat->count);
	putc('\n', out);
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

static void put_verdict(const struct report *report, FILE *out)
{
	struct verdict v;

	verdict_init(&v, report);
	fprintf(out, "  %s\n", str_get(&v.headline));
	if (v.because.len)
		fprintf(out, "  %s\n", str_get(&v.because));
	putc('\n', out);
	verdict_done(&v);
}

int report_text(const struct report *report, FILE *out, struct error *err)
{
	const struct report_pass *pass = report_main_pass(report);

	(void)err;
	put_verdict(report, out);
	if (report->gil_detect)
		put_threads(pass, out);
	if (report->gil_detect && report->state_detect)
		putc('\n', out);
	if (report->state_detect || !report->gil_detect)
		put_states(pass, out);
	starved_text(pass, out);
	put_blame(pass, out);
	put_functions(pass, out);
	patterns_text(pass, out);
	put_caveats(report, out);
	return 0;
}

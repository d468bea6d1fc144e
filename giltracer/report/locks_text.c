/* SPDX-License-Identifier: MIT */
/* What blocks the threads of a free-threaded interpreter, as tables on a terminal. */
#include "report/crowd_blame.h"
#include "report/facts.h"
#include "report/functions.h"
#include "report/locks.h"
#include "report/texttable.h"

#define THREAD_ROWS 24
#define ROWS        8

static void put_threads(const struct report_pass *pass, const struct crowds *crowds, FILE *out)
{
	static const char *const headings[] = { "thread",         "total ms",
		                                "free%",          "lock wait%",
		                                "stopped%",       "stops%",
		                                "unknown%",       "longest lock wait ms",
		                                "longest stop ms" };
	struct table table = { .columns = 9, .text_columns = 1 };
	size_t n = 0;

	table_headings(&table, headings);
	for (; n < crowds->v.n && n < THREAD_ROWS; n++) {
		const struct model_thread *t = &crowds->v.v[n].sum;
		struct locks_shares shares = locks_shares(t);
		struct row *row = table_row(&table);

		row_crowd(row, 0, pass, &crowds->v.v[n]);
		row_number(row, 1, facts_ms(t->end_ns - t->start_ns), 1);
		row_number(row, 2, shares.free, 1);
		row_number(row, 3, shares.lock_wait, 1);
		row_number(row, 4, shares.stopped, 1);
		row_number(row, 5, shares.stops, 1);
		row_number(row, 6, shares.unknown, 1);
		row_number(row, 7, facts_ms(t->longest_lock_wait_ns), 3);
		row_number(row, 8, facts_ms(t->longest_stop_ns), 3);
	}
	table_end(&table, crowds->v.n - n, " that waited less; all are in the report", out);
}

static void put_blame(const struct report_pass *pass, const struct crowds *crowds, FILE *out)
{
	static const char *const headings[] = { "blocked", "until let go by", "what", "wait ms",
		                                "longest ms" };
	struct crowd_blames blames = crowds_blame(crowds, pass->model, CROWD_LOCK);
	struct table table = { .columns = 5, .text_columns = 3 };
	size_t n = 0;

	if (!blames.v.n)
		return;
	table_headings(&table, headings);
	for (; n < blames.v.n && n < ROWS; n++) {
		const struct crowd_blame *b = &blames.v.v[n];
		struct row *row = table_row(&table);

		row_crowd(row, 0, pass, &crowds->v.v[b->waiter]);
		if (b->holder >= MODEL_UNKNOWN)
			row_text(row, 1, crowd_blame_nobody(b));
		else
			row_crowd(row, 1, pass, &crowds->v.v[b->holder]);
		row_text(row, 2, b->kind == CROWD_STOPPED ? "stopped" : "lock");
		row_number(row, 3, facts_ms(b->wait_ns), 1);
		row_number(row, 4, facts_ms(b->longest_ns), 3);
	}
	putc('\n', out);
	table_end(&table, blames.v.n - n, ", of less wait", out);
	vec_done(&blames.v);
}

static void put_places(const struct report_pass *pass, FILE *out)
{
	static const char *const headings[] = {
		"in", "what", "lock of", "times", "ms", "longest ms"
	};
	struct locks_places places = locks_places(pass, MODEL_NONE);
	struct table table = { .columns = 6, .text_columns = 3 };
	size_t n = 0;

	for (; n < places.v.n && n < ROWS; n++) {
		const struct locks_place *place = &places.v.v[n];
		struct function f = function_at(pass, place->frame);
		struct row *row;

		if (!n)
			table_headings(&table, headings);
		row = table_row(&table);
		row->widths[0] = function_add(&row->cells[0], &f, TABLE_NAME_COLUMNS);
		row_text(row, 1, locks_state_name(place->state));
		row_text(row, 2, place->of ? *place->of ? place->of : "?" : "");
		row_number(row, 3, (double)place->count, 0);
		row_number(row, 4, facts_ms(place->ns), 1);
		row_number(row, 5, facts_ms(place->longest_ns), 3);
	}
	if (places.v.n)
		putc('\n', out);
	table_end(&table, places.v.n - n, ", of less time", out);
	vec_done(&places.v);
}

void locks_text(const struct report_pass *pass, const struct crowds *crowds, FILE *out)
{
	if (locks_of_pass(pass))
		put_threads(pass, crowds, out);
	put_blame(pass, crowds, out);
	put_places(pass, out);
}

/* SPDX-License-Identifier: MIT */
/* Writes a comparison for a terminal, and as JSON. */
#include "report/diff_write.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/facts.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "report/phrases.h"
#include "report/terminal.h"
#include "base/utf8.h"

#define NAME_COLUMNS 40
#define ROWS         20

static void cell_text(struct row *row, unsigned column, const char *text)
{
	row->cells[column].width = utf8_add_safe(&row->cells[column].text, text, 2 * NAME_COLUMNS);
}

/* "12.3", with the range of several recordings "12.3 (11.0-14.2)". */
static void cell_share(struct row *row, unsigned column, double value, double low, double high,
                       bool range)
{
	CLEANUP(str_done) struct str text = { 0 };

	str_addf(&text, "%.1f", value);
	if (range)
		str_addf(&text, " (%.1f-%.1f)", low, high);
	cell_text(row, column, str_get(&text));
}

static void cell_change(struct row *row, unsigned column, double change, int decimals)
{
	CLEANUP(str_done) struct str text = { 0 };

	str_addf(&text, "%+.*f", decimals, change);
	cell_text(row, column, str_get(&text));
}

static struct row *add_row(struct table *table)
{
	struct row *row = vec_push(&table->rows);

	memset(row, 0, sizeof(*row));
	return row;
}

static void add_fact(struct table *table, const struct diff *diff, enum fact fact)
{
	const struct fact_kind *kind = &fact_kinds[fact];
	double a = diff->a->percent[fact], b = diff->b->percent[fact];
	bool percent = kind->units & UNIT_PERCENT, time = kind->units & UNIT_TIME;
	int decimals = percent ? 1 : time ? 3 : 0;
	struct row *row = add_row(table);
	CLEANUP(str_done) struct str name = { 0 };

	str_addf(&name, "%s%s", kind->name, percent ? " %" : time ? " ms" : "");
	cell_text(row, 0, str_get(&name));
	if (percent) {
		cell_share(row, 1, a, diff->a->low[fact], diff->a->high[fact],
		           diff->a->recordings > 1);
		cell_share(row, 2, b, diff->b->low[fact], diff->b->high[fact],
		           diff->b->recordings > 1);
	} else {
		a = (double)diff->a->value[fact] / (time ? 1e6 : 1);
		b = (double)diff->b->value[fact] / (time ? 1e6 : 1);
		row->cells[1] = (struct cell){ .number = true, .value = a, .decimals = decimals };
		row->cells[2] = (struct cell){ .number = true, .value = b, .decimals = decimals };
	}
	cell_change(row, 3, b - a, decimals);
}

/* Facts that few recordings have. */
static bool is_of_locks(enum fact fact)
{
	return fact == FACT_LOCK_WAIT || fact == FACT_STOPPED;
}

void diff_add_headline(struct str *out, const struct diff *diff)
{
	static void (*const says[2][3])(struct str *, double, double) = {
		{ say_gil_wait_same, say_gil_wait_fell, say_gil_wait_rose },
		{ say_lock_wait_same, say_lock_wait_fell, say_lock_wait_rose },
	};
	const struct diff_row *row = diff->most_changed;
	CLEANUP(str_done) struct str name = { 0 };

	says[diff->fact == FACT_LOCK_WAIT][diff->verdict](out, diff->a->percent[diff->fact],
	                                                  diff->b->percent[diff->fact]);
	if (!row)
		return;
	str_adds(&name, row->name);
	if (*row->file)
		str_addf(&name, " (%s:%" PRIu32 ")", row->file, row->line);
	say_changed_most(out, str_get(&name), row->a.wait, row->b.wait);
}

static void table_facts(struct table *ret, const struct diff *diff)
{
	struct row *row = add_row(ret);

	ret->headings[0] = PHRASE_d_fact;
	ret->headings[1] = PHRASE_d_a;
	ret->headings[2] = PHRASE_d_b;
	cell_text(row, 0, phrase(PHRASE_d_recorded));
	for (unsigned i = 0; i < 2; i++)
		row->cells[1 + i] = (struct cell){
			.number = true,
			.value = facts_ms((i ? diff->b : diff->a)->recording_ns),
			.decimals = 1,
		};
	for (unsigned fact = 0; fact < FACTS; fact++)
		if ((!is_of_locks(fact) || diff->a->value[fact] || diff->b->value[fact]) &&
		    (fact != FACT_LOCK_WAIT || !(diff->a->locks_unknown || diff->b->locks_unknown)))
			add_fact(ret, diff, fact);
}

/* "python3 ×3" for a row of three threads; "×3/2" if the two recordings differ. */
static void cell_name(struct row *row, const struct diff_row *of)
{
	CLEANUP(str_done) struct str name = { 0 };

	utf8_add_safe(&name, of->name, NAME_COLUMNS);
	if (of->a.count > 1 || of->b.count > 1)
		str_addf(&name, " ×%" PRIu64, of->a.count);
	if (of->a.count != of->b.count && (of->a.count > 1 || of->b.count > 1))
		str_addf(&name, "/%" PRIu64, of->b.count);
	if (*of->file) {
		str_addf(&name, " (%s", of->file);
		if (of->line)
			str_addf(&name, ":%u", of->line);
		str_addc(&name, ')');
	}
	cell_text(row, 0, str_get(&name));
}

static void say_threads_left(struct str *out, uint64_t n, uint64_t ns)
{
	(void)ns;
	(n == 1 ? say_d_thread_left : say_d_threads_left)(out, n);
}

static void say_functions_left(struct str *out, uint64_t n, uint64_t ns)
{
	(void)ns;
	(n == 1 ? say_d_function_left : say_d_functions_left)(out, n);
}

static void table_rows(struct table *ret, const struct diff *diff, const struct diff_rows *rows,
                       bool all)
{
	for (size_t i = 0; i < rows->v.n; i++) {
		const struct diff_row *from = &rows->v.v[i];
		struct row *row;

		if (!all && (from->noise || ret->rows.n == ROWS)) {
			ret->left++;
			continue;
		}
		row = add_row(ret);
		cell_name(row, from);
		cell_share(row, 1, from->a.wait, from->a.low, from->a.high,
		           diff->a->recordings > 1);
		cell_share(row, 2, from->b.wait, from->b.low, from->b.high,
		           diff->b->recordings > 1);
		cell_change(row, 3, from->change, 1);
	}
}

void diff_table(struct table *ret, const struct diff *diff, enum diff_table which, bool all)
{
	static const struct table empty[DIFF_TABLES] = {
		[DIFF_FACTS] = { .caption = PHRASE_c_diff_facts },
		[DIFF_THREADS] = { .caption = PHRASE_c_diff_threads,
		                   .headings = { PHRASE_d_thread, PHRASE_d_a_waited,
		                                 PHRASE_d_b_waited },
		                   .say_left = say_threads_left },
		[DIFF_FUNCTIONS] = { .caption = PHRASE_c_diff_functions,
		                     .headings = { PHRASE_d_function, PHRASE_d_a_caused,
		                                   PHRASE_d_b_caused },
		                     .say_left = say_functions_left },
	};

	*ret = empty[which];
	ret->columns = 4;
	ret->text_columns = 1;
	ret->headings[3] = PHRASE_d_change;
	if (which == DIFF_FACTS)
		table_facts(ret, diff);
	else
		table_rows(ret, diff, which == DIFF_THREADS ? &diff->threads : &diff->functions,
		           all);
}

void diff_add_caveat(struct str *out, const struct diff *diff)
{
	if (diff->other_program)
		say_d_programs(out, diff->a->program, diff->b->program);
	if (diff_has_ranges(diff)) {
		str_adds(out, out->len ? " " : "");
		say_d_means(out, diff->a->recordings, diff->b->recordings);
	}
}

void diff_text(const struct diff *diff, bool all, FILE *out)
{
	CLEANUP(str_done)
	struct str text = { 0 }, safe = { 0 }, caveat = { 0 }, safe_caveat = { 0 };

	diff_add_headline(&text, diff);
	utf8_add_safe(&safe, str_get(&text), 1000);
	terminal_putf(out, "%s", str_get(&safe));
	diff_add_caveat(&caveat, diff);
	utf8_add_safe(&safe_caveat, str_get(&caveat), 1000);
	if (caveat.len)
		terminal_putf(out, "%s", str_get(&safe_caveat));
	for (enum diff_table i = 0; i < DIFF_TABLES; i++) {
		CLEANUP(str_done) struct str left = { 0 };
		struct table table;

		diff_table(&table, diff, i, all);
		if (table.rows.n || table.left)
			putc('\n', out);
		terminal_table(&table, out);
		if (!table.rows.n && table.left) {
			table.say_left(&left, table.left, 0);
			terminal_putf(out, "%s", str_get(&left));
		}
		table_done(&table);
	}
}

static void json_fact_side(struct jsonw *w, const char *key, const struct summary *s,
                           enum fact fact)
{
	if (fact == FACT_LOCK_WAIT && s->locks_unknown) {
		jsonw_null(w, key);
		return;
	}
	jsonw_object(w, key);
	if (fact_kinds[fact].units & UNIT_PERCENT) {
		jsonw_real(w, "percent", s->percent[fact], 3);
		jsonw_real(w, "low_percent", s->low[fact], 3);
		jsonw_real(w, "high_percent", s->high[fact], 3);
	}
	jsonw_u64(w, fact_kinds[fact].units & UNIT_TIME ? "ns" : "count", s->value[fact]);
	jsonw_end(w);
}

static void json_facts(struct jsonw *w, const struct diff *diff)
{
	jsonw_object(w, "facts");
	for (unsigned fact = 0; fact < FACTS; fact++) {
		jsonw_object(w, fact_kinds[fact].name);
		json_fact_side(w, "a", diff->a, fact);
		json_fact_side(w, "b", diff->b, fact);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void json_side(struct jsonw *w, const char *key, const struct diff_side *side, bool function)
{
	jsonw_object(w, key);
	if (!function)
		jsonw_u64(w, "threads", side->count);
	jsonw_u64(w, function ? "wait_caused_ns" : "wait_ns", side->wait_ns);
	jsonw_u64(w, "hold_ns", side->hold_ns);
	if (function)
		jsonw_u64(w, "hog_wait_caused_ns", side->overdue_wait_ns);
	jsonw_real(w, "wait_percent", side->wait, 3);
	jsonw_real(w, "low_percent", side->low, 3);
	jsonw_real(w, "high_percent", side->high, 3);
	jsonw_real(w, "hold_percent", side->hold, 3);
	jsonw_end(w);
}

static void json_rows(struct jsonw *w, const char *key, const struct diff_rows *rows, bool function)
{
	jsonw_array(w, key);
	for (size_t i = 0; i < rows->v.n; i++) {
		const struct diff_row *row = &rows->v.v[i];

		jsonw_object(w, NULL);
		jsonw_string(w, "name", row->name);
		if (function)
			jsonw_string(w, "file", *row->file ? row->file : NULL);
		jsonw_real(w, "change_points", row->change, 3);
		jsonw_bool(w, "noise", row->noise);
		json_side(w, "a", &row->a, function);
		json_side(w, "b", &row->b, function);
		jsonw_end(w);
	}
	jsonw_end(w);
}

void diff_json(const struct diff *diff, const char *version, FILE *out)
{
	static const char *const verdicts[] = { "same", "fell", "rose" };
	CLEANUP(str_done) struct str text = { 0 }, caveat = { 0 };
	struct jsonw w;

	jsonw_init(&w, out, 2);
	jsonw_object(&w, NULL);
	jsonw_u64(&w, "diff", 1);
	jsonw_string(&w, "giltracer", version);
	jsonw_string(&w, "verdict", verdicts[diff->verdict]);
	diff_add_headline(&text, diff);
	jsonw_string(&w, "text", str_get(&text));
	diff_add_caveat(&caveat, diff);
	jsonw_string(&w, "caveat", caveat.len ? str_get(&caveat) : NULL);
	jsonw_object(&w, "recordings");
	jsonw_u64(&w, "a", diff->a->recordings);
	jsonw_u64(&w, "b", diff->b->recordings);
	jsonw_end(&w);
	jsonw_object(&w, "recording_ns");
	jsonw_u64(&w, "a", diff->a->recording_ns);
	jsonw_u64(&w, "b", diff->b->recording_ns);
	jsonw_end(&w);
	json_facts(&w, diff);
	json_rows(&w, "threads", &diff->threads, false);
	json_rows(&w, "functions", &diff->functions, true);
	jsonw_end(&w);
	jsonw_finish(&w);
}

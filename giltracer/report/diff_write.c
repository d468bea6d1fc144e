/* SPDX-License-Identifier: MIT */
/* Writes a comparison for a terminal, and as JSON. */
#include "report/diff_write.h"

#include <inttypes.h>

#include "analysis/facts.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "report/phrases.h"
#include "report/terminal.h"
#include "base/utf8.h"

#define NAME_COLUMNS 40
#define ROWS         20

static void put_name(const char *name, const char *file, uint32_t line, FILE *out)
{
	CLEANUP(str_done) struct str safe = { 0 }, place = { 0 };
	unsigned used = utf8_add_safe(&safe, name, NAME_COLUMNS);

	if (*file) {
		str_addf(&place, " (%s", file);
		if (line)
			str_addf(&place, ":%u", line);
		str_addc(&place, ')');
		used += utf8_add_safe(&safe, str_get(&place), NAME_COLUMNS);
	}
	fprintf(out, "  %s%*s", str_get(&safe),
	        used < NAME_COLUMNS ? (int)(NAME_COLUMNS - used) : 0, "");
}

static void put_fact(const struct diff *diff, enum fact fact, FILE *out)
{
	const struct fact_kind *kind = &fact_kinds[fact];
	double a = diff->a->percent[fact], b = diff->b->percent[fact];
	int decimals = 1;
	CLEANUP(str_done) struct str name = { 0 };

	if (!(kind->units & UNIT_PERCENT)) {
		bool time = kind->units & UNIT_TIME;

		decimals = time ? 3 : 0;
		a = (double)diff->a->value[fact] / (time ? 1e6 : 1);
		b = (double)diff->b->value[fact] / (time ? 1e6 : 1);
	}
	str_addf(&name, "%s%s", kind->name,
	         kind->units & UNIT_PERCENT ? " %"
	         : kind->units & UNIT_TIME  ? " ms"
	                                    : "");
	put_name(str_get(&name), "", 0, out);
	fprintf(out, " %12.*f %12.*f %+12.*f\n", decimals, a, decimals, b, decimals, b - a);
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

static void put_facts(const struct diff *diff, FILE *out)
{
	put_name("", "", 0, out);
	fprintf(out, " %12s %12s %12s\n", phrase(PHRASE_d_a), phrase(PHRASE_d_b),
	        phrase(PHRASE_d_change));
	put_name(phrase(PHRASE_d_recorded), "", 0, out);
	fprintf(out, " %12.1f %12.1f\n", facts_ms(diff->a->recording_ns),
	        facts_ms(diff->b->recording_ns));
	for (unsigned fact = 0; fact < FACTS; fact++)
		if ((!is_of_locks(fact) || diff->a->value[fact] || diff->b->value[fact]) &&
		    (fact != FACT_LOCK_WAIT || !(diff->a->locks_unknown || diff->b->locks_unknown)))
			put_fact(diff, fact, out);
}

/* "python3 ×3" for a row of three threads; "×3/2" if the two recordings differ. */
static void put_row_name(const struct diff_row *row, FILE *out)
{
	CLEANUP(str_done) struct str name = { 0 };

	str_adds(&name, row->name);
	if (row->a.count > 1 || row->b.count > 1)
		str_addf(&name, " ×%" PRIu64, row->a.count);
	if (row->a.count != row->b.count && (row->a.count > 1 || row->b.count > 1))
		str_addf(&name, "/%" PRIu64, row->b.count);
	put_name(str_get(&name), row->file, row->line, out);
}

/* The headings of a table of rows, and the sentence about omitted rows. */
struct rows_style {
	enum phrase what, a, b;
	void (*say_one)(struct str *, uint64_t);
	void (*say_several)(struct str *, uint64_t);
};

static void put_left(const struct rows_style *style, size_t shown, size_t left, FILE *out)
{
	CLEANUP(str_done) struct str text = { 0 }, more = { 0 };

	(left == 1 ? style->say_one : style->say_several)(&text, left);
	if (shown)
		say_d_and(&more, str_get(&text));
	fprintf(out, "%s  %s\n", shown ? "" : "\n", str_get(shown ? &more : &text));
}

static void put_rows(const struct diff_rows *rows, bool all, const struct rows_style *style,
                     FILE *out)
{
	size_t shown = 0, left = 0;

	for (size_t i = 0; i < rows->v.n; i++) {
		const struct diff_row *row = &rows->v.v[i];

		if (!all && (row->noise || shown == ROWS)) {
			left++;
			continue;
		}
		if (!shown++) {
			fputc('\n', out);
			put_name(phrase(style->what), "", 0, out);
			fprintf(out, " %12s %12s %12s\n", phrase(style->a), phrase(style->b),
			        phrase(PHRASE_d_change));
		}
		put_row_name(row, out);
		fprintf(out, " %12.1f %12.1f %+12.1f\n", row->a.wait, row->b.wait, row->change);
	}
	if (left)
		put_left(style, shown, left, out);
}

/* Adds nothing if there is no caveat. */
static void add_caveat(struct str *out, const struct diff *diff)
{
	if (diff->other_program)
		say_d_programs(out, diff->a->program, diff->b->program);
}

void diff_text(const struct diff *diff, bool all, FILE *out)
{
	static const struct rows_style threads = { PHRASE_d_thread, PHRASE_d_a_waited,
		                                   PHRASE_d_b_waited, say_d_thread_left,
		                                   say_d_threads_left };
	static const struct rows_style functions = { PHRASE_d_function, PHRASE_d_a_caused,
		                                     PHRASE_d_b_caused, say_d_function_left,
		                                     say_d_functions_left };
	CLEANUP(str_done)
	struct str text = { 0 }, safe = { 0 }, caveat = { 0 }, safe_caveat = { 0 };

	diff_add_headline(&text, diff);
	utf8_add_safe(&safe, str_get(&text), 1000);
	terminal_putf(out, "%s", str_get(&safe));
	add_caveat(&caveat, diff);
	utf8_add_safe(&safe_caveat, str_get(&caveat), 1000);
	if (caveat.len)
		terminal_putf(out, "%s", str_get(&safe_caveat));
	putc('\n', out);
	put_facts(diff, out);
	put_rows(&diff->threads, all, &threads, out);
	put_rows(&diff->functions, all, &functions, out);
}

static void json_fact_side(struct jsonw *w, const char *key, const struct summary *s,
                           enum fact fact)
{
	jsonw_object(w, key);
	if (fact_kinds[fact].units & UNIT_PERCENT)
		jsonw_real(w, "percent", s->percent[fact], 3);
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
	add_caveat(&caveat, diff);
	jsonw_string(&w, "caveat", caveat.len ? str_get(&caveat) : NULL);
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

/* SPDX-License-Identifier: MIT */
/* Functions that held the GIL while others waited, and functions that were blocked. */
#include "base/cleanup.h"
#include "report/tables/cells.h"
#include "report/words.h"

#define LEAST_PERCENT 0.05 /* less would be printed as 0.0 % */
#define NEARLY_ALL \
	95 /* percent of the waiting: with so much by overdue holds, others add nothing */

static void add_function(struct table *table, const struct analysis *a,
                         const struct function_row *f, bool overdue, unsigned name_columns)
{
	struct row *row = table_add_row(table);
	struct cell *name = &row->cells[0];
	uint64_t gain_ns = 0;

	name->width = wording_add_function_row(&name->text, a->pass, f->hog, name_columns);
	if (f->threads == 1) {
		cell_thread(row, 1, a, f->hog->thread, name_columns);
	} else {
		say_n_threads(&row->cells[1].text, f->threads);
		row->cells[1].width = (unsigned)row->cells[1].text.len;
	}
	cell_ms(row, 2, f->wait_ns, 1);
	cell_number(row, 3, (double)f->holds, 0);
	cell_ms(row, 4, f->ns, 1);
	cell_ms(row, 5, f->longest_ns, 3);
	cell_ms(row, 6, f->off_cpu_ns, 1);
	if (!overdue)
		return;
	if (functions_gain(a->pass, f->hog, &gain_ns) != GAIN_KNOWN)
		cell_text(row, 7, "?");
	else
		cell_ms(row, 7, gain_ns, 1);
}

/* The time that releasing the GIL in the first function would save. */
static void add_gain(struct table *table, const struct analysis *a, const struct hog *hog,
                     unsigned name_columns)
{
	CLEANUP(str_done) struct str name = { 0 };
	struct function f = function_of(a->pass, hog);
	uint64_t gain_ns = 0;
	struct str note = { 0 };

	if (functions_gain(a->pass, hog, &gain_ns) != GAIN_KNOWN)
		return;
	if (f.name)
		wording_add_function(&name, &f, name_columns);
	else
		say_what_runs_there(&name);
	say_would_save(&note, str_get(&name), gain_ns);
	table_add_note(table, &note);
}

static void say_no_gain(struct str *out, const struct hogs *hogs, enum no_gain why)
{
	switch (why) {
	case GAIN_KNOWN:
		return;
	case NO_GAIN_UNKNOWN:
		say_no_gain_unknown(out);
		return;
	case NO_GAIN_LITTLE:
		say_no_gain_little(out);
		return;
	case NO_GAIN_DIFFERENT:
		say_no_gain_different(out, hogs->replayed_ns, hogs->waited_ns);
		return;
	case NO_GAIN_TOO_LONG:
		say_no_gain_too_long(out);
		return;
	case NO_GAIN_SLOW_START:
		say_no_gain_slow_start(out);
		return;
	case NO_GAIN_NOT_A_CALL:
		say_no_gain_not_a_call(out);
		return;
	}
}

/* The reasons why there are rows without a gain. */
static void add_no_gains(struct table *table, const struct analysis *a)
{
	unsigned said = 1 << GAIN_KNOWN;

	for (size_t i = 0; i < table->rows.n; i++) {
		struct str note = { 0 };
		uint64_t ns;
		enum no_gain why = functions_gain(a->pass, a->overdue.v.v[i].hog, &ns);

		if (said & 1u << why)
			continue;
		said |= 1u << why;
		say_no_gain(&note, a->pass->hogs, why);
		table_add_note(table, &note);
	}
}

static void add_functions(struct table *table, const struct analysis *a,
                          const struct function_rows *rows, bool overdue,
                          const struct table_limits *limits)
{
	table->text_columns = 2;
	table->say_left = say_left_made_wait;
	TABLE_HEADINGS(table, overdue ? PHRASE_h_kept_the_gil : PHRASE_h_held_until,
	               PHRASE_h_in_thread, PHRASE_h_others_waited, PHRASE_h_holds, PHRASE_h_held_ms,
	               PHRASE_h_longest_ms, PHRASE_h_off_cpu, PHRASE_h_would_save);
	table->columns = overdue ? 8 : 7;
	for (size_t i = 0; i < rows->v.n; i++) {
		const struct function_row *f = &rows->v.v[i];

		if (i < limits->functions && (limits->all || f->wait_ns >= FACTS_LEAST_NS)) {
			add_function(table, a, f, overdue, limits->name_columns);
			continue;
		}
		table->left++;
		table->left_ns += f->wait_ns;
	}
}

static void add_frames_advice(struct table *table, const struct analysis *a,
                              const struct function_rows *rows)
{
	struct str note = { 0 };

	if (table->rows.n && function_wants_caller(a->pass, rows->v.v[0].hog))
		say_frames_advice(&note);
	table_add_note(table, &note);
}

void table_overdue(struct table *ret, const struct analysis *a, const struct table_limits *limits)
{
	*ret = (struct table){ .caption = PHRASE_c_overdue };
	add_functions(ret, a, &a->overdue, true, limits);
	if (ret->rows.n)
		add_gain(ret, a, a->overdue.v.v[0].hog, limits->name_columns);
	add_no_gains(ret, a);
	add_frames_advice(ret, a, &a->overdue);
}

void table_holders(struct table *ret, const struct analysis *a, const struct table_limits *limits)
{
	*ret = (struct table){ .caption = PHRASE_c_held_until };
	if (facts_percent(a->overdue.wait_ns, a->holders.wait_ns) >= NEARLY_ALL)
		return;
	add_functions(ret, a, &a->holders, false, limits);
	add_frames_advice(ret, a, &a->holders);
}

static enum phrase state_phrase(unsigned state)
{
	return state == GIL_LOCK_WAIT ? PHRASE_state_lock
	       : state == GIL_STOPPED ? PHRASE_state_stopped
	                              : PHRASE_state_stops;
}

void table_places(struct table *ret, const struct analysis *a, const struct table_limits *limits)
{
	*ret = (struct table){ .caption = PHRASE_c_places,
		               .text_columns = 3,
		               .say_left = say_left_waited };
	TABLE_HEADINGS(ret, PHRASE_h_function, PHRASE_h_what, PHRASE_h_lock_of, PHRASE_h_times,
	               PHRASE_h_ms, PHRASE_h_longest_ms);
	for (size_t i = 0; i < a->places.v.n; i++) {
		const struct locks_place *place = &a->places.v.v[i];
		struct function f = function_at(a->pass, place->frame);
		struct row *row;

		if (i >= limits->waits) {
			ret->left++;
			ret->left_ns += place->ns;
			continue;
		}
		row = table_add_row(ret);
		row->cells[0].width = wording_add_function(&row->cells[0].text, &f,
		                                           limits->name_columns);
		cell_text(row, 1, phrase(state_phrase(place->state)));
		cell_text(row, 2, place->of ? *place->of ? place->of : "?" : "");
		cell_number(row, 3, (double)place->count, 0);
		cell_ms(row, 4, place->ns, 1);
		cell_ms(row, 5, place->longest_ns, 3);
	}
}

/* Waits of CPython without a GIL are in the table of places. */
void table_chains(struct table *ret, const struct analysis *a, const struct table_limits *limits)
{
	*ret = (struct table){ .caption = PHRASE_c_chains,
		               .text_columns = 3,
		               .say_left = say_left_waited };
	TABLE_HEADINGS(ret, PHRASE_h_waits_for_lock, PHRASE_h_meanwhile, PHRASE_h_meanwhile_in,
	               PHRASE_h_wait_ms, PHRASE_h_longest_ms);
	for (size_t i = 0; !a->locks && i < a->chains.v.n; i++) {
		const struct chain *chain = &a->chains.v.v[i];
		struct function in = function_at(a->pass, chain->waits_in);
		struct function at = function_at(a->pass, chain->at);
		struct row *row;

		if (i >= limits->waits || (!limits->all && chain->ns < FACTS_LEAST_NS)) {
			ret->left++;
			ret->left_ns += chain->ns;
			continue;
		}
		row = table_add_row(ret);
		row->cells[0].width = wording_add_function(&row->cells[0].text, &in,
		                                           limits->name_columns);
		cell_text(row, 1, wording_chain(chain));
		if (at.name)
			row->cells[2].width = wording_add_function(&row->cells[2].text, &at,
			                                           limits->name_columns);
		cell_ms(row, 3, chain->ns, 1);
		cell_ms(row, 4, chain->longest_ns, 3);
	}
}

/* Parts that round to 0.0 % are left out. */
void table_path(struct table *ret, const struct analysis *a, const struct table_limits *limits)
{
	static const enum phrase reasons[PATH_REASONS] = {
		[PATH_GIL] = PHRASE_path_gil,
		[PATH_WITHOUT_GIL] = PHRASE_path_without,
		[PATH_ASLEEP] = PHRASE_path_asleep,
		[PATH_TIME_OUT] = PHRASE_path_time_out,
		[PATH_NO_CPU] = PHRASE_path_no_cpu,
		[PATH_HANDOFF] = PHRASE_path_handoff,
		[PATH_UNKNOWN] = PHRASE_chain_not_known,
	};

	*ret = (struct table){ .caption = PHRASE_c_path,
		               .text_columns = 3,
		               .say_left = say_left_path };
	TABLE_HEADINGS(ret, PHRASE_h_critical_path, PHRASE_h_meanwhile_in, PHRASE_h_thread,
	               PHRASE_h_ms, PHRASE_h_of_run);
	for (size_t i = 0; i < a->path.rows.n; i++) {
		const struct path_part *part = &a->path.rows.v[i];
		struct function at = function_at(a->pass, part->at);
		double percent = facts_percent(part->ns, a->path.ns);
		struct row *row;

		if (i >= limits->waits || (!limits->all && percent < LEAST_PERCENT)) {
			ret->left++;
			ret->left_ns += part->ns;
			continue;
		}
		row = table_add_row(ret);
		cell_text(row, 0, phrase(reasons[part->reason]));
		if (at.name)
			row->cells[1].width = wording_add_function(&row->cells[1].text, &at,
			                                           limits->name_columns);
		if (part->thread != MODEL_NONE)
			cell_thread(row, 2, a, part->thread, limits->name_columns);
		cell_ms(row, 3, part->ns, 1);
		cell_number(row, 4, percent, 1);
	}
}

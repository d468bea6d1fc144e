/* SPDX-License-Identifier: MIT */
/* Fills in the tables of a report. */
#include "report/tables.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "analysis/whatif.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "report/threads.h"
#include "report/words.h"
#include "trace/names.h"

#define TABLE_HEADINGS(table, ...)                                      \
	table_set_headings(table, (const enum phrase[]){ __VA_ARGS__ }, \
	                   sizeof((const enum phrase[]){ __VA_ARGS__ }) / sizeof(enum phrase))

#define TEXT_COLUMNS 80

/* Adds a row without text, borrowed until the next one; or, unless it is shown, counts it and its ns, and
 * returns NULL. */
static struct row *add_row(struct table *table, bool shown, uint64_t ns)
{
	struct row *row;

	if (!shown) {
		table->left++;
		table->left_ns += ns;
		return NULL;
	}
	row = vec_push(&table->rows);
	memset(row, 0, sizeof(*row));
	return row;
}

/* text: any bytes, which are made safe. */
static void cell_text(struct row *row, unsigned column, const char *text)
{
	row->cells[column].width = utf8_add_safe(&row->cells[column].text, text, TEXT_COLUMNS);
}

static void cell_number(struct row *row, unsigned column, double value, int decimals)
{
	row->cells[column].number = true;
	row->cells[column].value = value;
	row->cells[column].decimals = decimals;
}

static void cell_function(struct row *row, unsigned column, const struct function *f,
                          unsigned name_columns)
{
	struct cell *cell = &row->cells[column];

	cell->width = wording_add_function(&cell->text, f, name_columns);
}

/* "12 threads" */
static void cell_threads(struct row *row, unsigned column, uint32_t threads)
{
	struct cell *cell = &row->cells[column];

	say_n_threads(&cell->text, threads);
	cell->width = (unsigned)cell->text.len;
}

static void cell_ms(struct row *row, unsigned column, uint64_t ns, int decimals)
{
	cell_number(row, column, facts_ms(ns), decimals);
}

/* "NAME 1235*", see wording_add_id. */
static void cell_thread(struct row *row, unsigned column, const struct analysis *a, uint32_t thread,
                        unsigned name_columns)
{
	struct cell *cell = &row->cells[column];
	CLEANUP(str_done) struct str id = { 0 };

	cell->width = utf8_add_safe(&cell->text, facts_thread_name(a->pass, thread), name_columns);
	str_addc(&id, ' ');
	wording_add_id(&id, a->pass, thread);
	str_adds(&cell->text, str_get(&id));
	cell->width += (unsigned)id.len;
}

/* A thread, or "Thread-* 12 threads". */
static void cell_group(struct row *row, unsigned column, const struct analysis *a, uint32_t group,
                       unsigned name_columns)
{
	const struct thread_group *g = &a->rows.v.v[group];
	CLEANUP(str_done) struct str name = { 0 };

	if (g->threads == 1) {
		cell_thread(row, column, a, g->first, name_columns);
		return;
	}
	utf8_add_safe(&name, str_get(&g->name), name_columns);
	say_group_of_threads(&row->cells[column].text, str_get(&name), g->threads);
	row->cells[column].width = utf8_columns(str_get(&row->cells[column].text));
}

/* Owns the note; an empty one is dropped. */
static void table_add_note(struct table *table, struct str *note)
{
	if (note->len)
		*vec_push(&table->notes) = *note;
	*note = (struct str){ 0 };
}

static void table_set_headings(struct table *table, const enum phrase *headings, unsigned columns)
{
	memcpy(table->headings, headings, columns * sizeof(*headings));
	table->columns = columns;
}

void table_done(struct table *table)
{
	for (size_t r = 0; r < table->rows.n; r++)
		for (unsigned c = 0; c < TABLE_COLUMNS; c++)
			str_done(&table->rows.v[r].cells[c].text);
	for (size_t i = 0; i < table->notes.n; i++)
		str_done(&table->notes.v[i]);
	vec_done(&table->rows);
	vec_done(&table->notes);
}

/* Threads. */

#define FIRST_COLUMN 2 /* after the thread and its life */

_Static_assert(THREAD_COLUMNS + FIRST_COLUMN <= TABLE_COLUMNS, "a table has room for them");

static uint64_t life(const struct model_thread *t)
{
	return t->end_ns - t->start_ns;
}

/* Adds a row for each thread or group, in their order. */
static void add_threads(struct table *table, const struct analysis *a,
                        const struct table_limits *limits, enum thread_table which)
{
	const struct thread_column *columns[THREAD_COLUMNS];
	size_t n = thread_columns(columns, which, a->model);

	TABLE_HEADINGS(table, PHRASE_h_thread, PHRASE_h_total_ms);
	for (size_t i = 0; i < n; i++)
		table->headings[table->columns++] = thread_column_heading(columns[i]);
	table->text_columns = 1;
	table->say_left = say_left_lived;
	for (uint32_t i = 0; i < a->rows.v.n; i++) {
		const struct model_thread *sum = &a->rows.v.v[i].sum;
		struct row *row = add_row(table, i < limits->threads, life(sum));

		if (!row)
			continue;
		cell_group(row, 0, a, i, limits->name_columns);
		cell_ms(row, 1, life(sum), 1);
		for (unsigned c = 0; c < n; c++) {
			if (thread_column_is_time(columns[c]))
				cell_ms(row, c + FIRST_COLUMN, thread_column_ns(columns[c], sum),
				        3);
			else
				cell_number(row, c + FIRST_COLUMN,
				            thread_column_percent(columns[c], sum), 1);
		}
	}
}

void table_threads(struct table *ret, const struct analysis *a, const struct table_limits *limits)
{
	*ret = (struct table){ .caption = a->locks ? PHRASE_c_lock_threads : PHRASE_c_threads };
	add_threads(ret, a, limits, a->locks ? THREADS_LOCKS : THREADS_GIL);
}

void table_states(struct table *ret, const struct analysis *a, const struct table_limits *limits)
{
	*ret = (struct table){ .caption = PHRASE_c_states };
	add_threads(ret, a, limits, THREADS_STATES);
}

/* Waiting. */

#define WAIT_SHARE 0.5 /* minimum percentage of the waiting for a row */
#define NOTE_SHARE 1   /* minimum percentage of the waiting for a sentence */

/* A holder that is not a thread: a program, nobody, or unknown. */
static void put_holder(struct row *row, unsigned column, const struct analysis *a,
                       const struct group_blame *b, unsigned name_columns)
{
	const char *program = cpu_users_program(a->pass, b->holder, b->name);

	if (b->kind == WAIT_FOR_CPU && program)
		cell_text(row, column, program);
	else if (b->holder >= MODEL_UNKNOWN)
		cell_text(row, column, wording_nobody(b));
	else
		cell_group(row, column, a, b->holder, name_columns);
}

static bool is_worth_a_row(const struct group_blame *b, uint64_t all_ns, size_t at)
{
	return b->wait_ns >= FACTS_LEAST_NS &&
	       (!at || facts_percent(b->wait_ns, all_ns) >= WAIT_SHARE);
}

/* Adds the waiter and the holder of each row; put fills in the other columns. */
static void add_waits(struct table *table, const struct analysis *a,
                      const struct group_blames *waits, const struct table_limits *limits,
                      void (*put)(struct row *, const struct group_blame *, uint64_t all_ns))
{
	bool ended = false;

	for (size_t i = 0; waits->wait_ns && i < waits->v.n; i++) {
		const struct group_blame *b = &waits->v.v[i];
		struct row *row;

		ended |= i >= limits->waits ||
		         (!limits->all && !is_worth_a_row(b, waits->wait_ns, i));
		row = add_row(table, !ended, b->wait_ns);
		if (!row)
			continue;
		cell_group(row, 0, a, b->waiter, limits->name_columns);
		put_holder(row, 1, a, b, limits->name_columns);
		put(row, b, waits->wait_ns);
	}
}

static void put_gil_wait(struct row *row, const struct group_blame *b, uint64_t all_ns)
{
	(void)all_ns;
	cell_ms(row, 2, b->wait_ns, 1);
	cell_ms(row, 3, b->longest_ns, 3);
}

static bool is_worth_a_note(uint64_t ns, const struct facts_totals *totals)
{
	return ns >= FACTS_LEAST_NS && facts_percent(ns, totals->wait_ns) >= NOTE_SHARE;
}

void table_gil_waits(struct table *ret, const struct analysis *a, const struct table_limits *limits)
{
	const struct facts_totals *totals = &a->evidence.totals;
	struct str note = { 0 };

	*ret = (struct table){ .caption = PHRASE_c_gil_waits,
		               .text_columns = 2,
		               .say_left = say_left_waited };
	TABLE_HEADINGS(ret, PHRASE_h_waiting_thread, PHRASE_h_held_by, PHRASE_h_wait_ms,
	               PHRASE_h_longest_ms);
	add_waits(ret, a, &a->gil_waits, limits, put_gil_wait);
	if (is_worth_a_note(totals->no_cpu_ns, totals))
		say_note_no_cpu(&note, totals->no_cpu_ns);
	table_add_note(ret, &note);
	if (is_worth_a_note(totals->switch_wait_ns, totals))
		say_note_switch_wait(&note, totals->switch_wait_ns);
	table_add_note(ret, &note);
}

static void put_lock_wait(struct row *row, const struct group_blame *b, uint64_t all_ns)
{
	(void)all_ns;
	cell_text(row, 2,
	          phrase(b->kind == WAIT_STOPPED ? PHRASE_state_stopped : PHRASE_state_lock));
	cell_ms(row, 3, b->wait_ns, 1);
	cell_ms(row, 4, b->longest_ns, 3);
}

void table_lock_waits(struct table *ret, const struct analysis *a,
                      const struct table_limits *limits)
{
	*ret = (struct table){ .caption = PHRASE_c_lock_waits,
		               .text_columns = 3,
		               .say_left = say_left_waited };
	TABLE_HEADINGS(ret, PHRASE_h_waiting_thread, PHRASE_h_released_by, PHRASE_h_what,
	               PHRASE_h_wait_ms, PHRASE_h_longest_ms);
	add_waits(ret, a, &a->lock_waits, limits, put_lock_wait);
}

static void put_cpu_wait(struct row *row, const struct group_blame *b, uint64_t all_ns)
{
	cell_ms(row, 2, b->wait_ns, 1);
	cell_number(row, 3, facts_percent(b->wait_ns, all_ns), 1);
}

void table_cpu_waits(struct table *ret, const struct analysis *a, const struct table_limits *limits)
{
	*ret = (struct table){ .caption = PHRASE_c_cpu_waits,
		               .text_columns = 2,
		               .say_left = say_left_runnable };
	TABLE_HEADINGS(ret, PHRASE_h_runnable_thread, PHRASE_h_cpu_used_by, PHRASE_h_ms,
	               PHRASE_h_share_runnable);
	add_waits(ret, a, &a->cpu_waits, limits, put_cpu_wait);
}

/* Functions and locks. */

static void put_function(struct row *row, const struct analysis *a, const struct function_row *f,
                         bool overdue, unsigned name_columns)
{
	struct cell *name = &row->cells[0];
	uint64_t gain_ns = 0;

	name->width = wording_add_function_row(&name->text, a->pass, f->hog, name_columns);
	if (f->threads == 1)
		cell_thread(row, 1, a, f->hog->thread, name_columns);
	else
		cell_threads(row, 1, f->threads);
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

/* The reasons why there are rows without a gain. */
static void add_no_gains(struct table *table, const struct analysis *a)
{
	static const enum phrase texts[] = {
		[NO_GAIN_UNKNOWN] = PHRASE_no_gain_unknown,
		[NO_GAIN_LITTLE] = PHRASE_no_gain_little,
		[NO_GAIN_TOO_LONG] = PHRASE_no_gain_too_long,
		[NO_GAIN_SLOW_START] = PHRASE_no_gain_slow_start,
		[NO_GAIN_NOT_A_CALL] = PHRASE_no_gain_not_a_call,
	};
	const struct hogs *hogs = a->pass->hogs;
	unsigned said = 1 << GAIN_KNOWN;

	for (size_t i = 0; i < table->rows.n; i++) {
		struct str note = { 0 };
		uint64_t ns;
		enum no_gain why = functions_gain(a->pass, a->overdue.v.v[i].hog, &ns);

		if (said & 1u << why)
			continue;
		said |= 1u << why;
		if (why == NO_GAIN_DIFFERENT)
			say_no_gain_different(&note, hogs->replayed_ns, hogs->waited_ns);
		else
			str_adds(&note, phrase(texts[why]));
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
		bool shown = i < limits->functions && (limits->all || f->wait_ns >= FACTS_LEAST_NS);
		struct row *row = add_row(table, shown, f->wait_ns);

		if (row)
			put_function(row, a, f, overdue, limits->name_columns);
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
	if (facts_percent(a->overdue.wait_ns, a->holders.wait_ns) >= TABLE_NEARLY_ALL)
		return;
	add_functions(ret, a, &a->holders, false, limits);
	add_frames_advice(ret, a, &a->holders);
}

static enum phrase state_phrase(unsigned state)
{
	return state == GIL_LOCK_WAIT  ? PHRASE_state_lock
	       : state == GIL_SPINNING ? PHRASE_state_spins
	       : state == GIL_STOPPED  ? PHRASE_state_stopped
	                               : PHRASE_state_stops;
}

/* The type of the object and the variable that refers to it. */
static void put_lock(struct row *row, unsigned column, const char *of, const char *name)
{
	CLEANUP(str_done) struct str text = { 0 };

	if (!of)
		return cell_text(row, column, "");
	str_addf(&text, "%s%s%s",
	         *of     ? of
	         : *name ? phrase(PHRASE_of_cpython)
	                 : "?",
	         *name ? " " : "", name);
	cell_text(row, column, str_get(&text));
}

void table_late(struct table *ret, const struct analysis *a, const struct table_limits *limits)
{
	struct locks_late_list late = locks_late(a->pass);

	*ret = (struct table){ .caption = PHRASE_c_late,
		               .text_columns = 2,
		               .say_left = say_left_waited };
	TABLE_HEADINGS(ret, PHRASE_h_last_to_stop, PHRASE_h_meanwhile_in, PHRASE_h_times,
	               PHRASE_h_waited_for_ms, PHRASE_h_longest_ms);
	for (size_t i = 0; i < late.v.n; i++) {
		const struct locks_late *l = &late.v.v[i];
		struct function f = function_at(a->pass, l->frame);
		struct row *row = add_row(ret, i < limits->waits, l->waiting_ns);

		if (!row)
			continue;
		if (l->thread == MODEL_NONE)
			cell_text(row, 0, phrase(PHRASE_last_unknown));
		else
			cell_thread(row, 0, a, l->thread, limits->name_columns);
		cell_function(row, 1, &f, limits->name_columns);
		cell_number(row, 2, (double)l->count, 0);
		cell_ms(row, 3, l->waiting_ns, 1);
		cell_ms(row, 4, l->longest_ns, 3);
	}
	vec_done(&late.v);
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
		struct row *row = add_row(ret, i < limits->waits, place->ns);

		if (!row)
			continue;
		cell_function(row, 0, &f, limits->name_columns);
		cell_text(row, 1, phrase(state_phrase(place->state)));
		put_lock(row, 2, place->of, place->name);
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
		struct lock_name lock = lock_name_of(a->recording, a->pass, chain->waits_in);
		struct function at = function_at(a->pass, chain->at);
		bool shown = i < limits->waits && (limits->all || chain->ns >= FACTS_LEAST_NS);
		struct row *row = add_row(ret, shown, chain->ns);

		if (!row)
			continue;
		row->cells[0].width = wording_add_lock_in(&row->cells[0].text, &lock,
		                                          limits->name_columns);
		cell_text(row, 1, wording_chain(chain));
		if (at.name)
			cell_function(row, 2, &at, limits->name_columns);
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
		bool shown = i < limits->waits && (limits->all || percent >= FACTS_LEAST_PERCENT);
		struct row *row = add_row(ret, shown, part->ns);

		if (!row)
			continue;
		cell_text(row, 0, phrase(reasons[part->reason]));
		if (at.name)
			cell_function(row, 1, &at, limits->name_columns);
		if (part->thread != MODEL_NONE)
			cell_thread(row, 2, a, part->thread, limits->name_columns);
		cell_ms(row, 3, part->ns, 1);
		cell_number(row, 4, percent, 1);
	}
}

/* Without the GIL. */

#define PATH_SHOWN     5   /* parts of the critical path */
#define BUSY_PERCENT   90  /* of the CPUs, so that they are the limit */
#define FASTER_PERCENT 105 /* as long as with the most CPUs, so that more of them help */

/* "1 CPU", "1.5 CPUs" */
static void add_cpus(struct str *out, double cpus)
{
	CLEANUP(str_done) struct str number = { 0 };

	str_addf(&number, "%g", cpus);
	if (!strcmp(str_get(&number), "1"))
		say_one_cpu(out);
	else
		say_n_cpus(out, str_get(&number));
}

static void add_replay(struct table *table, void (*say)(struct str *, const char *), double cpus,
                       const char *limit, uint64_t ns, uint64_t recorded_ns)
{
	CLEANUP(str_done) struct str count = { 0 };
	struct row *row = add_row(table, true, 0);
	struct cell *cell = &row->cells[0];

	add_cpus(&count, cpus);
	if (say)
		say(&cell->text, str_get(&count));
	else
		str_adds(&cell->text, phrase(PHRASE_replay_recorded));
	cell->width = utf8_columns(str_get(&cell->text));
	cell_text(row, 1, limit);
	cell_ms(row, 2, ns, 1);
	cell_number(row, 3, ns ? (double)recorded_ns / (double)ns : 0, 2);
}

static const char *replay_limit(const struct whatif_free *f, unsigned run)
{
	const struct whatif_run *r = &f->runs[run], *last = &f->runs[f->run_count - 1];
	bool busy = (double)r->worked_ns * 100 > r->cpus * (double)r->end_ns * BUSY_PERCENT;

	return phrase(busy || r->end_ns > last->end_ns / 100 * FASTER_PERCENT ? PHRASE_limit_cpus
	                                                                      : PHRASE_limit_path);
}

/* "61.0 % Python code in produce (app.py:7), …" */
static void add_path_note(struct table *table, const struct analysis *a,
                          const struct whatif_free *f, unsigned name_columns)
{
	static void (*const says[WHATIF_KINDS])(struct str *, double, const char *) = {
		[WHATIF_PYTHON] = say_replay_python,
		[WHATIF_C] = say_replay_c,
		[WHATIF_ASLEEP] = say_replay_asleep,
	};
	CLEANUP(str_done) struct str parts = { 0 }, count = { 0 };
	struct str note = { 0 };
	double all = (double)f->runs[f->run_count - 1].end_ns;

	add_cpus(&count, f->runs[f->run_count - 1].cpus);
	for (size_t i = 0; i < f->path.n && i < PATH_SHOWN; i++) {
		const struct whatif_part *p = &f->path.v[i];
		struct function at = function_at(a->pass, p->frame);
		CLEANUP(str_done) struct str name = { 0 };

		if (i && p->ns * 100 < all)
			break;
		wording_add_function(&name, &at, name_columns);
		str_adds(&parts, i ? ", " : "");
		says[p->kind](&parts, p->ns * 100 / all, str_get(&name));
	}
	if (parts.len)
		say_replay_path(&note, str_get(&count), str_get(&parts));
	table_add_note(table, &note);
}

/* The wait for a lock of the threads that handed it to each other. */
static void add_lock_note(struct table *table, const struct analysis *a,
                          const struct whatif_free *f, unsigned name_columns)
{
	CLEANUP(str_done) struct str name = { 0 };
	struct lock_name lock = { 0 };
	struct str note = { 0 };

	for (size_t i = 0; i < a->model->threads.n && f->lock != MODEL_NONE; i++) {
		const struct lane *lane = &a->model->threads.v[i].gil;

		for (size_t s = 0; s < lane->spans.n && !lock.in.name; s++)
			if (lane->spans.v[s].state == GIL_LOCK_WAIT &&
			    lane->spans.v[s].gil.lock == f->lock)
				lock = lock_name_of(a->recording, a->pass,
				                    lane->spans.v[s].gil.frame);
	}
	if (f->lock == MODEL_NONE)
		return;
	wording_add_lock_in(&name, &lock, name_columns);
	say_replay_lock(&note, f->lock_ns * 100 / (double)f->runs[f->run_count - 1].end_ns,
	                str_get(&name));
	table_add_note(table, &note);
}

static void add_replay_notes(struct table *table, const struct analysis *a,
                             const struct whatif_free *f, unsigned name_columns)
{
	double end = (double)f->unchanged.end_ns, recorded = (double)f->duration_ns;
	struct str error = { 0 }, assumed = { 0 }, states = { 0 };

	if (!f->run_count) {
		say_replay_none(&error);
		table_add_note(table, &error);
		return;
	}
	add_path_note(table, a, f, name_columns);
	add_lock_note(table, a, f, name_columns);
	(f->no_gain == GAIN_KNOWN ? say_replay_error : say_replay_unlike)(
		&error,
		recorded > 0 ? (end > recorded ? end - recorded : recorded - end) * 100 / recorded
			     : 0);
	table_add_note(table, &error);
	if (!f->states_known)
		say_replay_no_states(&states);
	table_add_note(table, &states);
	say_replay_assumed(&assumed, a->recording->without_gil->factor);
	table_add_note(table, &assumed);
}

void table_without_gil(struct table *ret, const struct analysis *a,
                       const struct table_limits *limits)
{
	struct whatif_free f;
	struct str none = { 0 };

	*ret = (struct table){ .caption = PHRASE_c_without_gil, .text_columns = 2 };
	TABLE_HEADINGS(ret, PHRASE_h_replay, PHRASE_h_limited_by, PHRASE_h_ms, PHRASE_h_speedup);
	if (!a->recording->without_gil)
		return;
	if (!analysis_without_gil(&f, a)) {
		add_replay(ret, NULL, 0, "", a->model->end_ns - a->model->start_ns,
		           a->model->end_ns - a->model->start_ns);
		say_replay_part(&none);
		table_add_note(ret, &none);
		return;
	}
	add_replay(ret, NULL, 0, "", f.duration_ns, f.duration_ns);
	if (f.run_count)
		add_replay(ret, say_replay_with, f.unchanged.cpus, "", f.unchanged.end_ns,
		           f.duration_ns);
	for (unsigned i = 0; i < f.run_count; i++)
		add_replay(ret, say_replay_without, f.runs[i].cpus, replay_limit(&f, i),
		           f.runs[i].end_ns, f.duration_ns);
	add_replay_notes(ret, a, &f, limits->name_columns);
	whatif_free_done(&f);
}

/* Samples. */

#define SAMPLED_LEAST_PERCENT 0.5 /* minimum share of the threads' samples for a row */

/* No thread of a free-threaded interpreter holds a GIL or waits for it, unless that is on. */
static bool has_gil(const struct analysis *a)
{
	return !a->pass->free_threaded || a->sampled.gils.n;
}

static void put_thread(struct row *row, const struct analysis *a, const struct sampled_thread *t,
                       unsigned name_columns)
{
	const struct samples *s = a->pass->samples;
	unsigned column = 1;
	uint64_t asleep = 0;

	if (t->thread != MODEL_NONE)
		cell_thread(row, 0, a, t->thread, name_columns);
	else
		cell_text(row, 0, names_get(s->names, s->threads.v[t->of].name));
	for (unsigned w = SAMPLED_LOCK; w <= SAMPLED_OTHER; w++)
		asleep += t->what[w];
	cell_number(row, column++, (double)t->samples, 0);
	if (has_gil(a)) {
		cell_number(row, column++, facts_percent(t->what[SAMPLED_HOLDS], t->samples), 1);
		cell_number(row, column++, facts_percent(t->what[SAMPLED_WAITS], t->samples), 1);
	}
	cell_number(row, column++, facts_percent(t->what[SAMPLED_RUNNING], t->samples), 1);
	cell_number(row, column++, facts_percent(asleep, t->samples), 1);
	cell_number(row, column, facts_percent(t->what[SAMPLED_UNKNOWN], t->samples), 1);
}

void table_sampled_threads(struct table *ret, const struct analysis *a,
                           const struct table_limits *limits)
{
	const struct sampled *s = &a->sampled;

	*ret = (struct table){ .caption = PHRASE_c_sampled_threads,
		               .text_columns = 1,
		               .say_left = say_left_sampled };
	if (has_gil(a))
		TABLE_HEADINGS(ret, PHRASE_h_thread, PHRASE_h_samples, PHRASE_h_est_has_gil,
		               PHRASE_h_est_gil_wait, PHRASE_h_est_running, PHRASE_h_est_blocked,
		               PHRASE_h_unknown);
	else
		TABLE_HEADINGS(ret, PHRASE_h_thread, PHRASE_h_samples, PHRASE_h_est_runnable,
		               PHRASE_h_est_blocked, PHRASE_h_unknown);
	for (size_t i = 0; i < s->threads.n; i++) {
		const struct sampled_thread *t = &s->threads.v[i];
		struct row *row = add_row(ret, i < limits->threads, t->samples);

		if (row)
			put_thread(row, a, t, limits->name_columns);
	}
}

static void put_sampled_place(struct row *row, const struct analysis *a,
                              const struct sampled_place *p, unsigned name_columns)
{
	uint32_t thread = sampled_model_thread(a->pass, &a->pass->samples->threads.v[p->thread]);

	row->cells[0].width = sampled_add_place(&row->cells[0].text, a->pass, p, name_columns);
	cell_text(row, 1, sampled_what_text(a->pass, p->what));
	if (p->threads == 1 && thread != MODEL_NONE)
		cell_thread(row, 2, a, thread, name_columns);
	else
		cell_threads(row, 2, p->threads);
	cell_number(row, 3, (double)p->samples, 0);
	cell_number(row, 4, facts_percent(p->samples, a->sampled.thread_samples), 1);
	if (p->what == SAMPLED_HOLDS)
		cell_number(row, 5, (double)p->waiters / (double)p->samples, 1);
	else
		cell_text(row, 5, "");
}

void table_sampled_places(struct table *ret, const struct analysis *a,
                          const struct table_limits *limits)
{
	const struct sampled *s = &a->sampled;

	*ret = (struct table){ .caption = PHRASE_c_sampled_places,
		               .text_columns = 3,
		               .say_left = say_left_sampled };
	TABLE_HEADINGS(ret, PHRASE_h_function, PHRASE_h_what, PHRASE_h_in_thread, PHRASE_h_samples,
	               PHRASE_h_est_share, PHRASE_h_est_waiters);
	for (size_t i = 0; i < s->places.n; i++) {
		const struct sampled_place *p = &s->places.v[i];
		double percent = facts_percent(p->samples, s->thread_samples);
		struct row *row =
			add_row(ret,
		                i < 2 * limits->waits &&
		                        (limits->all || !i || percent >= SAMPLED_LEAST_PERCENT),
		                p->samples);

		if (row)
			put_sampled_place(row, a, p, limits->name_columns);
	}
}

/* Tasks of event loops. */

/* "file.py:12" of the await at which the group's tasks waited longest. */
static void put_place(struct row *row, const struct analysis *a, uint32_t group)
{
	CLEANUP(str_done) struct str text = { 0 };
	const struct task_row *rows;
	const char *name, *file, *colon;
	size_t n;

	rows = task_rows_of(&a->tasks.waits, group, &n);
	name = n ? names_get(a->pass->slices->names, rows->function) : "";
	file = strrchr(name, '/');
	file = file ? file + 1 : strstr(name, " (") ? strstr(name, " (") + 2 : name;
	colon = strrchr(file, ':');
	if (colon) {
		str_addn(&text, file, (size_t)(colon - file));
		str_addf(&text, ":%" PRIu32, rows->line);
	}
	cell_text(row, 2, str_get(&text));
}

static void put_group(struct row *row, const struct analysis *a, uint32_t i, unsigned columns)
{
	const struct task_group *g = &a->tasks.v.v[i];

	if (g->named)
		cell_text(row, 0, str_get(&g->name));
	else if (g->name.len)
		row->cells[0].width = wording_add_traced(&row->cells[0].text, str_get(&g->name),
		                                         columns);
	else
		cell_text(row, 0, phrase(PHRASE_unknown_function));
	cell_text(row, 1, aio_loop_name(g->loop));
	put_place(row, a, i);
	cell_number(row, 3, (double)g->tasks, 0);
	cell_number(row, 4, (double)g->steps, 0);
	cell_ms(row, 5, g->running_ns, 1);
	cell_ms(row, 6, g->waiting_ns, 1);
	cell_ms(row, 7, g->late_ns, 1);
	cell_ms(row, 8, g->gil_ns, 1);
	cell_ms(row, 9, g->delay.end_ns - g->delay.start_ns, 3);
	cell_ms(row, 10, g->step.end_ns - g->step.start_ns, 3);
	cell_ms(row, 11, g->unknown_ns, 1);
}

void table_tasks(struct table *ret, const struct analysis *a, const struct table_limits *limits)
{
	struct str note = { 0 };
	uint64_t inferred_ns = 0, unknown_ns = 0;

	*ret = (struct table){ .caption = PHRASE_c_tasks,
		               .text_columns = 3,
		               .say_left = say_left_late };
	TABLE_HEADINGS(ret, PHRASE_h_task, PHRASE_h_loop, PHRASE_h_waits_at, PHRASE_h_tasks,
	               PHRASE_h_steps, PHRASE_h_running_ms, PHRASE_h_waiting_ms, PHRASE_h_late_ms,
	               PHRASE_h_late_gil_ms, PHRASE_h_longest_late_ms, PHRASE_h_longest_step_ms,
	               PHRASE_h_unknown_ms);
	for (uint32_t i = 0; i < a->tasks.v.n; i++) {
		const struct task_group *g = &a->tasks.v.v[i];
		struct row *row = add_row(ret, i < limits->waits, g->late_ns);

		inferred_ns += g->inferred_ns;
		if (!aio_shows_ready(g->loop))
			unknown_ns += g->unknown_ns;
		if (row)
			put_group(row, a, i, limits->name_columns);
	}
	if (inferred_ns >= FACTS_LEAST_NS)
		say_note_late_inferred(&note, inferred_ns);
	table_add_note(ret, &note);
	if (unknown_ns >= FACTS_LEAST_NS)
		say_note_unknown_ready(&note, unknown_ns);
	table_add_note(ret, &note);
}

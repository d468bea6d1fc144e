/* SPDX-License-Identifier: MIT */
/* Waits, by waiter and holder. */
#include "report/tables/cells.h"
#include "report/words.h"

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
		if (ended) {
			table->left++;
			table->left_ns += b->wait_ns;
			continue;
		}
		row = table_add_row(table);
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

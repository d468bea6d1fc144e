/* SPDX-License-Identifier: MIT */
/* Threads and the time in their states. */
#include <stdbool.h>
#include <string.h>

#include "report/tables/cells.h"

#define FIRST_COLUMN 2 /* after the thread and its life */

/* A column: a percentage or a time, at an offset in the shares or in the thread. */
struct thread_column {
	enum phrase heading;
	bool is_time;
	size_t offset;
};

#define SHARE(phrase, of, member)                                        \
	{                                                                \
		.heading = phrase, .offset = offsetof(struct of, member) \
	}
#define TIME(phrase, member)                                    \
	{                                                       \
		.heading = phrase, .is_time = true,             \
		.offset = offsetof(struct model_thread, member) \
	}

/* clang-format off */

/* Some columns are shown only if they matter: see of_gil. */
enum gil_column { NO_GIL, LOCK_WAIT, PROBES = 8, CALLS };

static const struct thread_column gil_columns[] = {
	[NO_GIL] = SHARE(PHRASE_h_no_gil, facts_shares, no_gil),
	[LOCK_WAIT] = SHARE(PHRASE_h_lock_wait, facts_shares, lock_wait),
	SHARE(PHRASE_h_has_gil, facts_shares, hold),
	SHARE(PHRASE_h_gil_wait, facts_shares, wait),
	SHARE(PHRASE_h_free_wait, facts_shares, free_wait),
	SHARE(PHRASE_h_unknown, facts_shares, unknown),
	TIME(PHRASE_h_longest_wait, longest_wait_ns),
	TIME(PHRASE_h_longest_hold, longest_hold_ns),
	[PROBES] = SHARE(PHRASE_h_probes, facts_shares, probes),
	[CALLS] = SHARE(PHRASE_h_calls, facts_shares, calls),
};

static const struct thread_column lock_columns[] = {
	SHARE(PHRASE_h_free, locks_shares, free),
	SHARE(PHRASE_h_lock_wait, locks_shares, lock_wait),
	SHARE(PHRASE_h_stopped, locks_shares, stopped),
	SHARE(PHRASE_h_stops, locks_shares, stops),
	SHARE(PHRASE_h_unknown, locks_shares, unknown),
	TIME(PHRASE_h_longest_lock_wait, longest_lock_wait_ns),
	TIME(PHRASE_h_longest_stop, longest_stop_ns),
};

static const struct thread_column state_columns[] = {
	SHARE(PHRASE_h_running, facts_states, percent[CPU_RUNNING]),
	SHARE(PHRASE_h_runnable, facts_states, percent[CPU_RUNNABLE]),
	SHARE(PHRASE_h_asleep, facts_states, percent[CPU_SLEEPING]),
	SHARE(PHRASE_h_uninterruptible, facts_states, percent[CPU_UNINTERRUPTIBLE]),
	SHARE(PHRASE_h_gil_sleep, facts_states, percent[CPU_GIL_SLEEP]),
	SHARE(PHRASE_h_unknown, facts_states, percent[CPU_UNKNOWN]),
};

/* clang-format on */

#define COUNT(array)   (sizeof(array) / sizeof(*(array)))
#define COLUMNS(array) (array), COUNT(array)

_Static_assert(COUNT(gil_columns) + FIRST_COLUMN <= TABLE_COLUMNS, "a table has room for them");
_Static_assert(COUNT(lock_columns) + FIRST_COLUMN <= TABLE_COLUMNS, "a table has room for them");
_Static_assert(COUNT(state_columns) + FIRST_COLUMN <= TABLE_COLUMNS, "a table has room for them");

/* The columns of a table, and the function that fills them in for a thread. */
struct thread_columns {
	const struct thread_column *v[TABLE_COLUMNS];
	size_t n;
	void (*put)(struct row *row, const struct thread_columns *columns,
	            const struct model_thread *t);
};

static struct thread_columns all_of(const struct thread_column *columns, size_t n)
{
	struct thread_columns ret = { .n = n };

	for (size_t i = 0; i < n; i++)
		ret.v[i] = &columns[i];
	return ret;
}

static void put_columns(struct row *row, const struct thread_columns *columns, const void *shares,
                        const struct model_thread *t)
{
	for (size_t i = 0; i < columns->n; i++) {
		const struct thread_column *column = columns->v[i];
		const char *from = column->is_time ? (const char *)t : shares;
		uint64_t ns;
		double percent;

		if (column->is_time) {
			memcpy(&ns, from + column->offset, sizeof(ns));
			cell_ms(row, (unsigned)i + FIRST_COLUMN, ns, 3);
		} else {
			memcpy(&percent, from + column->offset, sizeof(percent));
			cell_number(row, (unsigned)i + FIRST_COLUMN, percent, 1);
		}
	}
}

static void put_gil_shares(struct row *row, const struct thread_columns *columns,
                           const struct model_thread *t)
{
	struct facts_shares shares = facts_shares(t);

	put_columns(row, columns, &shares, t);
}

static void put_lock_shares(struct row *row, const struct thread_columns *columns,
                            const struct model_thread *t)
{
	struct locks_shares shares = locks_shares(t);

	put_columns(row, columns, &shares, t);
}

static void put_states(struct row *row, const struct thread_columns *columns,
                       const struct model_thread *t)
{
	struct facts_states shares = facts_states(t);

	put_columns(row, columns, &shares, t);
}

static struct thread_columns of_gil(const struct model *model)
{
	const bool shown[COUNT(gil_columns)] = {
		[LOCK_WAIT] = facts_locks_matter(model),
		[PROBES] = model->caveats[CAVEAT_PROBE_COST],
		[CALLS] = facts_calls_matter(model),
	};
	struct thread_columns ret = { .put = put_gil_shares };

	for (size_t i = 0; i < COUNT(gil_columns); i++)
		if ((i != LOCK_WAIT && i < PROBES) || shown[i])
			ret.v[ret.n++] = &gil_columns[i];
	return ret;
}

static uint64_t life(const struct model_thread *t)
{
	return t->end_ns - t->start_ns;
}

/* Adds a row for each thread or group, in their order. */
static void add_threads(struct table *table, const struct analysis *a,
                        const struct table_limits *limits, const struct thread_columns *columns)
{
	TABLE_HEADINGS(table, PHRASE_h_thread, PHRASE_h_total_ms);
	for (size_t i = 0; i < columns->n; i++)
		table->headings[table->columns++] = columns->v[i]->heading;
	table->text_columns = 1;
	table->say_left = say_left_lived;
	for (uint32_t i = 0; i < a->rows.v.n; i++) {
		const struct model_thread *sum = &a->rows.v.v[i].sum;
		struct row *row;

		if (i >= limits->threads) {
			table->left++;
			table->left_ns += life(sum);
			continue;
		}
		row = table_add_row(table);
		cell_group(row, 0, a, i, limits->name_columns);
		cell_ms(row, 1, life(sum), 1);
		columns->put(row, columns, sum);
	}
}

void table_threads(struct table *ret, const struct analysis *a, const struct table_limits *limits)
{
	struct thread_columns columns;

	*ret = (struct table){ .caption = a->locks ? PHRASE_c_lock_threads : PHRASE_c_threads };
	if (a->locks) {
		columns = all_of(COLUMNS(lock_columns));
		columns.put = put_lock_shares;
	} else {
		columns = of_gil(a->model);
	}
	add_threads(ret, a, limits, &columns);
}

void table_states(struct table *ret, const struct analysis *a, const struct table_limits *limits)
{
	struct thread_columns columns = all_of(COLUMNS(state_columns));

	*ret = (struct table){ .caption = PHRASE_c_states };
	columns.put = put_states;
	add_threads(ret, a, limits, &columns);
}

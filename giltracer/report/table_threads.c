/* SPDX-License-Identifier: MIT */
/* Threads and what they did. */
#include "report/table_cells.h"

static uint64_t life(const struct model_thread *t)
{
	return t->end_ns - t->start_ns;
}

static void put_gil_shares(struct row *row, const struct model_thread *t)
{
	struct facts_shares s = facts_shares(t);

	cell_number(row, 2, s.no_gil, 1);
	cell_number(row, 3, s.hold, 1);
	cell_number(row, 4, s.wait, 1);
	cell_number(row, 5, s.free_wait, 1);
	cell_number(row, 6, s.unknown, 1);
	cell_ms(row, 7, t->longest_wait_ns, 3);
	cell_ms(row, 8, t->longest_hold_ns, 3);
	cell_number(row, 9, s.probes, 1);
}

static void put_lock_shares(struct row *row, const struct model_thread *t)
{
	struct locks_shares s = locks_shares(t);

	cell_number(row, 2, s.free, 1);
	cell_number(row, 3, s.lock_wait, 1);
	cell_number(row, 4, s.stopped, 1);
	cell_number(row, 5, s.stops, 1);
	cell_number(row, 6, s.unknown, 1);
	cell_ms(row, 7, t->longest_lock_wait_ns, 3);
	cell_ms(row, 8, t->longest_stop_ns, 3);
}

static void put_states(struct row *row, const struct model_thread *t)
{
	static const enum cpu_state order[] = { CPU_RUNNING,         CPU_RUNNABLE,  CPU_SLEEPING,
		                                CPU_UNINTERRUPTIBLE, CPU_GIL_SLEEP, CPU_UNKNOWN };
	struct facts_states s = facts_states(t);

	for (unsigned i = 0; i < sizeof(order) / sizeof(*order); i++)
		cell_number(row, i + 2, s.percent[order[i]], 1);
}

/* A row for each thread or group, in their order. */
static void add_threads(struct table *table, const struct analysis *a,
                        const struct table_limits *limits,
                        void (*put)(struct row *, const struct model_thread *))
{
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
		put(row, sum);
	}
}

void table_threads(struct table *ret, const struct analysis *a, const struct table_limits *limits)
{
	*ret = (struct table){ .caption = a->locks ? PHRASE_c_lock_threads : PHRASE_c_threads };
	if (a->locks)
		TABLE_HEADINGS(ret, PHRASE_h_thread, PHRASE_h_total_ms, PHRASE_h_free,
		               PHRASE_h_lock_wait, PHRASE_h_stopped, PHRASE_h_stops,
		               PHRASE_h_unknown, PHRASE_h_longest_lock_wait, PHRASE_h_longest_stop);
	else
		TABLE_HEADINGS(ret, PHRASE_h_thread, PHRASE_h_total_ms, PHRASE_h_no_gil,
		               PHRASE_h_has_gil, PHRASE_h_gil_wait, PHRASE_h_free_wait,
		               PHRASE_h_unknown, PHRASE_h_longest_wait, PHRASE_h_longest_hold,
		               PHRASE_h_probes);
	if (!a->locks && !a->model->caveats[CAVEAT_PROBE_COST])
		ret->columns--;
	add_threads(ret, a, limits, a->locks ? put_lock_shares : put_gil_shares);
}

void table_states(struct table *ret, const struct analysis *a, const struct table_limits *limits)
{
	*ret = (struct table){ .caption = PHRASE_c_states };
	TABLE_HEADINGS(ret, PHRASE_h_thread, PHRASE_h_total_ms, PHRASE_h_running, PHRASE_h_runnable,
	               PHRASE_h_asleep, PHRASE_h_uninterruptible, PHRASE_h_gil_sleep,
	               PHRASE_h_unknown);
	add_threads(ret, a, limits, put_states);
}

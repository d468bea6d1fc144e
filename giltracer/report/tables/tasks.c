/* SPDX-License-Identifier: MIT */
/* The table of groups of event loops' tasks, with the parts of their lives. */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "report/tables/cells.h"
#include "report/words.h"
#include "trace/names.h"

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
		inferred_ns += a->tasks.v.v[i].inferred_ns;
		if (!aio_shows_ready(a->tasks.v.v[i].loop))
			unknown_ns += a->tasks.v.v[i].unknown_ns;
		if (i < limits->waits) {
			put_group(table_add_row(ret), a, i, limits->name_columns);
			continue;
		}
		ret->left++;
		ret->left_ns += a->tasks.v.v[i].late_ns;
	}
	if (inferred_ns >= FACTS_LEAST_NS)
		say_note_late_inferred(&note, inferred_ns);
	table_add_note(ret, &note);
	if (unknown_ns >= FACTS_LEAST_NS)
		say_note_unknown_ready(&note, unknown_ns);
	table_add_note(ret, &note);
}

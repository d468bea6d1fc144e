/* SPDX-License-Identifier: MIT */
/* Makes rows, cells and notes. */
#include "report/tables/cells.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "report/words.h"

#define TEXT_COLUMNS 80

struct row *table_add_row(struct table *table)
{
	struct row *row = vec_push(&table->rows);

	memset(row, 0, sizeof(*row));
	return row;
}

void cell_text(struct row *row, unsigned column, const char *text)
{
	row->cells[column].width = utf8_add_safe(&row->cells[column].text, text, TEXT_COLUMNS);
}

void cell_number(struct row *row, unsigned column, double value, int decimals)
{
	row->cells[column].number = true;
	row->cells[column].value = value;
	row->cells[column].decimals = decimals;
}

void cell_ms(struct row *row, unsigned column, uint64_t ns, int decimals)
{
	cell_number(row, column, facts_ms(ns), decimals);
}

void cell_thread(struct row *row, unsigned column, const struct analysis *a, uint32_t thread,
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

void cell_group(struct row *row, unsigned column, const struct analysis *a, uint32_t group,
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

void table_add_note(struct table *table, struct str *note)
{
	if (note->len)
		*vec_push(&table->notes) = *note;
	*note = (struct str){ 0 };
}

void table_set_headings(struct table *table, const enum phrase *headings, unsigned columns)
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

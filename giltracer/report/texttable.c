/* SPDX-License-Identifier: MIT */
/* Aligns cells. */
#include "texttable.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/facts.h"
#include "report/utf8.h"

struct row *table_row(struct table *table)
{
	struct row *row = vec_push(&table->rows);

	memset(row, 0, sizeof(*row));
	return row;
}

void row_text(struct row *row, unsigned column, const char *text)
{
	row->widths[column] = utf8_add_safe(&row->cells[column], text, TABLE_TEXT_COLUMNS);
}

void row_thread(struct row *row, unsigned column, const struct report_pass *pass, uint32_t thread)
{
	CLEANUP(str_done) struct str id = { 0 };
	struct str *cell = &row->cells[column];

	row->widths[column] = utf8_add_safe(cell, facts_thread_name(pass, thread),
	                                    TABLE_NAME_COLUMNS);
	str_addc(&id, ' ');
	facts_add_id(&id, pass, thread);
	str_adds(cell, str_get(&id));
	row->widths[column] += (unsigned)id.len;
}

void row_crowd(struct row *row, unsigned column, const struct report_pass *pass,
               const struct crowd *crowd)
{
	CLEANUP(str_done) struct str count = { 0 };
	struct str *cell = &row->cells[column];

	if (crowd->threads == 1) {
		row_thread(row, column, pass, crowd->first);
		return;
	}
	row->widths[column] = utf8_add_safe(cell, str_get(&crowd->name), TABLE_NAME_COLUMNS);
	str_addf(&count, " %" PRIu32 " threads", crowd->threads);
	str_adds(cell, str_get(&count));
	row->widths[column] += (unsigned)count.len;
}

void row_number(struct row *row, unsigned column, double value, int decimals)
{
	char plain[64];
	int len = snprintf(plain, sizeof(plain), "%.*f", decimals, value);
	int whole = decimals ? len - decimals - 1 : len;

	for (int i = 0; i < len; i++) {
		if (i && i < whole && (whole - i) % 3 == 0)
			str_addc(&row->cells[column], ',');
		str_addc(&row->cells[column], plain[i]);
	}
	row->widths[column] = (unsigned)row->cells[column].len;
}

static void put_cell(const struct row *row, unsigned column, unsigned width, bool left, FILE *out)
{
	int pad = (int)(width - row->widths[column]);

	if (left)
		fprintf(out, "%s%*s", str_get(&row->cells[column]), pad, "");
	else
		fprintf(out, "%*s%s", pad, "", str_get(&row->cells[column]));
}

static void put_rows(const struct table *table, FILE *out)
{
	unsigned widths[CELLS] = { 0 };

	for (size_t r = 0; r < table->rows.n; r++)
		for (unsigned c = 0; c < table->columns; c++)
			if (table->rows.v[r].widths[c] > widths[c])
				widths[c] = table->rows.v[r].widths[c];
	for (size_t r = 0; r < table->rows.n; r++) {
		for (unsigned c = 0; c < table->columns; c++) {
			fputs(c ? "   " : "  ", out);
			put_cell(&table->rows.v[r], c, widths[c], c < table->text_columns, out);
		}
		putc('\n', out);
	}
}

void table_end(struct table *table, size_t left, const char *what, FILE *out)
{
	put_rows(table, out);
	if (left)
		fprintf(out, "  … and %zu more%s\n", left, what);
	for (size_t r = 0; r < table->rows.n; r++)
		for (unsigned c = 0; c < table->columns; c++)
			str_done(&table->rows.v[r].cells[c]);
	vec_done(&table->rows);
}

void table_headings(struct table *table, const char *const *headings)
{
	struct row *row = table_row(table);

	for (unsigned c = 0; c < table->columns; c++)
		row_text(row, c, headings[c]);
}

/* SPDX-License-Identifier: MIT */
/* Aligns cells. */
#include "texttable.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/facts.h"
#include "report/terminal.h"
#include "report/utf8.h"

#define INDENT     2
#define GAP        3
#define NARROW_GAP 2

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

/* The columns that each column takes, and all of them with gap between. */
static unsigned measure(const struct table *table, unsigned *widths, unsigned gap)
{
	unsigned sum = INDENT + gap * (table->columns - 1);

	memset(widths, 0, CELLS * sizeof(*widths));
	for (unsigned c = 0; c < table->columns; c++) {
		for (size_t r = 0; r < table->rows.n; r++)
			if (table->rows.v[r].widths[c] > widths[c])
				widths[c] = table->rows.v[r].widths[c];
		sum += widths[c];
	}
	return sum;
}

/* Where the longer one of two lines is shortest; NULL if it is one word. */
static const char *middle_blank(const char *text)
{
	const char *best = NULL;
	size_t len = strlen(text), least = len;

	for (const char *at = strchr(text, ' '); at; at = strchr(at + 1, ' ')) {
		size_t before = (size_t)(at - text), behind = len - before - 1;

		if ((before > behind ? before : behind) < least) {
			least = before > behind ? before : behind;
			best = at;
		}
	}
	return best;
}

/* The headings as two rows: the table is as narrow as its words and numbers. */
static void split_headings(struct table *table)
{
	struct row upper = { 0 }, *lower = table_row(table);

	for (unsigned c = 0; c < table->columns; c++) {
		const char *text = str_get(&table->rows.v[0].cells[c]);
		const char *blank = middle_blank(text);

		row_text(lower, c, blank ? blank + 1 : text);
		if (blank) {
			str_addn(&upper.cells[c], text, (size_t)(blank - text));
			upper.widths[c] = (unsigned)(blank - text);
		}
		str_done(&table->rows.v[0].cells[c]);
	}
	table->rows.v[0] = *lower;
	memmove(&table->rows.v[1], &table->rows.v[0], (table->rows.n - 1) * sizeof(upper));
	table->rows.v[0] = upper;
}

static void put_rows(struct table *table, FILE *out)
{
	unsigned widths[CELLS], columns = terminal_columns(out), gap = GAP;

	if (measure(table, widths, gap) > columns && columns && table->headed) {
		split_headings(table);
		gap = NARROW_GAP;
		measure(table, widths, gap);
	}
	for (size_t r = 0; r < table->rows.n; r++) {
		for (unsigned c = 0; c < table->columns; c++) {
			fprintf(out, "%*s", (int)(c ? gap : INDENT), "");
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

	table->headed = true;
	for (unsigned c = 0; c < table->columns; c++)
		row_text(row, c, headings[c]);
}

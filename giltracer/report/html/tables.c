/* SPDX-License-Identifier: MIT */
/* The terminal's tables as HTML, with more rows. */
#include "report/html/tables.h"

#include "base/cleanup.h"
#include "report/html/text.h"
#include "report/tables/tables.h"

#define NAME_COLUMNS 80
#define OWN_ROWS     20

static void put_headings(const struct table *table, FILE *out)
{
	fputs("<table>\n<caption>", out);
	html_text(phrase(table->caption), out);
	fputs("</caption>\n<thead><tr>", out);
	for (unsigned c = 0; c < table->columns; c++) {
		fputs("<th scope=\"col\">", out);
		html_text(phrase(table->headings[c]), out);
		fputs("</th>", out);
	}
	fputs("</tr></thead>\n<tbody>\n", out);
}

/* The cells of the first column are row headings. */
static void put_row(const struct table *table, const struct row *row, FILE *out)
{
	fputs("<tr>", out);
	for (unsigned c = 0; c < table->columns; c++) {
		const struct cell *cell = &row->cells[c];

		fputs(c ? "<td>" : "<th scope=\"row\">", out);
		if (cell->number)
			fprintf(out, "%.*f", cell->decimals, cell->value);
		else
			html_text(str_get(&cell->text), out);
		fputs(c ? "</td>" : "</th>", out);
	}
	fputs("</tr>\n", out);
}

static void put_paragraph(const char *text, FILE *out)
{
	fputs("<p>", out);
	html_text(text, out);
	fputs("</p>\n", out);
}

/* Writes and frees the table. own: the page shows it as it is, because it makes none from other
 * data. */
static void put_table(struct table *table, bool own, FILE *out)
{
	CLEANUP(str_done) struct str left = { 0 };

	if (table->rows.n) {
		fputs(own ? "<div class=\"own\">\n" : "", out);
		put_headings(table, out);
		for (size_t r = 0; r < table->rows.n; r++)
			put_row(table, &table->rows.v[r], out);
		fputs("</tbody>\n</table>\n", out);
		if (table->left) {
			table->say_left(&left, table->left, table->left_ns);
			put_paragraph(str_get(&left), out);
		}
		for (size_t i = 0; i < table->notes.n; i++)
			put_paragraph(str_get(&table->notes.v[i]), out);
		fputs(own ? "</div>\n" : "", out);
	}
	table_done(table);
}

void html_tables(const struct analysis *a, FILE *out)
{
	static const struct {
		void (*make)(struct table *, const struct analysis *, const struct table_limits *);
		bool own;
	} tables[] = {
		{ table_threads, false },         { table_path, true },
		{ table_chains, true },           { table_states, false },
		{ table_lock_waits, false },      { table_places, false },
		{ table_gil_waits, false },       { table_cpu_waits, false },
		{ table_overdue, false },         { table_holders, false },
		{ table_sampled_threads, false }, { table_sampled_places, false },
		{ table_tasks, false },
	};
	const struct table_limits limits = {
		.threads = HTML_ROWS,
		.waits = HTML_ROWS,
		.functions = HTML_ROWS,
		.name_columns = NAME_COLUMNS,
		.all = true,
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		struct table_limits of = limits;
		struct table table;

		if (tables[i].own)
			of.waits = OWN_ROWS;
		tables[i].make(&table, a, &of);
		put_table(&table, tables[i].own, out);
	}
}

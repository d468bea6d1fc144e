/* SPDX-License-Identifier: MIT */
/* Breaks lines at spaces. */
#include "report/terminal.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "terminal.h"

#define INDENT      "  "
#define MORE_INDENT "    "
#define LEAST       40 /* minimum number of columns; fewer would leave one word per line */

/* The width of the terminal that out writes to; 0 if it is not a terminal or its width is
 * unknown. */
static unsigned terminal_columns(FILE *out)
{
	struct winsize size = { 0 };
	int fd = fileno(out);

	if (fd < 0 || !isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) < 0 || !size.ws_col)
		return 0;
	return size.ws_col < LEAST ? LEAST : size.ws_col;
}

/* The width of the word at text, with its number of bytes in *ret. */
static unsigned word_width(const char *text, size_t *ret)
{
	const char *at = text;
	unsigned width = 0;

	while (*at && *at != ' ')
		width += utf8_width(utf8_next(&at));
	*ret = (size_t)(at - text);
	return width;
}

void terminal_wrap(struct str *str, const char *text, unsigned columns)
{
	unsigned used = strlen(INDENT);

	str_adds(str, INDENT);
	for (bool first = true; *text; first = false) {
		size_t len;
		unsigned width = word_width(text, &len);

		if (!first && columns && used + 1 + width > columns) {
			str_adds(str, "\n" MORE_INDENT);
			used = strlen(MORE_INDENT);
		} else if (!first) {
			str_addc(str, ' ');
			used++;
		}
		str_addn(str, text, len);
		used += width;
		text += len;
		if (*text == ' ')
			text++;
	}
	str_addc(str, '\n');
}

void terminal_putf(FILE *out, const char *fmt, ...)
{
	CLEANUP(str_done) struct str lines = { 0 };
	CLEANUP(free) char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	terminal_wrap(&lines, text, terminal_columns(out));
	fputs(str_get(&lines), out);
}

/* Aligns cells. */

#define TABLE_INDENT 2
#define GAP          3
#define NARROW_GAP   2

/* Groups digits by thousands, so that long numbers are readable. */
static void add_number(struct str *out, double value, int decimals)
{
	char plain[64];
	int len = snprintf(plain, sizeof(plain), "%.*f", decimals, value);
	int whole = decimals ? len - decimals - 1 : len;

	for (int i = 0; i < len; i++) {
		if (i && i < whole && (whole - i) % 3 == 0)
			str_addc(out, ',');
		str_addc(out, plain[i]);
	}
}

static unsigned cell_width(const struct cell *cell)
{
	CLEANUP(str_done) struct str number = { 0 };

	if (!cell->number)
		return cell->width;
	add_number(&number, cell->value, cell->decimals);
	return (unsigned)number.len;
}

static void put_cell(const struct cell *cell, unsigned width, bool left, FILE *out)
{
	CLEANUP(str_done) struct str number = { 0 };
	const char *text = str_get(&cell->text);
	int pad = (int)(width - cell_width(cell));

	if (cell->number) {
		add_number(&number, cell->value, cell->decimals);
		text = str_get(&number);
	}
	if (left)
		fprintf(out, "%s%*s", text, pad, "");
	else
		fprintf(out, "%*s%s", pad, "", text);
}

/* The break at which the longer of two lines is shortest; NULL if the text is one word. */
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

/* The layout of a table. @two_lines: headings have two lines, so that the table is narrower. */
struct layout {
	const struct table *table;
	bool two_lines;
	unsigned gap;
	unsigned widths[TABLE_COLUMNS];
};

/* One line of a heading; the upper one may be empty. */
static void heading_line(struct str *out, const struct layout *l, unsigned column, bool upper)
{
	const char *text = phrase(l->table->headings[column]);
	const char *blank = l->two_lines ? middle_blank(text) : NULL;

	if (upper && blank)
		str_addn(out, text, (size_t)(blank - text));
	else if (!upper)
		str_adds(out, blank ? blank + 1 : text);
}

static unsigned heading_width(const struct layout *l, unsigned column)
{
	CLEANUP(str_done) struct str upper = { 0 }, lower = { 0 };

	heading_line(&upper, l, column, true);
	heading_line(&lower, l, column, false);
	return (unsigned)(upper.len > lower.len ? upper.len : lower.len);
}

/* Returns the total width in columns. */
static unsigned lay_out(struct layout *l, const struct table *table, bool two_lines, unsigned gap)
{
	unsigned sum = TABLE_INDENT + gap * (table->columns - 1);

	*l = (struct layout){ .table = table, .two_lines = two_lines, .gap = gap };
	for (unsigned c = 0; c < table->columns; c++) {
		l->widths[c] = heading_width(l, c);
		for (size_t r = 0; r < table->rows.n; r++) {
			unsigned width = cell_width(&table->rows.v[r].cells[c]);

			l->widths[c] = width > l->widths[c] ? width : l->widths[c];
		}
		sum += l->widths[c];
	}
	return sum;
}

static void put_headings(const struct layout *l, bool upper, FILE *out)
{
	for (unsigned c = 0; c < l->table->columns; c++) {
		CLEANUP(str_done) struct str line = { 0 };
		int width = (int)l->widths[c];

		heading_line(&line, l, c, upper);
		fprintf(out, "%*s%*s", (int)(c ? l->gap : TABLE_INDENT), "",
		        c < l->table->text_columns ? -width : width, str_get(&line));
	}
	putc('\n', out);
}

static void put_rows(const struct layout *l, FILE *out)
{
	const struct table *table = l->table;

	for (size_t r = 0; r < table->rows.n; r++) {
		for (unsigned c = 0; c < table->columns; c++) {
			fprintf(out, "%*s", (int)(c ? l->gap : TABLE_INDENT), "");
			put_cell(&table->rows.v[r].cells[c], l->widths[c], c < table->text_columns,
			         out);
		}
		putc('\n', out);
	}
}

void terminal_table(const struct table *table, FILE *out)
{
	unsigned columns = terminal_columns(out);
	CLEANUP(str_done) struct str left = { 0 };
	struct layout l;

	if (!table->rows.n)
		return;
	if (lay_out(&l, table, false, GAP) > columns && columns)
		lay_out(&l, table, true, NARROW_GAP);
	if (l.two_lines)
		put_headings(&l, true, out);
	put_headings(&l, false, out);
	put_rows(&l, out);
	if (table->left)
		table->say_left(&left, table->left, table->left_ns);
	if (table->left)
		terminal_putf(out, "%s", str_get(&left));
	for (size_t i = 0; i < table->notes.n; i++)
		terminal_putf(out, "%s", str_get(&table->notes.v[i]));
}

/* SPDX-License-Identifier: MIT */
/* Breaks lines at spaces. */
#include "terminal.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#define INDENT      "  "
#define MORE_INDENT "    "
#define LEAST       40 /* minimum number of columns; fewer would leave one word per line */

unsigned terminal_columns(FILE *out)
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
